"""A process that carries out one job, as its worker sees it: started, heard, stopped, buried with all it started."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

from pipelines.jobs.order import Order

_BLOCK = 65_536


class Child:
    """A running ``python -m pipelines.jobs`` in a process group of its own.

    Attributes
    ----------
    stage : str
    percent : int
        The progress it told last.
    overdue : bool
        Whether its worker stopped it because it took too long.
    outcome : dict
        What it told in the end: ``result``, or ``message``, ``log`` and ``again``; empty if it was stopped or died.
    """

    def __init__(self, order: Order) -> None:
        self.stage, self.percent = "", 0
        self.overdue = False
        self.outcome: dict[str, Any] = {}
        self._rest = b""
        self._events, theirs = os.pipe()
        try:
            os.set_inheritable(theirs, True)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipelines.jobs"],
                stdin=subprocess.PIPE,  # closed by the worker's death, whatever its cause
                stdout=sys.stderr.fileno(),  # nothing is printed there; what a library prints is for the log
                pass_fds=[theirs],
                start_new_session=True,
            )
        except BaseException:
            os.close(self._events)
            raise
        finally:
            os.close(theirs)
        line = replace(order, events=theirs).to_json() + "\n"
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once; `listen` will tell

    def listen(self, seconds: float, also: int) -> bool:
        """Return whether the process goes on, after news of it, `seconds`, or when descriptor `also` is readable."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            selector.register(also, selectors.EVENT_READ)
            ready = [key.fd for key, _ in selector.select(max(seconds, 0))]
        if self._events in ready:
            block = os.read(self._events, _BLOCK)
            if not block:
                return False
            self._take(block)
        return not self._is_dead()

    def terminate(self) -> None:
        """Ask the process to clean up and end."""
        self._process.terminate()

    def bury(self, grace_seconds: float) -> int:
        """Return the exit status, once nothing of the process group is left; it has a while to end by itself."""
        end = time.monotonic() + grace_seconds
        while not self._is_dead() and time.monotonic() < end:
            time.sleep(0.02)
        os.killpg(self._process.pid, signal.SIGKILL)  # and what it started; before its id is free for others
        status = self._process.wait()
        while block := os.read(self._events, _BLOCK):
            self._take(block)
        os.close(self._events)
        if self._process.stdin is not None:
            self._process.stdin.close()
        return status

    def _is_dead(self) -> bool:
        """Return whether the process has ended; its id stays its own until `bury`."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _take(self, block: bytes) -> None:
        """Take note of what the process tells."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "stage" in event:
                self.stage, self.percent = event["stage"], event["percent"]
            else:
                self.outcome = event
