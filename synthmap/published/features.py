"""Features of a release: its layers, and the pages of what is asked of one."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import NotFoundError
from synthmap.published.features_filter import Filter
from synthmap.published.features_flows import Flows
from synthmap.published.features_layer import Layer, Operand
from synthmap.published.features_region import Region
from synthmap.published.features_zones import Zones
from synthmap.published.store import OpenedRelease

LAYERS: dict[str, Callable[[OpenedRelease], Layer]] = {
    "flows": Flows,
    "origins": lambda opened: Zones(opened, "origins"),
    "destinations": lambda opened: Zones(opened, "destinations"),
}
_AT_ONCE = 1 << 20  # features whose bits are looked at together; a multiple of 8


def open_layer(opened: OpenedRelease, kind: str) -> Layer:
    """Return a layer of a release: ``flows``, ``origins`` or ``destinations``.

    Raises
    ------
    NotFoundError
        If it is none of them.
    """
    if kind not in LAYERS:
        raise NotFoundError(f"collection ({opened.id}.{kind}) must be one of the service's")
    return LAYERS[kind](opened)


@dataclass(frozen=True)
class Query:
    """What features are asked for: all that meet the region and pass every test.

    Attributes
    ----------
    region : Region, optional
    tests : tuple of str
        CQL2 JSON; conditions that must be true.
    crs : str
        CRS of geometries in the tests.
    """

    region: Region | None = None
    tests: tuple[str, ...] = ()
    crs: str = "OGC:CRS84"


@dataclass(frozen=True)
class Page:
    """Some features of an answer.

    Attributes
    ----------
    rows : ndarray of int64, shape (features,)
        Their places in the layer, ascending.
    matched : int
        Features of the whole answer.
    next : int, optional
        Place of the feature that the next page starts with, if there is one.
    """

    rows: NDArray[np.int64]
    matched: int
    next: int | None


@dataclass(frozen=True)
class _Matches:
    """Which features of a layer match, one bit each."""

    bits: NDArray[np.uint8]
    size: int
    matched: int

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes

    def first(self, start: int, number: int) -> NDArray[np.int64]:
        """Return the first `number` that match, from the place `start` on."""
        parts, found = [np.empty(0, np.int64)], 0
        for at in range(start - start % 8, self.size, _AT_ONCE):
            bits = np.unpackbits(self.bits[at // 8 : (at + _AT_ONCE) // 8])
            rows = np.flatnonzero(bits[: self.size - at]) + at
            rows = rows[np.searchsorted(rows, start) :][: number - found]
            parts.append(rows)
            found += rows.size
            if found >= number:
                break
        return np.concatenate(parts)


def find(layer: Layer, query: Query, *, start: int, limit: int) -> Page:
    """Return at most `limit` features of the answer to a query, from the place `start` on.

    Raises
    ------
    QueryError
        If a test names what is no property, or cannot be asked.
    ReleaseCorruptError
        If a file of the release cannot be read.
    """
    if query.region is None and not query.tests:
        rows = np.arange(min(start, len(layer)), min(start + limit + 1, len(layer)))
        return _page(rows, limit, len(layer))
    # what was found is kept: a page far behind costs no more than the first
    key = (layer.opened.etag, "matches", layer.kind, query)
    matches = layer.opened.memory.get(key, lambda: _match(layer, query))
    return _page(matches.first(start, limit + 1), limit, matches.matched)


def _page(rows: NDArray[np.int64], limit: int, matched: int) -> Page:
    return Page(rows[:limit], matched, int(rows[limit]) if rows.size > limit else None)


def _match(layer: Layer, query: Query) -> _Matches:
    """Return which features match: what depends on destinations alone is looked at first, and may spare the rest."""
    conditions = _conditions(Filter(layer, query.crs), query)
    conditions.sort(key=lambda one: {"constant": 0, "destination": 1, "origin": 2}.get(one.of, 3))
    parts = [np.empty(0, np.bool_)]
    for stretch in layer.stretches():
        out = np.ones(len(stretch), np.bool_)
        for condition in conditions:
            out &= condition.true(stretch)
            if not out.any():
                break
        parts.append(out)
    whole = np.concatenate(parts)
    return _Matches(np.packbits(whole), whole.size, int(np.count_nonzero(whole)))


def _conditions(filter_: Filter, query: Query) -> list[Operand]:
    """Return the conditions of a query; what is joined by AND is taken apart."""
    waiting: list[Any] = [json.loads(test) for test in query.tests]
    found = [] if query.region is None else [filter_.layer.meeting(query.region)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and node.get("op") == "and" and isinstance(node.get("args"), list) and node["args"]:
            waiting += node["args"]
        else:
            found.append(filter_.condition(node))
    return found
