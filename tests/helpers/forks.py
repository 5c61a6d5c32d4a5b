"""Workers and commands as forks of one process that has everything loaded: hundreds can be killed in a minute.

Each is the real program: a `Worker` whose jobs are carried out by the real `pipelines.jobs`, `synthmap …`, the service,
or a Dask worker (see `roles`). Only the start differs: a fork instead of a new interpreter.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roles import carry_out

LOADED = (
    "pipelines.worker", "pipelines.spending", "pipelines.jobs.__main__", "pipelines.jobs.release",
    "pipelines.jobs.messages", "synthmap.cli", "synthmap.commands.ledger", "geopandas.io._geoarrow", "psycopg",
    "synthmap.confidential.fingerprint", "rich.console", "rich.progress", "geopandas",
    "pyarrow.acero", "tornado.platform.asyncio", "distributed.dashboard", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.postgresql.psycopg", "synthmap.service.serve", "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto", "uvicorn.loops.auto",
)  # fmt: skip
_LINE = 65_536


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), and the faults that it met on purpose."""

    status: int
    faults: list[str]


@dataclass(frozen=True)
class Running:
    """A process that was forked."""

    forks: "Forks"
    number: int
    pid: int

    def wait(self) -> Ended:
        """Return how it ended."""
        self.forks.first(self)
        return self.forks.ended[self.number]

    def kill(self, sign: int = signal.SIGKILL) -> Ended:
        """Send it a signal, if it is still there, and return how it ended."""
        self.forks.signal(self, sign)
        return self.wait()


class Forks:
    """The process that forks others. For one thread."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0
        self.ended: dict[int, Ended] = {}

    def start(self, **order: Any) -> Running:
        """Return a process that was forked for `order`; see `roles.carry_out`."""
        assert self._process.stdin is not None
        self._number += 1
        self._process.stdin.write(json.dumps(order | {"number": self._number}, default=str) + "\n")
        self._process.stdin.flush()
        while (pid := self._listen()) is None:
            pass
        return Running(self, self._number, pid)

    def signal(self, running: Running, sign: int) -> None:
        """Have a signal sent to a process by its parent, who alone knows whether its id is still its own."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"signal": sign, "number": running.number}) + "\n")
        self._process.stdin.flush()

    def run(self, **order: Any) -> Ended:
        """Return how a process ended that was forked for `order`."""
        return self.start(**order).wait()

    def first(self, *running: Running) -> Running:
        """Return the one that has ended, once one of them has."""
        while True:
            for one in running:
                if one.number in self.ended:
                    return one
            self._listen()

    def _listen(self) -> int | None:
        """Return the id of a process that was started, or take note of one that ended."""
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        if "pid" in told:
            return int(told["pid"])
        self.ended[told["number"]] = Ended(told["status"], told["faults"])
        return None


@contextmanager
def forking(region: Path) -> Iterator[Forks]:
    """Yield a process that forks; it has warmed itself on the spec of `region`."""
    line = [sys.executable, __file__, str(region / "spec.toml")]
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    try:
        yield Forks(process)
    finally:
        process.stdin.close()  # then it ends all that it has forked
        process.wait()
        process.stdout.close()


def _ranks_without_threads(zones: Any, ids: Any) -> Any:
    """Do what `Zones.find` does without Polars, whose threads a fork would wait for in vain."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = pc.index_in(ids, zones.ids).fill_null(-1)
    assert isinstance(place, pa.Int32Array)
    return place.to_numpy()


def warm(spec_path: Path) -> None:
    """Load all that a release needs, compiled code too, without starting a thread of Dask or Polars."""
    for name in LOADED:
        importlib.import_module(name)
    from unittest import mock

    import numpy as np

    from pipelines.lengths import measure
    from pipelines.partition import Partition, collect
    from pipelines.planning import plan_partition
    from pipelines.synthesize import draw
    from pipelines.tabulate import HEADCOUNT, Stretch, tabulate
    from synthmap.analysis.prior_table import read_prior_table, write_prior_table
    from synthmap.geography.read import read_zones
    from synthmap.geography.region import make_region, write_region
    from synthmap.geography.zones import Zones
    from synthmap.mechanism.lengths import length_classes, public_decay
    from synthmap.release.statement_files import _templates
    from synthmap.spec import read_spec

    _templates().get_template("statement.html")
    spec = read_spec(spec_path)
    with tempfile.TemporaryDirectory() as name, mock.patch.object(Zones, "find", _ranks_without_threads):
        place = Path(name)
        region = make_region(read_zones(spec.zones))
        write_region(region, place)
        write_prior_table(place, *read_prior_table(spec, region.zones))
        whole = Stretch(0, 0, 1)
        table = tabulate(spec, whole, place, place)
        headcount = np.load(table / HEADCOUNT)
        there = region.rank_of_position[np.flatnonzero(headcount)].astype(np.int32), headcount[headcount > 0]
        classes = length_classes(region, public_decay(spec), *there, 1.0)
        part = collect(spec, Partition(0, headcount.size), [(whole, table)], headcount, classes, place, place)
        lengths = measure(spec, classes, [part], place, place)
        draw(spec, part, plan_partition(spec, part, lengths, place, place), lengths, place, place)
    threads = {(one / "comm").read_text() for one in Path("/proc/self/task").iterdir()}
    assert not any(name.startswith("polars-0") for name in threads), f"a fork of this process would hang: {threads}"


class _Server:
    """Forks what it reads orders for, and tells how each process ended."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, int, int]] = {}  # by what tells the end: order, process, what it tells

    def run(self) -> None:
        rest = b""
        while True:
            for key, _ in self._selector.select():
                if key.fd != 0:
                    self._bury(key.fd)
                    continue
                block = os.read(0, _LINE)
                if not block:
                    self._end()
                    return
                *lines, rest = (rest + block).split(b"\n")
                for order in map(json.loads, lines):
                    if "signal" in order:
                        self._signal(order["number"], order["signal"])
                    else:
                        self._fork(order)

    def _fork(self, order: dict[str, Any]) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os._exit(carry_out(order, writer))
        os.close(writer)
        watched = os.pidfd_open(pid)
        self._selector.register(watched, selectors.EVENT_READ)
        self._running[watched] = (order["number"], pid, reader)
        self._tell(pid=pid)

    def _signal(self, number: int, sign: int) -> None:
        for watched, (other, _, _) in self._running.items():
            if other == number:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(watched, sign)

    def _bury(self, watched: int) -> None:
        number, pid, reader = self._running.pop(watched)
        self._selector.unregister(watched)
        os.close(watched)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            faults = os.read(reader, 1 << 20).decode().splitlines()
        except BlockingIOError:
            faults = []
        os.close(reader)
        self._tell(number=number, status=status, faults=faults)

    def _end(self) -> None:
        for _, pid, _ in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    @staticmethod
    def _tell(**what: Any) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    warm(Path(sys.argv[1]))
    gc.collect()
    gc.freeze()  # or every fork would copy the pages of all that is loaded, to count references
    _Server().run()
    os._exit(0)  # what is loaded takes seconds to go
