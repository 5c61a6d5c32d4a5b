"""Wall clocks that jump: those of synthmap and its pipeline in this process; no monotonic one, and no test's."""

import datetime as library
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

_OURS = ("synthmap", "pipelines")


class Wall:
    """A wall clock.

    Attributes
    ----------
    shift : timedelta
        By how much it is wrong.
    """

    def __init__(self) -> None:
        self.shift = timedelta()

    def move(self, by: timedelta) -> None:
        self.shift += by


def wall(replace: Callable[[Any, str, Any], None], *others: str) -> Wall:
    """Return a clock that what is loaded so far looks at from now on, put there by `replace`, such as `setattr`.

    Also the packages that are `others`.
    """
    found, true = Wall(), time.time

    class Moved(library.datetime):
        @classmethod
        def now(cls, tz: library.tzinfo | None = None) -> "Moved":
            return super().now(tz) + found.shift  # type: ignore[return-value]

    def moved() -> float:
        return true() + found.shift.total_seconds()

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in (*_OURS, *others):
            for own, original, other in (("datetime", library.datetime, Moved), ("time", true, moved)):
                if vars(module).get(own) is original:
                    replace(module, own, other)
    return found


_own: list[Wall] = []  # the clock of a process that was forked to jump, and of those that it forks


def keep_jumping(seconds: Iterable[float], every: float = 0.003) -> None:
    """Let the wall clock of this process jump all the time, by the next of some seconds, around and around.

    It starts a day ahead, so that steps that lead back to their beginning never make it right.
    """
    _own[:] = _own or [wall(setattr)]
    _own[0].shift = timedelta(days=1)

    def jump() -> None:
        for one in itertools.cycle(list(seconds)):
            _own[0].move(timedelta(seconds=one))
            time.sleep(every)

    threading.Thread(target=jump, daemon=True).start()
