"""Files that are made while a reader waits: each once, few at a time, each in a process of its own."""

import asyncio
import json
import sys
from pathlib import Path

from synthmap.errors import ExportError, ReleaseCorruptError, ReleaseNotFoundError
from synthmap.published.store import OpenedRelease
from synthmap.service.problems import Problem

_COMMAND = (sys.executable, "-m", "synthmap.published.exports")
_AT_ONCE = 2  # processes; each may take a core and some hundred MB
_WAITING = 16  # files; who asks for one more is told to come again
_AGAIN = {"Retry-After": "20"}


class Making:
    """The files being made. For one event loop; waiting holds no thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._tasks: dict[Path, asyncio.Task[None]] = {}

    async def make(self, opened: OpenedRelease, directory: Path, name: str, seconds: float) -> None:
        """Make the file `name` in `directory`; whoever asks while it is being made waits for the same.

        Parameters
        ----------
        opened : OpenedRelease
        directory : Path
        name : str
        seconds : float
            How long to wait; it goes on being made after that.

        Raises
        ------
        ExportError, ReleaseCorruptError
            As `synthmap.published.exports.export`.
        Problem
            503 if it takes longer, too many files are waiting, or the process failed.
        """
        target = directory / name
        task = self._tasks.get(target)
        if task is None:
            if len(self._tasks) >= _WAITING:
                raise Problem(503, "too many files are being made; ask again later", _AGAIN)
            task = asyncio.create_task(self._run(opened, directory, name))
            self._tasks[target] = task
            task.add_done_callback(lambda done: self._forget(target, done))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(task)  # a reader who leaves does not stop it for the others
        except TimeoutError:
            raise Problem(503, f"{name} is still being made; ask again later", _AGAIN) from None

    def _forget(self, target: Path, done: asyncio.Task[None]) -> None:
        """Let a task go; its error is known even if nobody waits any more."""
        del self._tasks[target]
        if not done.cancelled():
            done.exception()

    async def _run(self, opened: OpenedRelease, directory: Path, name: str) -> None:
        """Run the process; it ends with the service."""
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND, str(opened.directory), str(directory), name,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                told, _ = await process.communicate()
            except asyncio.CancelledError:
                process.kill()
                await process.communicate()
                raise
        if process.returncode:
            raise _refusal(told)


def _refusal(told: bytes) -> Exception:
    """Return what the process said if it is for the public, else a fixed text."""
    try:
        said = json.loads(told)
    except ValueError:
        said = {}
    for kind in (ExportError, ReleaseCorruptError, ReleaseNotFoundError):
        if said.get("error") == kind.__name__:
            return kind(said["detail"])
    return Problem(503, "the file could not be made; ask again later", _AGAIN)
