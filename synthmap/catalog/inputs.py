"""What each process may be asked for: public choices only, never a path. The worker checks a release's again."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synthmap.errors import NotFoundError, QueryError

NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Release = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._-]{0,127}$")]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
File = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~%-]{1,400}$")]  # a format or a file that is offered to download
Column = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]


class _Inputs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReleaseInputs(_Inputs):
    """A release of a registered dataset; what is left out is as in the operator's spec."""

    dataset: Name
    epsilon: float | None = Field(default=None, gt=0, le=700)
    delta: float | None = Field(default=None, ge=0, lt=1)
    rule: Literal["pdp", "adp", "pure"] | None = None
    segments: Literal["SA", "SE", "SI"] | Annotated[list[Column], Field(max_length=100)] | None = None
    coarsening: Literal["prior-mass", "distance"] | None = None
    cells: Annotated[int, Field(ge=1, le=8_000_000)] | Literal["auto"] | None = None
    keep: Annotated[float, Field(gt=0, le=1)] | Literal["prior"] | None = None
    name: Name | None = None
    title: Text | None = None


class EvaluateInputs(_Inputs):
    """A release, measured against the dataset it was made from."""

    release: Release
    dataset: Name


class ExportInputs(_Inputs):
    """A release, written in formats to download."""

    release: Release
    formats: list[File] = Field(min_length=1, max_length=100)


PROCESSES: dict[str, type[_Inputs]] = {"release": ReleaseInputs, "evaluate": EvaluateInputs, "export": ExportInputs}


def checked_inputs(process: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return `inputs` of `process` without what was left out.

    Raises
    ------
    NotFoundError
        If there is no such process.
    QueryError
        If an input is unknown, missing or breaks a rule; the message names all of them.
    """
    if process not in PROCESSES:
        raise NotFoundError(f"process ({process}) must be one of {', '.join(PROCESSES)}")
    try:
        return PROCESSES[process].model_validate(inputs).model_dump(exclude_none=True)
    except ValidationError as fault:
        lines = (f"{_place(e['loc'])}: {e['msg']}" for e in fault.errors(include_url=False, include_input=False))
        raise QueryError(f"inputs of process {process} must follow their schema: {'; '.join(lines)}") from None


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "inputs"
