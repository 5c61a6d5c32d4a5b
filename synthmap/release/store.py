"""The store: a directory of immutable releases. A release is written beside, verified, then renamed.

A killed run leaves either nothing or a whole release: what it wrote lies in ``.partial-…``, which nobody
reads and the next run clears away. The lock beside it is held by the process that writes, so the leftovers of
a dead one can be told from the work of a living one.
"""

import fcntl
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from synthmap.errors import ReleaseError, UnwritableError
from synthmap.remote import is_remote

_PARTIAL = ".partial-"
_SCRATCH = "synthmap-scratch-"
_LOCK = ".lock"
_GONE = ".gone"


def new_release_id(name: str) -> str:
    """Return an id that no other release has: name, time (UTC) and 64 random bits: no hash of it can be guessed."""
    return f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(8)}"


def time_in(release: str) -> datetime | None:
    """Return the time in an id that `new_release_id` made, when the run began; None of another id.

    What is public of a release tells no later time: that would tell how long the confidential tables took to read.
    """
    found = re.fullmatch(r".*-(\d{8}T\d{6}Z)-[0-9a-f]{16}", release)
    try:
        return None if found is None else datetime.strptime(f"{found[1]}+0000", "%Y%m%dT%H%M%SZ%z")
    except ValueError:
        return None


@contextmanager
def partial_release(store: Path, release: str) -> Iterator[Path]:
    """Yield an empty directory beside the releases of `store`; it is removed unless `publish` renamed it.

    For a store that is no directory of a disk, it is in the system's place for temporary files.

    Every attempt at a release has one of its own, so that a second attempt does not meet what is left of the first.

    Raises
    ------
    ReleaseError
        If the store cannot be written.
    """
    name = f"{release}-{secrets.token_hex(8)}"
    if is_remote(store):
        with scratch(None) as beside:
            directory = beside / f"{_PARTIAL}{name}"
            directory.mkdir()
            yield directory
    else:
        with _working_directory(store, "store", _PARTIAL, name) as directory:
            yield directory


def withdraw(store: Path, release: str) -> None:
    """Take away what all earlier attempts at `release` have written, so that none of them can publish any more.

    An attempt that was already allowed to publish and only then froze would otherwise publish when it wakes. Its rename
    and this one exclude each other: afterwards the release is in the store, or only a new attempt can bring it there.

    Raises
    ------
    ReleaseError
        If the store cannot be written.
    """
    own = re.compile(re.escape(f"{_PARTIAL}{release}-") + "[0-9a-f]{16}")
    left = [path for path in store.glob(f"{_PARTIAL}*") if own.fullmatch(path.name)]
    if left:
        with _working_directory(store, "store", _PARTIAL, f"withdrawn-{secrets.token_hex(8)}") as away:
            for path in left:
                try:
                    path.rename(away / path.name)
                except FileNotFoundError:
                    continue  # published, or gone by itself
                except OSError as fault:
                    raise UnwritableError(f"store ({store}) must be a writable directory: {fault.strerror}") from None


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


def sweep_scratch(root: Path | None) -> None:
    """Remove the confidential scratch directories that killed runs left in `root` (see `scratch`), if it is there."""
    if root is None or not is_remote(root):  # the next run there sweeps an object store
        sweep(Path(tempfile.gettempdir()) if root is None else root, _SCRATCH)


def sweep_store(store: Path) -> None:
    """Remove what killed runs have not published in `store`."""
    sweep(store, _PARTIAL)


@contextmanager
def _working_directory(place: Path, what: str, prefix: str, name: str) -> Iterator[Path]:
    """Yield a new directory of mode 0700 in `place`, locked while the process works in it."""
    directory = place.absolute() / f"{prefix}{name}"
    lock = directory.with_name(directory.name + _LOCK)
    try:
        place.mkdir(parents=True, exist_ok=True)
        sweep(place, prefix)
        held = hold(lock)
        directory.mkdir(mode=0o700)
    except OSError as fault:
        with suppress(OSError):
            lock.unlink()
        raise UnwritableError(f"{what} ({place}) must be a writable directory: {fault.strerror}") from None

    def clear() -> None:
        if _remove(directory):
            lock.unlink(missing_ok=True)

    with held:
        try:
            yield directory
        finally:
            to_the_end(clear)


def to_the_end(work: Callable[[], None]) -> None:
    """Do `work`, which may be begun anew, to its end; interrupts on the way are raised afterwards, as one."""
    interrupted = None
    while True:
        try:
            work()
            break
        except KeyboardInterrupt as fault:
            interrupted = fault
    if interrupted is not None:
        raise interrupted


def hold(lock: Path) -> BinaryIO:
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
    """Remove a directory, also while a cancelled task still writes files in it; return whether it is gone.

    It is renamed first: a task that goes on writing finds no directory, instead of filling the one that is emptied.
    """
    gone = directory.with_name(directory.name + _GONE)
    for _ in range(100):
        with suppress(OSError):  # it has been renamed, or is no more
            directory.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        if not directory.exists() and not gone.exists():
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


def publish(partial: Path, release: str, ready: Callable[[], None] = lambda: None) -> Path:
    """Make the finished directory `partial` the release and return its path, durably.

    Parameters
    ----------
    partial : Path
    release : str
    ready : callable
        Called when all is on the disk, right before the rename; it raises to refuse.

    Raises
    ------
    ReleaseError
        If there already is a release of that id, or another attempt has taken `partial` away; nothing is overwritten.
    """
    target = partial.parent / release
    if target.exists():
        raise _published(release)
    began = time_in(release)
    for path in sorted(partial.rglob("*")):
        if began is not None:
            os.utime(path, (began.timestamp(), began.timestamp()))  # the service tells it
        sync(path)
        path.chmod(0o755 if path.is_dir() else 0o444)
    sync(partial)
    ready()
    try:
        partial.chmod(0o755)  # not before: what an attempt that dies has drawn stays closed to others
        partial.rename(target)
    except OSError as fault:
        if target.exists():
            raise _published(release) from None
        raise ReleaseError(f"release ({release}) must be renamed into the store: {fault.strerror}") from None
    sync(target.parent)
    return target


def _published(release: str) -> ReleaseError:
    return ReleaseError(f"release ({release}) must not exist yet; releases are immutable")


def sync(path: Path) -> None:
    """Flush a file or directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
