"""Signals that end a program as Ctrl-C does, so that what is confidential goes from the disk; wherever they arrive.

What a signal's handler raises is raised wherever the main thread happens to be. In a callback of the garbage collector
or a finalizer Python drops it ("Exception ignored in …"), and the program would go on: so it is raised once more, a
moment later. Between taking a lock of `threading` and the block that gives it back, the lock would stay taken, and
Dask's loop wait for it for ever: there it is put off by a moment.
"""

import signal
import sys
import threading
from types import FrameType

_AGAIN_SECONDS = 0.01
_WAITING = ("wait", "wait_for", "join", "_wait_for_tstate_lock")  # of `threading`: who waits there may be interrupted


def end_on(*numbers: int) -> None:
    """Raise KeyboardInterrupt in the main thread when the first of these signals arrives.

    Later ones are ignored: whoever asks again does not end the cleaning up.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        _ignore(*numbers)
        code = None if frame is None else frame.f_code
        if code is not None and code.co_filename == threading.__file__ and code.co_name not in _WAITING:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
            return
        raise KeyboardInterrupt

    for number in (*numbers, signal.SIGALRM):
        signal.signal(number, interrupt)
    if sys.unraisablehook is not _raise_again:
        _raise_again.others = sys.unraisablehook  # type: ignore[attr-defined]
        sys.unraisablehook = _raise_again


def settle(*numbers: int) -> None:
    """Ignore these signals from now on, and raise nothing once more: the program has done its work and leaves."""
    _ignore(*numbers, signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _ignore(*numbers: int) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    else:
        _raise_again.others(dropped)  # type: ignore[attr-defined]
