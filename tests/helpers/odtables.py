"""Small confidential tables, and what refusing one may show."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from synthmap.confidential.table import read_table
from synthmap.errors import (
    ConfidentialDataError,
    SynthmapError,
)
from synthmap.geography.zones import Zones
from synthmap.spec import TableSpec

SECRETS = ("987654", "876543")
SEGMENTS = ("SA01", "SA02", "SA03")
LODES = "w_geocode,h_geocode,S000,SA01,SA02,SA03,createdate\n"
GOOD = LODES + "01,02,987654,987653,1,0,20211018\n02,E3,3,1,1,1,20211018\n"

Write = Callable[..., Path]


def lodes(path: Path, **keys: Any) -> TableSpec:
    return TableSpec(path=path, vintage="2010", **keys)


def long(path: Path, count: str | None = "n", **keys: Any) -> TableSpec:
    return TableSpec(path=path, vintage="2010", format="long", origin="o", destination="d", count=count, **keys)


def rows(
    table: TableSpec,
    zones: Zones,
    segments: tuple[str, ...] = (),
    outside: Literal["refuse", "elsewhere"] = "refuse",
) -> list[tuple[Any, ...]]:
    """The table's rows as (destination, origin, counts), ids put back."""
    names = [*zones.ids.to_pylist(), "elsewhere"]
    return [
        (names[d], names[o], *map(int, n))
        for chunk in read_table(table, zones, segments=segments, outside=outside)
        for d, o, n in zip(chunk.destination, chunk.origin, chunk.counts, strict=True)
    ]


def visible(error: BaseException | None) -> Iterator[str]:
    """All texts a traceback of `error` would print."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def refusal(
    table: TableSpec,
    zones: Zones,
    *phrases: str,
    kind: type[SynthmapError] = ConfidentialDataError,
    segments: tuple[str, ...] = (),
    outside: Literal["refuse", "elsewhere"] = "refuse",
) -> str:
    """The message, after checking that it says what it should and nothing it must not."""
    with pytest.raises(SynthmapError) as caught:
        list(read_table(table, zones, segments=segments, outside=outside))
    assert type(caught.value) is kind, str(caught.value)
    for text in visible(caught.value):
        assert not any(secret in text for secret in SECRETS), text
    message = str(caught.value)
    assert table.path.name in message
    assert "\n" not in message
    for phrase in phrases:
        assert phrase in message, message
    return message
