"""A catalog, a store and a registry as an operator sets them up, and workers over them in processes of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from forked import Forked
from forks import Forks
from moments import held_at, waiting_at
from waiting import wait_for

from pipelines.registry import register
from synthmap.catalog.claims import Claim, Watch, claim
from synthmap.catalog.database import Catalog, open_catalog
from synthmap.catalog.datasets import put_dataset
from synthmap.catalog.jobs import Job, find_job, submit
from synthmap.catalog.ledger import set_budget

DATASET = "ri-2019"
FAST = {"LEASE_SECONDS": "1.5", "GRACE_SECONDS": "20", "POLL_SECONDS": "0.1"}


@dataclass
class Site:
    """Where a service and its workers meet; workers are forked if there is what forks."""

    directory: Path
    database: str
    catalog: Catalog
    forks: Forks | None = None
    started: list[subprocess.Popen | Forked] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.directory / "store"

    @property
    def scratch(self) -> Path:
        return self.directory / "scratch"

    @property
    def registry(self) -> Path:
        return self.directory / "registry.toml"

    @property
    def log(self) -> str:
        """What all workers have said."""
        return (self.directory / "log").read_text()

    def register(self, spec: Path, id: str = DATASET, budget: tuple[float, float] | None = (1000.0, 0.1)) -> None:
        put_dataset(self.catalog, register(self.registry, id, spec))
        if budget is not None:
            set_budget(self.catalog, id, *budget)

    def submit(self, process: str = "release", **inputs) -> Job:
        return submit(self.catalog, process, inputs or {"dataset": DATASET})

    def job(self, job: Job) -> Job:
        return find_job(self.catalog, job.id)

    def wait(self, job: Job, *states: str) -> Job:
        """Return the job once it is in one of `states`."""
        return wait_for(lambda: (found := self.job(job)).state in states and found)

    def worker(self, *options: str, **settings: str) -> subprocess.Popen | Forked:
        """Start a worker."""
        if self.forks is not None and set(options) <= {"--once"}:
            self.started.append(self._fork("--once" in options, FAST | settings))
        else:
            self.started.append(self._program(options, FAST | settings))
        return self.started[-1]

    @contextmanager
    def worker_at(self, sign: str, *options: str, **settings: str) -> Iterator[subprocess.Popen | Forked]:
        """Yield a worker once a file that matches `sign` is there.

        While inside, worker and job wait before the next thing they do to a file; workers of a Dask cluster go on.
        """
        with held_at(self.directory, sign):
            started = self.worker(*options, **settings)
            wait_for(lambda: any(self.directory.glob(sign)) or started.poll() is not None)
            assert any(self.directory.glob(sign)), self.log
            yield started

    def _fork(self, once: bool, settings: dict[str, str]) -> Forked:
        assert self.forks is not None
        words = self.directory / f"words-{len(self.started)}"
        chosen = {key.lower(): value for key, value in settings.items()}
        order = {"directory": self.directory, "database": self.database, "settings": chosen, "words": words}
        return Forked(self.forks.start(**order, stays=not once), words)

    def _program(self, options: tuple[str, ...], settings: dict[str, str]) -> subprocess.Popen:
        with (self.directory / "log").open("a") as log:
            code = "from synthmap.cli import main; main()"
            words = ["worker", "--store", self.store, "--database", self.database, "--registry", self.registry]
            line = [sys.executable, "-c", code, *map(str, words), "--scheduler", "threads", "--json", *options]
            chosen = {f"SYNTHMAP_CONFIDENTIAL_{key}": value for key, value in settings.items()}
            chosen |= waiting_at(self.directory)
            return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, env=os.environ | chosen)

    def work(self, **settings: str) -> dict[str, int]:
        """Let a worker run until no job is left; return how they ended."""
        out, _ = self.worker("--once", **settings).communicate()
        return {state: number for state, number in json.loads(out).items() if number}

    def releases(self) -> list[str]:
        """Name all that lies in the store, hidden things too, but for the catalog."""
        return (
            sorted(path.name for path in self.store.glob("*") if path.name != ".catalog") if self.store.exists() else []
        )

    def dead_worker(self) -> Claim:
        """Claim a job as a worker that is never heard of again."""
        found = claim(self.catalog, lease_seconds=0.01)
        assert found is not None
        return found

    def heir(self) -> Claim:
        """Take an abandoned job over."""
        times = iter([0.0, 1e9])
        watch = Watch(self.catalog, lambda: next(times))
        watch.take_over(lease_seconds=1)
        found = watch.take_over(lease_seconds=1)
        assert found is not None
        return found

    def stop(self) -> None:
        """End every worker and what it started."""
        for process in self.started:
            if process.poll() is None:
                for one in [*children(process), psutil.Process(process.pid)]:
                    one.send_signal(signal.SIGKILL)
            process.wait()
            if not isinstance(process, Forked):
                process.stdout.close()
        self.catalog.close()


def children(process: subprocess.Popen | Forked) -> list[psutil.Process]:
    """Return the processes that a worker has started."""
    return psutil.Process(process.pid).children(recursive=True)


def site(directory: Path, database: str, forks: Forks | None = None) -> Site:
    """Return a new site."""
    directory.mkdir(exist_ok=True)
    (directory / "log").touch()
    return Site(directory, database, open_catalog(database), forks)
