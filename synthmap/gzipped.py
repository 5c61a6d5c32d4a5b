"""Gzipped files as Arrow reads them, unpacked by ISA-L in a quarter of zlib's time."""

from pathlib import Path
from typing import IO, cast

import pyarrow as pa
from isal import igzip, isal_zlib

_CORRUPT = cast(type[Exception], isal_zlib.error)  # which its stub calls an instance
FAULTS = (OSError, EOFError, _CORRUPT)  # of bytes that are not gzip, or not all of it


def unpacked(packed: Path | IO[bytes]) -> pa.NativeFile:
    """Return what a gzip file holds, in one member or several, as a stream to be closed; faults come while reading."""
    named = {"filename": packed} if isinstance(packed, Path) else {"fileobj": packed}
    return pa.PythonFile(igzip.IGzipFile(mode="rb", **named), mode="r")  # type: ignore[no-untyped-call]
