"""Workers and commands as forks of one process that has everything loaded: hundreds can be killed in a minute.

Each is the real program: a `Worker` whose jobs are carried out by the real `pipelines.jobs`, or `synthmap …`. Only
the start differs: a fork instead of a new interpreter.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import steps

LOADED = (
    "pipelines.worker", "pipelines.spending", "pipelines.jobs.__main__", "pipelines.jobs.release",
    "pipelines.jobs.messages", "synthmap.cli", "synthmap.commands.ledger", "geopandas.io._geoarrow", "psycopg",
    "synthmap.confidential.fingerprint", "rich.console", "rich.progress", "geopandas",
    "pyarrow.acero", "tornado.platform.asyncio", "distributed.dashboard", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.postgresql.psycopg",
)  # fmt: skip
SETTINGS = {"lease_seconds": 0.2, "poll_seconds": 0.02, "grace_seconds": 20}


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), and the faults that it met on purpose."""

    status: int
    faults: list[str]


class Forks:
    """The process that forks; `run` asks it for one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, **order: Any) -> Ended:
        """Return how a process ended that was forked for `order`; see `_carry_out`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


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
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class _Forked:
    """What the worker takes for `subprocess.Popen`: its job's program in a fork."""

    before: Callable[[], None]
    arm: Callable[[], None]

    def __init__(self, words: list[str], **_: Any) -> None:
        reader, writer = os.pipe()
        _Forked.before()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                os.close(writer)
                sys.stdin = os.fdopen(reader, encoding="utf-8")
                _Forked.arm()
                from pipelines.jobs.__main__ import main

                status = main()
            finally:
                os._exit(status)
        os.close(reader)
        self.stdin = os.fdopen(writer, "wb")

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _deed(kind: str, value: float, told: int, others: Callable[[], list[int]]) -> Any:
    return {"kill": steps.KillAt, "full": steps.FullFrom}[kind](int(value), told, *([others] if kind == "kill" else []))


def _arm(order: dict[str, Any], fault: tuple[str, float] | None, told: int, others: Callable[[], list[int]]) -> None:
    """Let this process meet a fault, or none."""
    steps.watch(None)
    if fault is None:
        return
    kind, value = fault
    if kind == "after":
        steps.die_after(value, told, others)
    else:
        steps.watch(steps.Steps(Path(order["directory"]), _deed(kind, value, told, others)))


def _work(order: dict[str, Any], told: int) -> int:
    """Run a worker until no job is left."""
    import pipelines.child
    from pipelines.settings import worker_settings
    from pipelines.worker import Worker

    job: list[Any] = [order.get("job")]
    children: list[int] = []

    def both() -> list[int]:
        return [os.getppid()] if order.get("both") else []

    class Forked(_Forked):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            children.append(self.pid)
            job.clear()

    _arm(order, order.get("worker"), told, lambda: children[-1:] if order.get("both") else [])
    directory = Path(order["directory"])
    settings = worker_settings(registry=directory / "registry.toml", **SETTINGS | order.get("settings", {}))
    worker = Worker(order["database"], directory / "store", order.get("scheduler", "threads"), settings)
    _Forked.before = staticmethod(worker.catalog.close)  # a connection must not be used on both sides of a fork
    _Forked.arm = staticmethod(lambda: _arm(order, job[0] if job else None, told, both))
    pipelines.child.subprocess = SimpleNamespace(Popen=Forked, PIPE=subprocess.PIPE)  # type: ignore[attr-defined]
    worker.run(once=True)
    return 0


def _command(order: dict[str, Any], told: int) -> int:
    """Run `synthmap …`."""
    from synthmap.cli import main

    sys.argv = ["synthmap", *order["command"]]
    _arm(order, order.get("fault"), told, list)
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _carry_out(order: dict[str, Any], told: int) -> int:
    """Do what is asked in a process of its own.

    Keys: `directory` of the site; `command`, the words after ``synthmap``, else a worker over `database`. `job`,
    `worker` and `fault` (of a command) are faults: ``["kill", N]`` at a step, ``["after", seconds]``, ``["full", N]``
    from a step on. A fault of `job` is met by the first attempt only. With `both`, worker and job die together.
    """
    os.setsid()
    log = os.open(Path(order["directory"]) / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    steps.install()
    status = 1
    try:
        status = _command(order, told) if "command" in order else _work(order, told)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return status


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

    from pipelines.partition import Partition, collect
    from pipelines.synthesize import draw
    from pipelines.tabulate import HEADCOUNT, Stretch, tabulate
    from synthmap.analysis.prior_table import read_prior_table, write_prior_table
    from synthmap.geography.read import read_zones
    from synthmap.geography.region import make_region, write_region
    from synthmap.geography.zones import Zones
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
        draw(spec, collect(spec, Partition(0, headcount.size), [(whole, table)], headcount, place, place), place, place)
    threads = {(one / "comm").read_text() for one in Path("/proc/self/task").iterdir()}
    assert not any(name.startswith("polars-0") for name in threads), f"a fork of this process would hang: {threads}"


def _serve(spec: Path) -> None:
    warm(spec)
    for line in sys.stdin:
        order = json.loads(line)
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os._exit(_carry_out(order, writer))
        os.close(writer)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            told = os.read(reader, 1 << 20).decode().splitlines()
        except BlockingIOError:
            told = []
        os.close(reader)
        sys.stdout.write(json.dumps({"status": status, "faults": told}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
