"""What a process does at the moment when a file is there, however short the file is there for.

It looks before each thing that it does to a file, so that no moment passes unseen. Who looks from outside may miss it.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from waiting import PATIENCE


def die_at(root: str, sign: str, number: int) -> None:
    """Send this process a signal once a file below `root` matches `sign`."""
    _watch(root, lambda: sign, lambda: os.kill(os.getpid(), number))


@contextlib.contextmanager
def held_at(root: Path, sign: str) -> Iterator[None]:
    """Let the processes that `wait_where_asked` wait at `sign` while inside."""
    asked = _asked(root)
    asked.with_suffix(".part").write_text(sign, "utf-8")
    asked.with_suffix(".part").rename(asked)
    try:
        yield
    finally:
        asked.unlink()


def wait_where_asked(root: str) -> None:
    """Let threads of this process wait, once a file below `root` matches what `held_at` asks for, until it ends."""
    asked = _asked(root)

    def wait() -> None:
        end = time.monotonic() + 2 * PATIENCE  # whoever asked may be gone
        while asked.exists() and time.monotonic() < end:
            time.sleep(0.002)

    _watch(root, lambda: asked.read_text("utf-8") if asked.exists() else None, wait)


def waiting_at(root: Path) -> dict[str, str]:
    """Return the variables with which a new interpreter, and those that it starts, wait where asked below `root`."""
    helpers = Path(__file__).parent
    paths = [str(helpers / "started"), str(helpers), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "SYNTHMAP_TEST_ROOT": str(root)}


def _asked(root: str | Path) -> Path:
    return Path(f"{root}.held-at")


def _watch(root: str, sign: Callable[[], str | None], deed: Callable[[], None]) -> None:
    looking = threading.local()

    def look(event: str, _: object) -> None:
        if not event.startswith(("open", "os.")) or event.startswith("os.kill") or getattr(looking, "now", False):
            return
        looking.now = True
        try:
            with contextlib.suppress(OSError):  # what another thread removes meanwhile
                if (wanted := sign()) and any(Path(root).glob(wanted)):
                    deed()
        finally:
            looking.now = False

    sys.addaudithook(look)
