"""Object stores with the interface of S3: a URL such as ``s3://bucket/prefix`` stands where else a path does.

`synthmap.spec.read_spec` makes all other paths absolute, so a `Path` whose first part is ``s3:`` is such a URL.
Address, region and credentials come from the usual variables (``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``, …), of each
process its own: nothing of them is in a spec, in a message or on a wire.
"""

import glob
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import category
from urllib.parse import urlsplit

from synthmap.errors import ConfigurationError, StorageError

R = TypeVar("R")
_SCHEME = "s3:"
_BLOCK = 1 << 23
_TRANSFERS = 8


def is_remote(path: Path) -> bool:
    """Return whether `path` is a URL of an object store."""
    return path.parts[:1] == (_SCHEME,)


def shown(path: Path) -> str:
    """Return a path or URL as a user writes it."""
    return f"s3://{_key(path)}" if is_remote(path) else str(path)


def anchored(base: Path, path: Path) -> Path:
    """Return `path`, joined to `base` if it is relative.

    Raises
    ------
    ConfigurationError
        If there is a control character in it: no file has one on purpose, and the system takes no NUL.
    """
    if any(category(character) == "Cc" for character in str(path)):
        raise ConfigurationError(f"path ({str(path)!r}) must have no control characters")
    return path if is_remote(path) else base / path


def is_there(path: Path) -> bool:
    """Return whether there is a file, on a disk or in an object store."""
    if not is_remote(path):
        return path.is_file()
    found = _asked(path, "read", lambda: _files().get_file_info(_key(path)))
    return bool(found.is_file)


def open_file(path: Path) -> Any:
    """Return a binary file to read, on a disk or in an object store."""
    if not is_remote(path):
        return path.open("rb")
    return _asked(path, "read", lambda: _files().open_input_file(_key(path)))


def state(path: Path) -> tuple[object, ...]:
    """Return what changes when somebody writes to a file or puts another in its place.

    On a disk also when it is put back: its inode has changed since. An object store tells size and time alone.
    """
    if not is_remote(path):
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    found = _asked(path, "read", lambda: _files().get_file_info(_key(path)))
    return found.size, found.mtime_ns


def files_of(path: Path) -> list[Path]:
    """Return the files of a layer that may consist of several, a directory or a shapefile; else `path` alone."""
    if is_remote(path):
        below = listed(path, deep=True)
        if path.suffix.lower() == ".shp":
            below = {one: time for one, time in listed(path.parent).items() if one.stem == path.stem}
        return sorted(one for one, time in below.items() if time is not None) or [path]
    if path.is_dir():
        return sorted(one for one in path.rglob("*") if one.is_file())
    if path.suffix.lower() == ".shp":
        return sorted(one for one in path.parent.glob(f"{glob.escape(path.stem)}.*") if one.is_file())
    return [path]


def download(source: Path, target: Path) -> None:
    """Copy a file, or a directory with all in it, to the disk; `target` is there only once it is whole.

    Raises
    ------
    ConfigurationError
        If there is none.
    StorageError
        If the store does not answer, or refuses.
    """
    from pyarrow import fs

    half = target.with_name(f".{target.name}.half")
    local = fs.LocalFileSystem()
    found = _asked(source, "read", lambda: _files().get_file_info(_key(source)))
    if found.type == fs.FileType.NotFound:
        raise ConfigurationError(f"{shown(source)} must be a file or a directory of an object store; it is missing")
    if found.type == fs.FileType.Directory:
        half.mkdir(exist_ok=True)
    _asked(source, "read", lambda: fs.copy_files(_key(source), str(half), _files(), local, use_threads=True))
    half.rename(target)


def upload(source: Path, target: Path) -> None:
    """Copy a file, or a directory with all in it, from the disk. Each file appears when it is whole.

    Raises
    ------
    StorageError
        If the store does not answer, or refuses.
    """
    below = [source] if source.is_file() else [path for path in sorted(source.rglob("*")) if path.is_file()]

    def put(path: Path) -> None:
        with path.open("rb") as file, _files().open_output_stream(_key(target / path.relative_to(source))) as sink:
            shutil.copyfileobj(file, sink, _BLOCK)  # pyarrow's own copy_files ignores what goes wrong at the end

    with ThreadPoolExecutor(_TRANSFERS) as pool:  # no signal of the main thread cuts a file off
        _asked(target, "written", lambda: list(pool.map(put, below)))


def remove(path: Path) -> None:
    """Remove a file, or a directory with all in it, from an object store."""
    delete = _files().delete_file if is_there(path) else _files().delete_dir
    with suppress(ConfigurationError):  # it is gone already
        _asked(path, "written", lambda: delete(_key(path)))


def listed(directory: Path, *, deep: bool = False) -> dict[Path, datetime | None]:
    """Return what is in a directory of an object store, with `deep` below it too, and when files were written."""
    from pyarrow import fs

    selector = fs.FileSelector(_key(directory), recursive=deep, allow_not_found=True)
    found = _asked(directory, "read", lambda: _files().get_file_info(selector))
    return {Path(_SCHEME) / one.path: one.mtime if one.is_file else None for one in found}


def _key(path: Path) -> str:
    return "/".join(path.parts[1:])


def _asked(path: Path, what: str, ask: Callable[[], R]) -> R:
    """Return what `ask` does, its failure as one error; the store's own words hold keys and addresses."""
    try:
        return ask()
    except FileNotFoundError:
        raise ConfigurationError(f"{shown(path)} must be a file of an object store; it is missing") from None
    except OSError as fault:
        found = re.search(r"AWS Error ([A-Z_]+)", str(fault))
        why = found[1].lower().replace("_", " ") if found else fault.strerror or "it does not answer as S3 does"
    raise StorageError(f"{shown(path)} must be an address in an object store that can be {what}: {why}")


@lru_cache(maxsize=1)
def _files() -> Any:
    """Return the store of this process."""
    from pyarrow import fs

    address = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    if address.geturl() and (address.scheme not in ("http", "https") or not address.netloc):
        raise ConfigurationError(f"AWS_ENDPOINT_URL ({address.geturl()}) must be a URL such as https://host:9000")
    return fs.S3FileSystem(
        scheme=address.scheme or None,
        endpoint_override=address.netloc or None,
        tls_ca_file_path=os.environ.get("AWS_CA_BUNDLE"),
        allow_delayed_open=True,  # one request for a small file
    )
