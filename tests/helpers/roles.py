"""What a forked process can be: a worker of jobs, a command, the service, a Dask scheduler or one of its workers.

Each is the real program and may meet a fault on purpose; see `carry_out`.
"""

import asyncio
import ctypes
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import clocks
import moments
import steps

SETTINGS = {"lease_seconds": 0.2, "poll_seconds": 0.02, "grace_seconds": 20}
TASKS = {"tabulate": "pipelines.tabulate", "collect": "pipelines.partition", "measure": "pipelines.lengths",
         "plan_partition": "pipelines.planning", "draw": "pipelines.synthesize",
         "publish_zones": "pipelines.synthesize"}  # fmt: skip
_CAPABILITIES = 0x20080522  # version 3 of the kernel's interface
_ANYWHERE = 0b110  # root's rights to write and to read whatever modes say

Others = Callable[[], list[int]]


def carry_out(order: dict[str, Any], told: int) -> int:
    """Do what is asked, in a process of its own.

    Keys: `directory` of the site; `command`, the words after ``synthmap``, or those of a program of which `source` is
    given, or `serve`, a port, or `dask_scheduler`, a file for its address, or `dask_worker`, the address of a
    scheduler; else it is a worker over `database`, until no job is left or, if it `stays`, until it is stopped; then it
    writes to the file `words` what it did. `fault`, or `job` and `worker` of a worker, are faults (see `_fault`). One
    of `job` is met by the first attempt only. With `both`, worker and job die together. With `clock`, seconds, the wall
    clock jumps by the next of them all the time. `busy` are the seconds that a writer of SQLite waits. A process that
    is `plain` may do no more than what modes of files allow. What goes to standard output goes to the file `out`, if
    given, else to the log like the rest; a process with `environment` has that and no other. `dying`, a pattern and a
    signal: it is sent that as soon as such a file is there. Every process waits where `moments.held_at` asks it to.
    """
    os.setsid()
    if "environment" in order:
        os.environ.clear()
        os.environ.update(order["environment"])
        tempfile.tempdir = None  # asked for anew
    log = os.open(Path(order["directory"]) / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(os.open(order["out"], os.O_WRONLY | os.O_CREAT) if "out" in order else log, 1)
    os.dup2(log, 2)
    moments.wait_where_asked(order["directory"])
    if "dying" in order:
        moments.die_at(order["directory"], *order["dying"])
    steps.install()
    if "busy" in order:
        importlib.import_module("synthmap.catalog.database").BUSY_SECONDS = order["busy"]  # type: ignore[attr-defined]
    if order.get("plain"):
        _give_up_rights()
    roles = {"command": _command, "serve": _serve, "dask_scheduler": _dask_scheduler, "dask_worker": _dask_worker}
    status = 1
    try:
        status = next((role for key, role in roles.items() if key in order), _work)(order, told)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return status


def _fault(order: dict[str, Any], fault: list[Any] | None, told: int, others: Others = list) -> None:
    """Let this process meet a fault, or none.

    ``["kill", N]`` at a step, ``["kill at", TEXT]`` at the first of that description, ``["after", seconds]``;
    ``["full", N]``: a full disk from a step on; ``["hold", N]``: it waits at a step until the file
    ``<directory>.held``, which it makes, is removed.
    """
    steps.watch(None)
    kind, value = fault or ("", 0)
    if kind == "after":
        steps.die_after(value, told, others)
    deeds: dict[str, Callable[[], steps.Deed]] = {
        "kill": lambda: steps.KillAt(value, told, others),
        "kill at": lambda: steps.KillAt(value, told, others),
        "full": lambda: steps.FullFrom(value, told),
        "hold": lambda: steps.HoldAt(value, told, Path(f"{order['directory']}.held")),
    }
    deed = deeds[kind]() if kind in deeds else None
    if "clock" in order:
        clocks.keep_jumping(order["clock"])
    if deed is not None:
        steps.watch(steps.Steps(Path(order["directory"]), deed))


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


def _work(order: dict[str, Any], told: int) -> int:
    """Run a worker of jobs."""
    import pipelines.child
    from pipelines.settings import worker_settings
    from pipelines.worker import Worker
    from synthmap.commands.serving import ended

    job: list[Any] = [order.get("job")]
    children: list[int] = []

    def both() -> list[int]:
        return [os.getppid()] if order.get("both") else []

    class Forked(_Forked):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            children.append(self.pid)
            job.clear()

    _fault(order, order.get("worker"), told, lambda: children[-1:] if order.get("both") else [])
    directory = Path(order["directory"])
    settings = worker_settings(registry=directory / "registry.toml", **SETTINGS | order.get("settings", {}))
    worker = Worker(order["database"], directory / "store", order.get("scheduler", "threads"), settings)
    _Forked.before = staticmethod(worker.catalog.close)  # a connection must not be used on both sides of a fork
    _Forked.arm = staticmethod(lambda: _fault(order, job[0] if job else None, told, both))
    pipelines.child.subprocess = SimpleNamespace(Popen=Forked, PIPE=subprocess.PIPE)  # type: ignore[attr-defined]
    worker.run(once=not order.get("stays"))
    if "words" in order:
        Path(order["words"]).write_text(json.dumps(ended(worker.ended)), encoding="utf-8")
    return 0


def _command(order: dict[str, Any], told: int) -> int:
    """Run `synthmap …`, or the source of another program."""
    from synthmap.cli import main

    sys.argv = ["synthmap", *order["command"]]
    _fault(order, order.get("fault"), told)
    try:
        if "source" in order:
            exec(order["source"], {"__name__": "__main__"})  # noqa: S102
        else:
            main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _serve(order: dict[str, Any], told: int) -> int:
    """Run the service; its steps are also what comes in and what goes out, but not of who asks whether it is ready."""
    from synthmap.service.journal import Journal
    from synthmap.service.paths import OPEN
    from synthmap.service.serve import serve

    inner = Journal.__call__

    async def stepped(self: Journal, scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            steps.take(message["type"])
            await send(message)

        if scope["type"] != "http" or scope["path"] in OPEN:
            await inner(self, scope, receive, send)
            return
        steps.take("http.request")
        await inner(self, scope, receive, sending)
        steps.take("http.end")

    Journal.__call__ = stepped  # type: ignore[method-assign]
    os.environ["SYNTHMAP_SERVICE_REQUESTS_PER_MINUTE"] = "0"
    _fault(order, order.get("fault"), told)
    serve(store=Path(order["directory"]) / "store", port=order["serve"], database=order["database"])
    return 0


def _dask_scheduler(order: dict[str, Any], told: int) -> int:
    from distributed import Scheduler

    async def run() -> None:
        async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
            place = Path(order["dask_scheduler"])
            place.with_suffix(".part").write_text(scheduler.address)
            place.with_suffix(".part").rename(place)
            await scheduler.finished()

    asyncio.run(run())
    return 0


def _dask_worker(order: dict[str, Any], told: int) -> int:
    """Run a worker of one thread; its steps are also where each task begins and ends."""
    from distributed import Worker

    for name, module in TASKS.items():
        found = importlib.import_module(module)
        setattr(found, name, _stepped(getattr(found, name)))
    _fault(order, order.get("fault"), told)

    async def run() -> None:
        place = Path(order["directory"]) / "dask"
        place.mkdir(exist_ok=True)
        options = {"nthreads": 1, "local_directory": str(place), "dashboard_address": "127.0.0.1:0"}
        async with Worker(order["dask_worker"], **options) as worker:
            await worker.finished()

    asyncio.run(run())
    return 0


def _stepped(task: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(task)
    def stepped(*args: Any, **options: Any) -> Any:
        steps.take("begin", task.__name__)
        found = task(*args, **options)
        steps.take("end", task.__name__)
        return found

    return stepped


def _give_up_rights() -> None:
    """Let modes of files bind this process, as they do where it is not root."""
    kernel = ctypes.CDLL(None, use_errno=True)
    head, sets = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if kernel.capget(head, sets) == 0:
        sets[0] &= ~_ANYWHERE
        kernel.capset(head, sets)
