"""What reading a damaged file can raise, as the one error that the public may see."""

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl
import pyarrow as pa
from shapely.errors import ShapelyError

from synthmap.errors import ReleaseCorruptError

_FAULTS = (
    pl.exceptions.ComputeError, pl.exceptions.ColumnNotFoundError, pl.exceptions.SchemaError,
    pl.exceptions.InvalidOperationError, pl.exceptions.PanicException, pa.ArrowException, ShapelyError,
    OSError, UnicodeDecodeError, KeyError,
)  # fmt: skip


@contextmanager
def unharmed(release: str) -> Iterator[None]:
    """Turn what a damaged or missing file causes into one error that names the release."""
    try:
        yield
    except _FAULTS:
        raise ReleaseCorruptError(f"release {release}: a file cannot be read; verify it and publish it again") from None
