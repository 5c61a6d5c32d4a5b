"""A file that is made once, by whoever comes first, and seen by others only when it is whole."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from synthmap.errors import ReleaseError
from synthmap.release.store import hold


def make_once(target: Path, write: Callable[[Path], None]) -> Path:
    """Return `target`, made by `write` if it is not there.

    `write` gets a path in a directory of its own, which is renamed to `target` when all is on the disk. A lock
    lets other threads and processes wait; what one that was killed left behind is cleared away by the next.

    Raises
    ------
    ReleaseError
        If the directory cannot be written.
    """
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name(f".{target.name}.lock")
        with hold(lock):
            try:
                if not target.exists():
                    _make(target, write)
            finally:
                lock.unlink(missing_ok=True)
    except OSError as fault:
        raise ReleaseError(f"{target} must be writable: {fault.strerror or 'the system refused'}") from None
    return target


def _make(target: Path, write: Callable[[Path], None]) -> None:
    """Make `target`; the lock is held, so what lies in the working directory is of a dead process."""
    work = target.with_name(f".{target.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        made = work / target.name
        write(made)
        made.chmod(0o444)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
