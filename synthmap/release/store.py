"""The store: a directory of immutable releases. A release is written beside, verified, then renamed.

A killed run leaves either nothing or a whole release: what it wrote lies in ``.partial-…``, which nobody
reads and the next run clears away. The lock beside it is held by the process that writes, so the leftovers of
a dead one can be told from the work of a living one.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from synthmap.errors import ReleaseError

_PARTIAL = ".partial-"
_SCRATCH = "synthmap-scratch-"
_LOCK = ".lock"


def new_release_id(name: str) -> str:
    """Return an id that no other release has: name, time (UTC) and 32 random bits."""
    return f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@contextmanager
def partial_release(store: Path, release: str) -> Iterator[Path]:
    """Yield an empty directory beside the releases of `store`; it is removed unless `publish` renamed it.

    Raises
    ------
    ReleaseError
        If the store cannot be written.
    """
    with _working_directory(store, "store", _PARTIAL, release) as directory:
        yield directory


@contextmanager
def scratch(root: Path | None) -> Iterator[Path]:
    """Yield a private directory for confidential intermediate files, removed in the end.

    `root` defaults to the system's place for temporary files. Leftovers of killed runs are removed first.

    Raises
    ------
    ReleaseError
        If it cannot be made.
    """
    place = Path(tempfile.gettempdir()) if root is None else root
    with _working_directory(place, "scratch", _SCRATCH, secrets.token_hex(8)) as directory:
        yield directory


@contextmanager
def _working_directory(place: Path, what: str, prefix: str, name: str) -> Iterator[Path]:
    """Yield a new directory of mode 0700 in `place`, locked while the process works in it."""
    directory = place.absolute() / f"{prefix}{name}"
    lock = directory.with_name(directory.name + _LOCK)
    try:
        place.mkdir(parents=True, exist_ok=True)
        sweep(place, prefix)
        held = _hold(lock)
        directory.mkdir(mode=0o700)
    except OSError as fault:
        raise ReleaseError(f"{what} ({place}) must be a writable directory: {fault.strerror}") from None
    with held:
        try:
            yield directory
        finally:
            if _remove(directory):
                lock.unlink(missing_ok=True)


def _hold(lock: Path) -> BinaryIO:
    """Return the lock file, made and held; made anew if a sweep took it in between."""
    while True:
        held = lock.open("wb")
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(held.fileno()), lock.stat()):
                return held
        except FileNotFoundError:
            pass
        held.close()


def _remove(directory: Path) -> bool:
    """Remove a directory, also while a cancelled task still writes a last file in it; return whether it is gone."""
    for _ in range(100):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return True
        time.sleep(0.01)
    return False


def sweep(place: Path, prefix: str) -> None:
    """Remove the directories in `place` that start with `prefix` and whose writer is dead."""
    for lock in place.glob(f"{prefix}*{_LOCK}"):
        try:
            with lock.open("rb+") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _remove(lock.with_name(lock.name.removesuffix(_LOCK))):
                    lock.unlink(missing_ok=True)
        except OSError:
            continue  # another process works there, or another user's


def publish(partial: Path, release: str) -> Path:
    """Make the finished directory `partial` the release and return its path, durably.

    Raises
    ------
    ReleaseError
        If there already is a release of that id; nothing is overwritten.
    """
    target = partial.parent / release
    if target.exists():
        raise ReleaseError(f"release ({release}) must not exist yet; releases are immutable")
    for path in sorted(partial.rglob("*")):
        _sync(path)
        path.chmod(0o755 if path.is_dir() else 0o444)
    _sync(partial)
    partial.chmod(0o755)
    partial.rename(target)
    _sync(target.parent)
    return target


def _sync(path: Path) -> None:
    """Flush a file or directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
