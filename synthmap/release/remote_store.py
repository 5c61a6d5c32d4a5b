"""Releases and scratch directories in an object store, which neither renames nor locks.

A release is there once its manifest is, which comes last. A scratch directory lives while its run writes a sign of
life; one without is removed by the next run, by the store's own clock.
"""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from synthmap.errors import ReleaseError, ReleaseNotFoundError, SynthmapError
from synthmap.release.manifest import MANIFEST
from synthmap.release.store import to_the_end
from synthmap.remote import download, is_remote, is_there, listed, remove, shown, upload

SCRATCH = "synthmap-scratch-"
ALIVE = ".alive"
BEAT_SECONDS = 300.0
DEAD_AFTER = timedelta(hours=1)


@contextmanager
def remote_scratch(root: Path) -> Iterator[Path]:
    """Yield a new directory for confidential intermediate files in an object store; removed in the end.

    Those of dead runs are removed first.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    directory = root / f"{SCRATCH}{secrets.token_hex(8)}"
    ended = threading.Event()
    with TemporaryDirectory() as here:
        sign = Path(here) / ALIVE
        sign.touch()
        upload(sign, directory / ALIVE)

        def beat() -> None:
            while not ended.wait(BEAT_SECONDS):
                with suppress(SynthmapError):  # the next one may pass
                    upload(sign, directory / ALIVE)

        def clear() -> None:
            ended.set()
            if beats.is_alive():
                beats.join()
            with suppress(SynthmapError):  # the next run will
                remove(directory)

        beats = threading.Thread(target=beat, daemon=True)
        try:
            _sweep(root, directory)
            beats.start()
            yield directory
        finally:
            to_the_end(clear)


def is_alive(directory: Path) -> bool:
    """Return whether the run of a scratch directory goes on, or has ended so lately that nobody removed it."""
    return is_there(directory / ALIVE)


def _sweep(root: Path, mine: Path) -> None:
    """Remove the scratch directories in `root` in which nothing was written for long; `mine` tells the time."""
    now = listed(mine)[mine / ALIVE]
    for other in [one for one in listed(root) if one.name.startswith(SCRATCH) and one != mine]:
        written = [time for time in listed(other, deep=True).values() if time is not None]
        if written and now is not None and max(written) < now - DEAD_AFTER:
            remove(other)


def publish_remotely(partial: Path, store: Path, release: str, ready: Callable[[], None] = lambda: None) -> Path:
    """Copy the finished release in `partial` to `store` and return its address; the manifest is the last to come.

    What was copied is removed if it fails. Nothing reads a directory without a manifest.

    Parameters
    ----------
    partial, store : Path
    release : str
    ready : callable
        Called right before the first byte is copied; it raises to refuse.

    Raises
    ------
    ReleaseError
        If there already is a release of that id.
    StorageError
        If the store does not answer, or refuses.
    """
    target = store / release
    if is_there(target / MANIFEST):
        raise ReleaseError(f"release ({release}) must not exist yet; releases are immutable")
    ready()
    try:
        for path in sorted(partial.iterdir()):
            if path.name != MANIFEST:
                upload(path, target / path.name)
        upload(partial / MANIFEST, target / MANIFEST)
    except BaseException:
        with suppress(SynthmapError):
            remove(target)
        raise
    return target


@contextmanager
def on_disk(release: Path) -> Iterator[Path]:
    """Yield the directory of a release; of one in an object store that of a copy, which is removed in the end.

    Raises
    ------
    ReleaseNotFoundError, StorageError
        If it is not there or cannot be read.
    """
    if not is_remote(release):
        yield release.resolve()
        return
    if not is_there(release / MANIFEST):
        raise ReleaseNotFoundError(f"release ({shown(release)}) must hold a {MANIFEST}")
    with TemporaryDirectory(prefix="synthmap-") as here:
        download(release, Path(here) / release.name)
        yield Path(here) / release.name
