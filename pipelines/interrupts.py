"""Signals that end a program as Ctrl-C does, so that what is confidential goes from the disk; wherever they arrive.

What a signal's handler raises is raised wherever the main thread happens to be. In a callback of the garbage collector
or a finalizer Python drops it ("Exception ignored in …"), and the program would go on: so it is raised once more, a
moment later.
"""

import signal
import sys
from types import FrameType

_AGAIN_SECONDS = 0.01


def end_on(*numbers: int, once: bool = False) -> None:
    """Raise KeyboardInterrupt in the main thread when one of these signals arrives.

    Parameters
    ----------
    once : bool
        Later ones of them are ignored: a second signal does not end the cleaning up.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if once:
            for each in numbers:
                signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, interrupt)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    if sys.unraisablehook is not _raise_again:
        _raise_again.others = sys.unraisablehook  # type: ignore[attr-defined]
        sys.unraisablehook = _raise_again


def _raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    else:
        _raise_again.others(dropped)  # type: ignore[attr-defined]
