"""What all stages share: errors that carry no secret, and files of their own for every attempt."""

import functools
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from synthmap.errors import SynthmapError

P = ParamSpec("P")
R = TypeVar("R")


class StageError(SynthmapError):
    """A stage failed for a reason that is not the user's; the message has no content of any table."""


def stage(function: Callable[P, R]) -> Callable[P, R]:
    """Let only synthmap's own errors out of a task.

    Any other exception may quote confidential data; it is replaced by its type and the stage's name, without its
    chain, before Dask logs it or sends it on.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SynthmapError as fault:
            kind, text = type(fault), str(fault)
        except Exception as fault:
            kind, text = StageError, describe(function.__name__, fault)
        raise kind(text)

    return guarded


def attempt(directory: Path, name: str) -> Path:
    """Return a path that no other attempt at the same task writes to."""
    return directory / f"{name}-{secrets.token_hex(8)}"


def describe(stage_name: str, fault: BaseException) -> str:
    """Return where and as what a stage failed, without the exception's text."""
    if isinstance(fault, OSError) and fault.strerror:
        return f"stage {stage_name} failed: {fault.strerror}"
    trace, place = fault.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "synthmap" in code.co_filename or "pipelines" in code.co_filename:
            place = f" in {code.co_name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"stage {stage_name} failed with {type(fault).__name__}{place}; this is a fault of synthmap, please report it"
    )
