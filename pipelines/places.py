"""Where tasks find and leave files: on a disk that all share, or in an object store, of which each works on copies.

On a shared disk nothing here does anything. Copies are private, one set a process and run; they go when the run ends,
when the process ends, when nothing asked for one in an hour (its driver was killed), or, if the process was killed
too, as all scratch directories do.
"""

import atexit
import hashlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from distributed import get_worker
from pydantic import BaseModel

from synthmap.errors import SynthmapError
from synthmap.release.remote_store import is_alive, remote_scratch
from synthmap.release.store import scratch
from synthmap.remote import download, files_of, is_remote, upload
from synthmap.spec import Spec

M = TypeVar("M", bound=BaseModel)
IDLE_SECONDS = 3_600.0

_lock = threading.RLock()
_known: dict[Path, "_Copies"] = {}


class _Copies:
    """The copies of one run in this process."""

    def __init__(self, run: Path) -> None:
        self._run, self._stack = run, ExitStack()
        self.directory = self._stack.enter_context(scratch(_disk()))
        self._timer = threading.Timer(0, lambda: None)

    def of(self, path: Path) -> Path:
        place = self.directory / hashlib.sha256(str(path.parent).encode()).hexdigest()[:16] / path.name
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            if path.suffix.lower() == ".shp":
                for other in sorted(files_of(path), key=path.__eq__):  # itself last
                    download(other, place.with_name(other.name))
            else:
                download(path, place)
        return place

    def stay(self) -> None:
        """Put off the end."""
        self._timer.cancel()
        self._timer = threading.Timer(IDLE_SECONDS, forget, [self._run])
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        self._timer.cancel()
        self._stack.close()


def fetch(path: Path, run: Path) -> Path:
    """Return `path`, or if it is in an object store, the copy of it that this process has for `run`.

    Parameters
    ----------
    path : Path
        A file or a directory, whole: it never changes.
    run : Path
        The run's scratch directory, by which the copies are known.

    Raises
    ------
    ConfigurationError, StorageError, UnwritableError
        If it cannot be read or copied.
    """
    if not is_remote(path):
        return path
    with _lock:
        return _of(run).of(path)


@contextmanager
def results(directory: Path) -> Iterator[Path]:
    """Yield a directory on a disk, empty if `directory` is not; what is written there is in `directory` afterwards.

    A run that has ended gets no results: its directory must stay gone.
    """
    if not is_remote(directory):
        yield directory
        return
    with _lock:
        place = _of(directory).directory
    with tempfile.TemporaryDirectory(dir=place) as here:
        yield Path(here)
        if is_alive(directory):
            upload(Path(here), directory)


@contextmanager
def run_directory(root: Path | None) -> Iterator[Path]:
    """Yield the scratch directory of a run in `root`; it and the copies of this process are removed in the end.

    Raises
    ------
    StorageError, UnwritableError
        If it cannot be made.
    """
    with remote_scratch(root) if root is not None and is_remote(root) else scratch(root) as directory:
        try:
            yield directory
        finally:
            forget(directory)


def public_inputs(spec: Spec, run: Path) -> Spec:
    """Return `spec` with the copies of its zones and of its prior's table, where those are in an object store."""

    def near(section: M, key: str = "path") -> M:
        path = getattr(section, key)
        return section if path is None else section.model_copy(update={key: fetch(path, run)})

    weights, shapes, table = spec.zones.weights, spec.zones.shapes, spec.prior.table
    parts = {"weights": weights and near(weights), "shapes": shapes and near(shapes)}
    zones = near(spec.zones).model_copy(update=parts)
    prior = near(spec.prior, "release").model_copy(update={"table": table and near(table)})
    return spec.model_copy(update={"zones": zones, "prior": prior})


def with_tables(spec: Spec, run: Path) -> Spec:
    """Return `spec` with the copies of its confidential tables, where those are in an object store."""
    tables = [table.model_copy(update={"path": fetch(table.path, run)}) for table in spec.tables]
    return spec.model_copy(update={"tables": tables})


def move(source: Path, target: Path) -> None:
    """Bring a result to a place on the driver's disk."""
    if is_remote(source):
        download(source, target)
    else:
        shutil.move(source, target)  # scratch and store may be on different disks


def forget(run: Path) -> None:
    """Remove the copies that this process has for a run."""
    with _lock:
        copies = _known.pop(run, None)
        if copies is not None:
            copies.close()


def reaches(run: Path) -> bool:
    """Return whether this process reaches the scratch directory of a run."""
    try:
        return is_alive(run) if is_remote(run) else run.is_dir()
    except SynthmapError:
        return False


def _of(run: Path) -> _Copies:
    copies = _known.get(run)
    if copies is None:
        copies = _known[run] = _Copies(run)
    copies.stay()
    return copies


def _disk() -> Path | None:
    """Return where a Dask worker keeps its files (``--local-directory``); elsewhere the system's place for such."""
    try:
        return Path(get_worker().local_directory).parent
    except ValueError:
        return None


@atexit.register
def _forget_all() -> None:
    with suppress(OSError):
        for run in list(_known):
            forget(run)
