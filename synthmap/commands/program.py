"""What `synthmap` does around its commands: one line for a user's error or an interrupt, and an exit code."""

import signal
import sys
from typing import Any

import typer

from pipelines.interrupts import end_on, settle
from synthmap.errors import SynthmapError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


class _InterruptedError(Exception):
    """A signal ended a command; of a KeyboardInterrupt the command line would tell only that there was one."""


def run(command: Any) -> None:
    """Run a command and leave: with 2 after a user's error, with 130 after a signal, each told in one line on stderr.

    Parameters
    ----------
    command : typer.core.TyperGroup
    """
    end_on(*_SIGNALS)
    try:
        code, text = _outcome(command)
        settle(*_SIGNALS)
    except KeyboardInterrupt:
        settle(*_SIGNALS)
        code, text = _INTERRUPTED, "interrupted"
    if text:
        typer.echo("synthmap: " + " ".join(text.split()), err=True)
    sys.exit(code)


def _outcome(command: Any) -> tuple[int, str]:
    """Return the exit code of a command and what to say of its end, if anything."""
    invoke = command.invoke

    def invoked(context: Any) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as fault:
            raise _InterruptedError("; ".join(["interrupted", *map(str, fault.args)])) from None

    command.invoke = invoked
    try:
        code = command(standalone_mode=False)
    except _InterruptedError as fault:
        return _INTERRUPTED, str(fault)
    except SynthmapError as fault:
        return 2, str(fault)
    except OSError as fault:
        return 2, f"{fault.filename or 'a file'} must be usable: {fault.strerror or 'the system refused'}"
    except Exception as fault:
        if not hasattr(fault, "format_message"):  # a usage error of click, which typer carries inside
            raise
        return 2, fault.format_message() or "a command must be given; see --help"
    code = code if isinstance(code, int) else 0
    return code, "interrupted" if code == _INTERRUPTED else ""
