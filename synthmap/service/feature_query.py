"""Query parameters of features, as OGC API Features (Parts 1 to 3) has them."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fastapi import Request

from synthmap.errors import QueryError
from synthmap.published.boxes import CRS84
from synthmap.published.features import Query
from synthmap.published.features_crs import code_of
from synthmap.published.features_layer import Layer
from synthmap.published.features_parse import Language, parse_filter
from synthmap.published.features_region import box_region
from synthmap.service.parameters import numbers, refuse_unknown
from synthmap.service.settings import ServiceSettings

LANGUAGES: tuple[Language, ...] = ("cql2-text", "cql2-json")
OWN = ("bbox", "bbox-crs", "crs", "datetime", "filter", "filter-crs", "filter-lang", "limit", "start")
_LARGEST = 10**18  # places and limits: what a 64-bit integer holds with room


@dataclass(frozen=True)
class Asked:
    """What a request for features asks for.

    Attributes
    ----------
    query : Query
    start, limit : int
        Place of the first feature, and how many at most.
    crs : str
        URI of the CRS that geometries are sent in.
    """

    query: Query
    start: int
    limit: int
    crs: str


def read_query(request: Request, layer: Layer, settings: ServiceSettings) -> Asked:
    """Return what a request for features asks for.

    A property's name is a parameter, too: features that have this value of it.

    Raises
    ------
    QueryError
        If a parameter is unknown, given twice or malformed.
    """
    refuse_unknown(request, {*OWN, *layer.properties})
    given = single(request)
    crs, bbox_crs, filter_crs = (given.get(name, CRS84) for name in ("crs", "bbox-crs", "filter-crs"))
    codes = {name: code_of(layer.opened, uri, name) for name, uri in
             (("crs", crs), ("bbox-crs", bbox_crs), ("filter-crs", filter_crs))}  # fmt: skip
    region = None
    if "bbox" in given:
        region = box_region(numbers(given["bbox"], "bbox", (4, 6)), codes["bbox-crs"])
    tests: list[Any] = [_equals(layer, name, value) for name, value in given.items() if name in layer.properties]
    if "filter" in given:
        language = given.get("filter-lang", LANGUAGES[0])
        if language not in LANGUAGES:
            raise QueryError(f"filter-lang ({language}) must be one of {', '.join(LANGUAGES)}")
        tests.append(parse_filter(given["filter"], language))
    if "datetime" in given and not _within(given["datetime"], layer.opened.manifest.year):
        tests.append(False)
    return Asked(
        Query(region, tuple(json.dumps(test) for test in tests), codes["filter-crs"]),
        _whole(given.get("start", "0"), "start", 0),
        min(_whole(given.get("limit", str(settings.page_size)), "limit", 1), settings.page_size_maximum),
        crs,
    )


def read_crs(request: Request, layer: Layer) -> str:
    """Return the URI of the CRS that a single feature is asked for in; no other parameter is known."""
    refuse_unknown(request, {"crs"})
    uri = single(request).get("crs", CRS84)
    code_of(layer.opened, uri, "crs")
    return uri


def single(request: Request) -> dict[str, str]:
    """Return the query parameters, none of which may be given twice."""
    given = request.query_params.multi_items()
    found = dict(given)
    if len(found) != len(given):
        raise QueryError("query parameters must be given once each; for several values of a property use filter and IN")
    return found


def _whole(text: str, name: str, least: int) -> int:
    """Return a whole number of at least `least`."""
    if not (text.isascii() and text.isdigit() and least <= int(text[:20]) <= _LARGEST):
        raise QueryError(f"{name} ({text[:40]}) must be a whole number from {least} on")
    return int(text)


def _equals(layer: Layer, name: str, text: str) -> dict[str, Any]:
    """Return the test that a property has a value."""
    value: str | float = text
    if layer.properties[name].type != "string":
        value = numbers(text, name, (1,))[0]
    return {"op": "=", "args": [{"property": name}, value]}


def _within(text: str, year: int | None) -> bool:
    """Return whether a ``datetime`` meets a year; what has no year is never left out."""
    ends = text.split("/")
    if len(ends) > 2 or (len(ends) == 2 and all(end in ("", "..") for end in ends)):
        raise QueryError("datetime must be a time, or an interval with one end at least: 2020-01-01T00:00:00Z/..")
    first, last = (None if len(ends) == 2 and end in ("", "..") else _time(end) for end in (ends[0], ends[-1]))
    if first and last and first > last:
        raise QueryError("datetime must be an interval that begins before it ends")
    if year is None:
        return True
    begin, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    return (first is None or first < end) and (last is None or last >= begin)


def _time(text: str) -> datetime:
    """Return a time of RFC 3339, or the beginning of a date, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        if len(text) < len("2020-01-01") or "W" in text.upper():
            raise ValueError
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise QueryError(f"datetime ({text[:40]}) must be made of times like 2020-01-01T00:00:00Z") from None
