"""OD queries: which rows of a table between two levels, in which order, a page at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.boxes import Box, project
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.sums import Sums, sums_of
from synthmap.published.table import Block, Rows
from synthmap.published.units import Units

MOST = 2**53  # of counts and numbers of rows: what every JSON reader takes as an exact number
Kind = Literal["between", "within", "elsewhere"]
"""What a flow is: between two units, within one, or from everywhere else. Between two levels none is within."""


@dataclass(frozen=True)
class Query:
    """Which flows are asked for.

    Attributes
    ----------
    origin_level, destination_level : str
        A parent level, or `ZONE`. Flows are summed to units of these.
    origins, destinations : tuple of str
        Ids of units at their level; none: all.
    min_count : int
        Least count of a flow, after summing.
    top : int, optional
        Only the so many largest flows, by count, then ids; without, all of them in the order of ids.
    box : Box, optional
        Only flows with units in it, by their points. A flow's count never depends on the box.
    box_end : {"origin", "destination", "both"}, optional
        Which ends must be in the box; must be told where there is one.
    kind : {"between", "within", "elsewhere"}, optional
        Only flows of this kind.

    Raises
    ------
    QueryError
        If there is a box, but not whose.
    """

    origin_level: str = ZONE
    destination_level: str = ZONE
    origins: tuple[str, ...] = ()
    destinations: tuple[str, ...] = ()
    min_count: int = 1
    top: int | None = None
    box: Box | None = None
    box_end: Literal["origin", "destination", "both"] | None = None
    kind: Kind | None = None

    def __post_init__(self) -> None:
        if self.box is not None and self.box_end is None:
            raise QueryError("bbox_end must be given with bbox: origin, destination or both, which ends lie in it")


@dataclass(frozen=True)
class Position:
    """The last row of a page: where the next one goes on, whatever was published meanwhile."""

    count: int
    origin: str
    destination: str
    taken: int  # rows of all pages so far


@dataclass(frozen=True)
class Page:
    """Some rows of an answer.

    Attributes
    ----------
    rows : polars.DataFrame
        Columns ``origin``, ``destination`` (ids), ``count``, segments; between zones ``low`` and ``high`` of the count,
        where the release tells them.
    origins, destinations : ndarray of float64, shape (rows, 2)
        Longitude and latitude of the ends; NaN for everywhere else.
    next : Position, optional
        Where the next page starts, if there is one.
    sums : dict of int, optional
        Workers of all flows of a query for the largest, of every kind, whichever it asks for.
    """

    rows: pl.DataFrame
    origins: NDArray[np.float64]
    destinations: NDArray[np.float64]
    next: Position | None
    sums: dict[Kind, int] | None = None


@dataclass(frozen=True)
class _Picked:
    """Rows picked from blocks: pairs of codes, and values by column (count first)."""

    origins: NDArray[np.uint32]
    destinations: NDArray[np.uint32]
    values: NDArray[np.int64]  # shape (columns, rows)

    def take(self, rows: NDArray[np.int64] | slice) -> "_Picked":
        return _Picked(self.origins[rows], self.destinations[rows], self.values[:, rows])


def find_flows(opened: OpenedRelease, query: Query, *, limit: int, after: Position | None = None) -> Page:
    """Return at most `limit` flows of the answer to a query, those behind `after`.

    Raises
    ------
    QueryError
        If the release lacks a level or an id.
    ReleaseCorruptError
        If its files cannot be read.
    """
    table = sums_of(opened, query.origin_level, query.destination_level)
    search = _Search(opened, table, query, after)
    taken = after.taken if after else 0
    if query.top is None:
        wanted, found = limit, search.first(limit + 1)
    else:
        left = max(0, query.top - taken)
        wanted, found = min(limit, left), search.largest(min(limit + 1, left))
    page = found.take(slice(0, wanted))
    rows = _rows(opened, table, page)
    last = None
    if found.origins.size > wanted:
        origin, destination, count = rows.row(-1)[:3]
        last = Position(count, origin, destination, taken + wanted)
    ends = _points(table.origins, page.origins), _points(table.destinations, page.destinations)
    return Page(rows, *ends, last, search.sums if query.top is not None else None)


def _rows(opened: OpenedRelease, table: Sums, picked: _Picked) -> pl.DataFrame:
    """Return picked rows with the ids of their ends."""
    names = ("count", *opened.manifest.segments, *table.interval)
    return pl.DataFrame(
        [
            table.origins.ids(picked.origins).alias("origin"),
            table.destinations.ids(picked.destinations).alias("destination"),
            *(pl.Series(name, column) for name, column in zip(names, picked.values, strict=True)),
        ]
    )


def _points(units: Units, codes: NDArray[np.uint32]) -> NDArray[np.float64]:
    return np.stack([units.longitude[codes], units.latitude[codes]], axis=1)


class _Search:
    """One query over the blocks of a table."""

    def __init__(self, opened: OpenedRelease, table: Sums, query: Query, after: Position | None) -> None:
        self._table, self._query = table, query
        self._origins = _chosen(
            opened, table.origins, query.origins, "origin", query.box if query.box_end != "destination" else None
        )
        self._destinations = _chosen(
            opened,
            table.destinations,
            query.destinations,
            "destination",
            query.box if query.box_end != "origin" else None,
        )
        self._columns = 1 + len(opened.manifest.segments) + len(table.interval)
        self._elsewhere = None if opened.manifest.zones.elsewhere is None else _code(table.origins, ELSEWHERE, "origin")
        self._alike = table.origins.level == table.destinations.level
        self.sums: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
        self._after: tuple[int, int, int] | None = None
        if after is not None:
            origin = _code(table.origins, after.origin, "cursor")
            destination = _code(table.destinations, after.destination, "cursor")
            self._after = after.count, destination, origin

    def first(self, number: int) -> _Picked:
        """Return the first rows in the order of destinations, then origins."""
        parts: list[_Picked] = []
        found = 0
        start = self._after[1] if self._after else 0
        for block in self._blocks(start):
            behind = block.after(*self._after[1:]) if self._after else 0
            rows = self._of_kind(block, self._wanted(block, self._query.min_count))
            rows = rows[np.searchsorted(rows, behind) :][: number - found]
            parts.append(self._picked(block, rows))
            found += rows.size
            if found >= number:
                break
        return self._joined(parts)

    def largest(self, number: int) -> _Picked:
        """Return the largest rows, by count, then destination, then origin; add all rows to the sums."""
        best = self._joined([])
        least = self._query.min_count
        for block in self._blocks(0):
            every = self._wanted(block, self._query.min_count)
            self._add(block, every)
            rows = self._of_kind(block, every[block.values[0][every] >= least])
            counts = block.values[0][rows]
            if self._after:
                top, destination, origin = self._after
                later = (counts < top) | ((counts == top) & (rows >= block.after(destination, origin)))
                rows, counts = rows[later], counts[later]
            rows = rows[_largest(counts, number)]
            if rows.size:
                best = self._joined([best, self._picked(block, rows)])
                best = best.take(_largest(best.values[0], number))
            if best.origins.size >= number > 0:
                least = int(best.values[0][number - 1]) + 1  # an equal one that comes later ranks behind
        return best

    def _blocks(self, start: int) -> Iterator[Block]:
        """Yield the blocks that may hold wanted destinations from the code `start` on."""
        table = self._table
        wanted = table.last >= start
        if self._destinations is not None:
            codes = np.flatnonzero(self._destinations)
            wanted &= np.searchsorted(codes, table.first) < np.searchsorted(codes, table.last, side="right")
        for number in np.flatnonzero(wanted).tolist():
            yield table.block(number)

    def _wanted(self, block: Block, least: int) -> NDArray[np.int64]:
        """Return the rows of a block with wanted ends and a count of `least` or more."""
        inside: Rows = slice(0, block.origins.size)
        if self._destinations is not None:
            inside = block.rows(np.flatnonzero(self._destinations[block.destinations]))
        counts, origins = block.values[0][inside], block.origins[inside]
        if self._origins is None:
            found = np.flatnonzero(counts >= least)
        elif least <= 1:
            found = np.flatnonzero(self._origins[origins])
        else:
            found = np.flatnonzero(counts >= least)
            found = found[self._origins[origins[found]]]
        return found + inside.start if isinstance(inside, slice) else inside[found]

    def _kinds(self, block: Block, rows: NDArray[np.int64]) -> dict[Kind, NDArray[np.bool_]]:
        """Return which rows are of each kind."""
        origins, none = block.origins[rows], np.zeros(rows.size, np.bool_)
        elsewhere = none if self._elsewhere is None else origins == self._elsewhere
        within = ~elsewhere & (origins == block.destination_of(rows)) if self._alike else none
        return {"between": ~(elsewhere | within), "within": within, "elsewhere": elsewhere}

    def _of_kind(self, block: Block, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows if self._query.kind is None else rows[self._kinds(block, rows)[self._query.kind]]

    def _add(self, block: Block, rows: NDArray[np.int64]) -> None:
        """Add the workers of rows to the sums."""
        counts = block.values[0][rows]
        for kind, among in self._kinds(block, rows).items():
            self.sums[kind] += int(counts[among].sum(dtype=np.int64))

    def _picked(self, block: Block, rows: NDArray[np.int64]) -> _Picked:
        values = np.stack([column[rows].astype(np.int64) for column in (*block.values, *block.interval)])
        return _Picked(block.origins[rows], block.destination_of(rows), values)

    def _joined(self, parts: list[_Picked]) -> _Picked:
        none = np.empty(0, np.uint32)
        return _Picked(
            np.concatenate([none, *(part.origins for part in parts)]),
            np.concatenate([none, *(part.destinations for part in parts)]),
            np.concatenate([np.empty((self._columns, 0), np.int64), *(part.values for part in parts)], axis=1),
        )


def _largest(counts: NDArray[np.integer], number: int) -> NDArray[np.int64]:
    """Return the places of the largest counts, of equal ones the first, in that order."""
    return np.argsort(np.iinfo(counts.dtype).max - counts, kind="stable")[:number]


def _code(units: Units, name: str, parameter: str) -> int:
    return int(units.codes((name,), parameter)[0])


def _chosen(
    opened: OpenedRelease, units: Units, ids: tuple[str, ...], parameter: str, box: Box | None
) -> NDArray[np.bool_] | None:
    """Return which units are asked for; None for all."""
    if not ids and box is None:
        return None
    chosen = np.ones(len(units), np.bool_)
    if ids:
        chosen[:] = False
        chosen[units.codes(ids, parameter)] = True
    if box is not None:
        key = (opened.etag, "points", units.level, box.crs)
        points = opened.memory.get(key, lambda: project(units.longitude, units.latitude, box.crs))
        chosen &= box.holds(points.first, points.second)
    return chosen
