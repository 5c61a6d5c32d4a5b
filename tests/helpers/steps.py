"""Steps of a process: what it does to files below a place and to the catalog, counted; and a fault at a chosen one.

For processes that are forked to die. What is counted: files opened for writing, written by Arrow, renamed, removed,
made durable; directories made and removed; statements that write to the catalog, and both sides of every commit. Of the
files that are removed with their directory only one in three is a step.
"""

import errno
import itertools
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_EVENTS = {
    "os.rename": "rename", "os.remove": "remove", "os.mkdir": "mkdir", "os.rmdir": "rmdir", "os.chmod": "chmod",
    "os.truncate": "truncate",
}  # fmt: skip
_READS = ("select", "pragma", "set ", "show", "begin", "savepoint", "release savepoint")
_EMPTIED = itertools.count()
Deed = Callable[["Steps", str, str], None]
GROWING = {"write", "mkdir", "statement", "commit"}


@dataclass
class Steps:
    """The steps of this process below `root`, and what to do at each of them.

    Attributes
    ----------
    root : Path
    deed : callable
        Called with the step before it is done: it may end the process or raise.
    number : int
        Steps so far.
    written : str or None
        The file that the step before opened to write: half of it may be there when the process dies.
    """

    root: Path
    deed: Deed
    number: int = 0
    written: str | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, kind: str, path: object = "") -> None:
        place = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if kind != "statement" and Path(place).is_absolute() and not place.startswith(str(self.root)):
            return
        with self.lock:
            self.number += 1
            self.deed(self, kind, place)
            self.written = place if kind == "write" else None


current: Steps | None = None


def watch(steps: Steps | None) -> None:
    """Let `steps` be told of the steps of this process from now on."""
    global current  # noqa: PLW0603
    current = steps


def take(kind: str, path: object = "") -> None:
    if current is not None:
        current.take(kind, path)


def _audited(event: str, arguments: tuple) -> None:
    if current is None:
        return
    if event == "open":
        path, _, flags = arguments
        if not isinstance(path, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            take("write", path)
    elif (
        event in _EVENTS
        and not isinstance(arguments[0], int)
        and (Path(os.fsdecode(arguments[0])).is_absolute() or next(_EMPTIED) % 3 == 0)
    ):
        take(_EVENTS[event], arguments[0])


def install() -> None:
    """Let this process count, once `watch` says for whom."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from sqlalchemy.engine.default import DefaultDialect

    fsync, write_table, os_file = os.fsync, pq.write_table, pa.OSFile
    execute, commit = DefaultDialect.do_execute, DefaultDialect.do_commit

    def fsynced(handle):
        take("fsync")
        fsync(handle)

    def written(table, where, *args, **options):
        take("write", where)
        write_table(table, where, *args, **options)

    def opened(path, *args, **options):
        take("write", path)
        return os_file(path, *args, **options)

    def executed(self, cursor, statement, *args, **options):
        if not statement.lstrip().lower().startswith(_READS):
            take("statement", statement.split("\n")[0][:40])
        execute(self, cursor, statement, *args, **options)

    def committed(self, connection):
        take("commit")
        commit(self, connection)
        take("committed")

    os.fsync, pq.write_table, pa.OSFile = fsynced, written, opened
    DefaultDialect.do_execute, DefaultDialect.do_commit = executed, committed
    sys.addaudithook(_audited)


@dataclass(frozen=True)
class KillAt:
    """SIGKILL of this process, and of others before it, at a step; what it was writing is there by half.

    Attributes
    ----------
    at : int or str
        Which step: its number, or its kind and the last part of its path.
    """

    at: int | str
    told: int
    others: Callable[[], list[int]] = list

    def __call__(self, steps: Steps, kind: str, place: str) -> None:
        name = f"{kind} {Path(place).name}".rstrip()
        if self.at in (steps.number, name):
            die(self.told, name, self.others(), steps.written)


@dataclass(frozen=True)
class HoldAt:
    """Waits at a step, in the thread that takes it, until a file that is made then is removed."""

    at: int
    told: int
    held: Path

    def __call__(self, steps: Steps, kind: str, place: str) -> None:
        if steps.number == self.at:
            watch(None)
            os.write(self.told, f"{kind} {Path(place).name}\n".encode())
            self.held.touch()
            while self.held.exists():
                time.sleep(0.002)


def die(told: int, name: str, others: list[int], torn: str | None = None) -> None:
    """End this process and `others` as a power cut would."""
    watch(None)
    os.write(told, f"{name}\n".encode())
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    if torn is not None and (half := Path(torn)).is_file():
        os.truncate(torn, half.stat().st_size // 2)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def die_after(seconds: float, told: int, others: Callable[[], list[int]] = list) -> None:
    """Let a thread end this process after a while, wherever it is."""

    def wait() -> None:
        time.sleep(seconds)
        die(told, f"after {seconds:.4f} s", others())

    threading.Thread(target=wait, daemon=True).start()


@dataclass(frozen=True)
class FullFrom:
    """A disk that is full from a step on: nothing can be made or grow, things can still be removed."""

    at: int
    told: int

    def __call__(self, steps: Steps, kind: str, place: str) -> None:
        if steps.number < self.at or kind not in GROWING:
            return
        os.write(self.told, f"{kind} {Path(place).name}\n".encode())
        if kind in ("statement", "commit"):
            raise sqlite3.OperationalError("database or disk is full")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
