"""A forked program that is held like a `subprocess.Popen`, as far as tests of workers and commands do that."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil
from forks import Running
from waiting import PATIENCE, wait_for


class Forked:
    """What was forked as `running` and writes its last words to a file."""

    def __init__(self, running: Running, words: Path) -> None:
        self._running, self._words = running, words
        self._process = psutil.Process(running.pid)
        self.pid = running.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, if it has."""
        if self.returncode is None and not psutil.pid_exists(self.pid):
            self.returncode = self._running.wait().status
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        wait_for(lambda: self.poll() is not None, timeout)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float = PATIENCE) -> tuple[bytes, None]:
        """Return what it wrote, once it has ended."""
        self.wait(timeout)
        return self._words.read_bytes() if self._words.exists() else b"", None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                self._process.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
