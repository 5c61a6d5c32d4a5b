"""Entries of the ledger: what they say, exactly, and how they are written down and chained."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthmap.catalog.inputs import NAME, Name, Release
from synthmap.errors import LedgerError

GENESIS = "0" * 64  # what the first entry names as the hash before it
_HASH = r"^[0-9a-f]{64}$"


class Kind(StrEnum):
    """What an entry records; `SPENDING` are losses."""

    BUDGET = "budget"
    RELEASE = "release"
    IMPLICATES = "implicates"  # several draws of one release
    SEGMENTS = "segments"
    METRICS = "metrics"  # computed on the confidential table, for anyone but the curator
    QUERY = "query"
    DRAWING = "drawing"  # a loss that can no longer be refunded: from here on random numbers are drawn
    REFUND = "refund"


SPENDING = (Kind.RELEASE, Kind.IMPLICATES, Kind.SEGMENTS, Kind.METRICS, Kind.QUERY)


class Adjacency(StrEnum):
    """The protected changes that a loss may be stated for."""

    ORIGIN = "one worker of one destination has another origin; destination and headcount fixed"
    ORIGIN_OR_SEGMENT = (
        "one worker of one destination has another origin or another segment or both; destination and headcount fixed"
    )


def _lowest_terms(text: str) -> str:
    if str(Fraction(text)) != text:
        raise ValueError("must be in lowest terms")
    return text


Rational = Annotated[str, Field(max_length=4000, pattern=r"^[0-9]+(/[1-9][0-9]*)?$"), AfterValidator(_lowest_terms)]
Hash = Annotated[str, Field(pattern=_HASH)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Part(_Strict):
    """A step that is repeated: ε and δ of one time, exact; R draws for up to J jobs are R·J times."""

    name: str = Field(min_length=1, max_length=100)
    times: int = Field(ge=1, le=1_000_000)
    epsilon: Rational
    delta: Rational


class Charge(_Strict):
    """A loss: (ε, δ)-DP for a stated change of the confidential data, everything included.

    Attributes
    ----------
    kind : Kind
        One of `SPENDING`.
    rule : str
        The certificate: that of a noise level, or ``dp`` for (ε, δ)-DP proved elsewhere.
    max_jobs_per_worker : int
        Jobs of a person that the loss covers together.
    epsilon, delta : str
        Totals over `parts`, exact fractions.
    """

    kind: Literal[Kind.RELEASE, Kind.IMPLICATES, Kind.SEGMENTS, Kind.METRICS, Kind.QUERY]
    adjacency: Adjacency
    rule: Literal["pdp", "adp", "pure", "dp"]
    max_jobs_per_worker: int = Field(ge=1, le=100)
    parts: tuple[Part, ...] = Field(min_length=1, max_length=1000)
    epsilon: Rational
    delta: Rational

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if (self.epsilon, self.delta) != _totals(self.parts):
            raise ValueError("epsilon and delta must be the sums over the parts")
        if self.rule == "pure" and self.delta != "0":
            raise ValueError("delta must be 0 under rule pure")
        return self


class Content(_Strict):
    """Marks of a dataset, made with a key that only workers have: equal for equal content, else without meaning.

    How tables are written down (order, rows, format, names of columns, files) does not change them.

    Attributes
    ----------
    key : str
        Tells keys apart.
    tables : tuple of str
        Marks of the jobs in each table, in any few of them and in all together, whichever end is called origin; sorted.
    columns : dict of str to str
        By column of counts that is read, ``count`` for the total: mark of its flows in all tables together.
    public : str
        Mark of zones and weights, and of how the tables are read.
    """

    key: Hash
    tables: tuple[Hash, ...] = Field(min_length=1)
    columns: dict[str, Hash] = Field(min_length=1)
    public: Hash


class Budget(_Strict):
    """The ceiling of a dataset as its curator typed it, exact."""

    epsilon: Rational
    delta: Rational


class Body(_Strict):
    """What an entry says.

    Attributes
    ----------
    dataset : str
    number : int
        1 for the first of the dataset.
    kind : Kind
    name : str
        Id of the release, or of what else was paid for; empty for the budget.
    charge : Charge, optional
        Of a loss.
    content : Content, optional
        Of a loss: the data it was incurred on.
    budget : Budget, optional
    job : str, optional
    time : str
        For people; no rule reads it. Of a release when its run began, of what follows a loss that of the loss.
    previous : str
        Hash of the entry before.
    """

    format: Literal["synthmap-ledger-1"] = "synthmap-ledger-1"
    dataset: Name
    number: int = Field(ge=1)
    kind: Kind
    name: Release | Literal[""]
    charge: Charge | None = None
    content: Content | None = None
    budget: Budget | None = None
    job: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    time: str = Field(max_length=40)
    previous: Hash

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        spends, budget = self.kind in SPENDING, self.kind is Kind.BUDGET
        if (self.charge is not None, self.content is not None, self.budget is not None) != (spends, spends, budget):
            raise ValueError("charge and content must be given for a loss, budget for a budget")
        if (self.charge is not None and self.charge.kind is not self.kind) or (self.name == "") is not budget:
            raise ValueError("charge and name must fit the kind")
        return self

    def to_json(self) -> str:
        """Return the text that is hashed and stored: keys sorted, no spaces, ASCII."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def read_body(text: str, where: str) -> Body:
    """Return the entry written in `text`.

    Raises
    ------
    LedgerError
        Unless `Body.to_json` wrote it; the message says `where`.
    """
    try:
        found = Body.model_validate_json(text)
    except (ValidationError, ValueError):
        found = None
    if found is None or found.to_json() != text:
        raise LedgerError(f"{where} must be as it was written; the ledger was damaged")
    return found


