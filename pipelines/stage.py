"""What all stages share: errors that carry no secret, and files of their own for every attempt."""

import functools
import inspect
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from pipelines.places import fetch, results
from synthmap import errors
from synthmap.errors import SynthmapError

P = ParamSpec("P")
R = TypeVar("R")


class StageError(SynthmapError):
    """A stage failed for a reason that is not the user's; the message has no content of any table."""


class ToldElsewhereError(StageError):
    """A task was refused; by which rule stands in a file, so that no scheduler and no log of its workers reads it."""

    def __init__(self, stage_name: str, path: Path) -> None:
        super().__init__(stage_name, path)
        self._path = path

    def __str__(self) -> str:
        return f"stage {self.args[0]} was refused; the driver tells why"

    def told(self) -> SynthmapError:
        """Return the error itself."""
        try:
            values = json.loads(fetch(self._path, self._path.parent).read_text(encoding="utf-8"))
        except (OSError, ValueError, SynthmapError):
            return StageError(f"stage {self.args[0]} was refused, and why was lost; nothing was published")
        found: SynthmapError = getattr(errors, values["kind"], StageError)(values["text"])
        return found


def stage(function: Callable[P, R]) -> Callable[P, R]:
    """Let no error out of a task that tells anything of a table.

    synthmap's own errors may name zones; their text is written to the task's `directory`. Any other exception may
    quote confidential data; it is replaced by its type and the stage's name, without its chain. Both before Dask logs
    it or sends it on.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SynthmapError as fault:
            kind, text = type(fault).__name__, str(fault)
        except Exception as fault:
            kind, text = "", describe(function.__name__, fault)
        if not kind:
            raise StageError(text)
        raise _told_elsewhere(function.__name__, kind, text, signature.bind(*args, **kwargs).arguments["directory"])

    return guarded


def _told_elsewhere(name: str, kind: str, text: str, directory: Path) -> StageError:
    """Return the error that says where `text` was written."""
    path = attempt(directory, "fault")
    try:
        with results(directory) as here:
            (here / path.name).write_text(json.dumps({"kind": kind, "text": text}), encoding="utf-8")
    except OSError as fault:
        return StageError(f"stage {name} was refused, and why could not be written: {fault.strerror}")
    except SynthmapError as fault:
        return StageError(f"stage {name} was refused, and why could not be written: {fault}")
    return ToldElsewhereError(name, path)


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
