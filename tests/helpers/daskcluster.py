"""A Dask scheduler and workers, each a process started by itself in a directory of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_for


@dataclass
class Cluster:
    """What was started; `workers` die with `kill`."""

    address: str
    workers: list[subprocess.Popen]
    place: Path

    @property
    def log(self) -> str:
        """What all of them have said."""
        return (self.place / "log").read_text()

    def kill(self, number: int) -> None:
        """End a worker, and what watches over it, as a power cut does."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)


@contextmanager
def cluster(
    place: Path,
    workers: int,
    *,
    port: int = 0,
    at: str | None = None,
    options: Callable[[int], Sequence[str]] = lambda number: ("--no-nanny",),
    before: Sequence[str] = (),
    environment: Mapping[str, str] = {},
) -> Iterator[Cluster]:
    """Yield a cluster whose logs and directories are in `place`.

    Parameters
    ----------
    at : str, optional
        The address by which workers know the scheduler, if not its own.
    options : callable
        Of each worker.
    before : sequence of str
        Command that starts the workers' commands.
    """
    place.mkdir(exist_ok=True)
    dask = [sys.executable, "-m", "dask"]
    found = Cluster("", [], place)
    started = []

    def start(directory: Path, *words: str) -> subprocess.Popen:
        (directory / "tmp").mkdir(parents=True)
        own = os.environ | environment | {"TMPDIR": str(directory / "tmp")}
        started.append(subprocess.Popen(words, cwd=directory, env=own, stdout=log, stderr=log, start_new_session=True))
        return started[-1]

    with (place / "log").open("w") as log:
        try:
            start(place / "scheduler", *dask, "scheduler", "--scheduler-file", f"{place}/address",
                  "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0")  # fmt: skip
            wait_for(lambda: (place / "address").exists() and (place / "address").read_text().endswith("}"))
            found.address = json.loads((place / "address").read_text())["address"]
            for number in range(workers):
                directory = place / f"worker-{number}"
                words = ("--nthreads", "1", "--dashboard-address", "127.0.0.1:0", "--local-directory", str(directory))
                found.workers.append(
                    start(directory, *before, *dask, "worker", at or found.address, *words, *options(number))
                )
            wait_for(lambda: found.log.count("Register worker addr") >= workers or _dead(started, found))
            yield found
        finally:
            for process in reversed(started):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _dead(started: list[subprocess.Popen], found: Cluster) -> bool:
    assert all(process.poll() is None for process in started), found.log
    return False