def hash_of(text: str) -> str:
    """Return the SHA-256 of an entry's text, which names the hash of the entry before."""
    return sha256(text.encode("ascii", errors="replace")).hexdigest()


def charge(
    kind: Kind, parts: Sequence[tuple[str, int, Fraction, Fraction]], *, adjacency: Adjacency, rule: str,
    max_jobs_per_worker: int,
) -> Charge:  # fmt: skip
    """Return the loss of all parts together, by sequential composition.

    Parameters
    ----------
    parts : sequence of (name, times, epsilon, delta)
        ε and δ of one time, exact: for a float, ``Fraction(value)``.
    rule : str
        ``pdp``, ``adp``, ``pure`` or ``dp``.

    Raises
    ------
    LedgerError
        If a figure or a name is none that the ledger knows how to add up.
    """
    try:
        listed = tuple(Part(name=n, times=t, epsilon=str(e), delta=str(d)) for n, t, e, d in parts)
        epsilon, delta = _totals(listed)
        values = {"kind": kind, "adjacency": adjacency, "rule": rule, "max_jobs_per_worker": max_jobs_per_worker,
                  "parts": listed, "epsilon": epsilon, "delta": delta}  # fmt: skip
        return Charge.model_validate(values)
    except ValidationError as fault:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors(include_url=False))
        raise LedgerError(f"charge ({kind}) must be one that the ledger can add up: {lines}") from None


def as_typed(value: float) -> Fraction:
    """Return a figure as it was typed: the shortest decimal that means this float."""
    return Fraction(Decimal(repr(float(value))))


def check_dataset(dataset: str) -> None:
    """Raise LedgerError unless `dataset` can be the id of one."""
    if not re.fullmatch(NAME, dataset):
        raise LedgerError(f"dataset ({dataset}) must match {NAME}")


def same_jobs(dataset: str, other: str) -> str:
    """Return what to say of a dataset that holds jobs of another one."""
    return (
        f"dataset ({dataset}) must have tables of its own; one holds the same jobs as dataset ({other}): losses on the "
        "same jobs add up, so ask for a release of that one"
    )


def _totals(parts: Sequence[Part]) -> tuple[str, str]:
    epsilon = sum((part.times * Fraction(part.epsilon) for part in parts), Fraction(0))
    delta = sum((part.times * Fraction(part.delta) for part in parts), Fraction(0))
    return str(epsilon), str(delta)
