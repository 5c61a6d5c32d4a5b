"""The OD table between units of any two levels, summed a few destination units at a time."""

import threading
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Block, Table, narrowed, units_of

ROWS = 1 << 18  # of the table between zones, summed at a time
DENSE = 1 << 20  # pairs of units for which a table of all of them is quicker than a hash table
Values = tuple[NDArray[np.integer], ...]
Keyed = tuple[NDArray[np.int64], Values]

_TURN = threading.Lock()  # one block is summed at a time, by all threads of polars: bounds memory


class Sums:
    """The OD table summed to levels; a block is some units of the destinations' level, whole.

    A table between zones has the same blocks as `Table`.
    """

    def __init__(self, opened: OpenedRelease, origin_level: str, destination_level: str) -> None:
        self._opened = opened.emptied()  # kept longer than a request: it must not hold the zones
        self._table = Table(opened)
        self._key = (opened.etag, "sums", origin_level, destination_level)
        self.origins = units_of(opened, origin_level)
        self.destinations = units_of(opened, destination_level)
        self._plain = origin_level == destination_level == ZONE
        self.interval = opened.interval if self._plain else ()  # those of sums are not the sums of intervals
        if self._plain:
            self.first, self.last = self._table.first, self._table.last
            return
        index = self._table.index
        self._unit = self.destinations.of[index.destinations]
        rows = np.bincount(self._unit, index.lengths, minlength=len(self.destinations))
        number = (np.cumsum(rows) - 1) // ROWS
        units = np.flatnonzero(rows)
        starts = np.flatnonzero(np.diff(number[units], prepend=-1))
        self.first = units[starts].astype(np.uint32)
        self.last = units[np.append(starts[1:], units.size) - 1].astype(np.uint32)

    def __len__(self) -> int:
        return self.first.size

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory, its blocks not counted."""
        return self.first.nbytes + self.last.nbytes + (0 if self._plain else self._unit.nbytes)

    def block(self, number: int) -> Block:
        """Return a block.

        Raises
        ------
        ReleaseCorruptError
            If a file cannot be read.
        """
        if self._plain:
            return self._table.block(number)
        return self._opened.memory.get((*self._key, number), lambda: self._sum(number))

    def _sum(self, number: int) -> Block:
        """Return the sums of a block."""
        low, high = int(self.first[number]), int(self.last[number])
        pairs = (high - low + 1) * len(self.origins)
        with _TURN:
            rows = _batches(self._keyed(low, high), min(pairs, ROWS))
            return self._block(low, *(_dense(rows, pairs) if pairs <= DENSE else _sparse(rows)))

    def _keyed(self, low: int, high: int) -> Iterator[Keyed]:
        """Yield the rows of destination units from `low` to `high`: the number of their pair of units, and values."""
        runs = np.flatnonzero((self._unit >= low) & (self._unit <= high))
        cuts = np.searchsorted(runs, self._table.index.first)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            of_block = runs[cuts[number] : cuts[number + 1]]
            block = self._table.block(number)
            inside = of_block - self._table.index.first[number]
            rows = block.rows(inside)
            first_pair = (self._unit[of_block].astype(np.int64) - low) * len(self.origins)
            key = np.repeat(first_pair, block.starts[inside + 1] - block.starts[inside])
            key += self.origins.of[block.origins[rows]]
            yield key, tuple(column[rows] for column in block.values)

    def _block(self, low: int, key: NDArray[np.int64], values: Values) -> Block:
        """Return sums in the order of their keys as a block."""
        destination, origin = np.divmod(key, len(self.origins))
        starts = np.concatenate(([0], np.flatnonzero(np.diff(destination)) + 1, [key.size]))
        of_run = (destination[starts[:-1]] + low).astype(np.uint32)
        return Block(of_run, starts, origin.astype(np.uint32), tuple(narrowed(column) for column in values))


def _batches(keyed: Iterator[Keyed], least: int) -> Iterator[Keyed]:
    """Yield the same rows in batches of `least` rows or more, but for the last."""
    waiting: list[Keyed] = []
    for part in keyed:
        waiting.append(part)
        if sum(key.size for key, _ in waiting) >= least:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Keyed]) -> Keyed:
    if len(parts) == 1:
        return parts[0]
    keys, values = zip(*parts, strict=True)
    return np.concatenate(keys), tuple(map(np.concatenate, zip(*values, strict=True)))


def _dense(batches: Iterator[Keyed], pairs: int) -> Keyed:
    """Return keys, ascending, and their sums (each below 2**53), added up in a table of all `pairs`."""
    sums: list[NDArray[np.float64]] = []
    for key, values in batches:
        added = [np.bincount(key, column, minlength=pairs) for column in values]
        sums = [total + more for total, more in zip(sums or np.zeros((len(added), 1)), added, strict=True)]
    found = np.flatnonzero(sums[0])
    return found, tuple(total[found].astype(np.int64) for total in sums)


def _sparse(batches: Iterator[Keyed]) -> Keyed:
    """Return keys, ascending, and their sums; sums of batches are joined whenever they have `ROWS` rows."""
    parts: list[pl.DataFrame] = []
    for key, values in batches:
        columns = {str(number): _wide(column) for number, column in enumerate(values)}
        parts.append(_grouped([pl.DataFrame({"key": key} | columns)]))
        if len(parts) > 1 and sum(part.height for part in parts) >= ROWS:
            parts = [_grouped(parts)]
    key, *sums = (column.to_numpy() for column in _grouped(parts).sort("key"))
    return key, tuple(sums)


def _wide(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return numbers that polars sums without overflow: it widens those of one or two bytes itself."""
    return values if values.itemsize <= 2 else values.astype(np.int64)


def _grouped(parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).group_by("key").agg(pl.all().sum())


def sums_of(opened: OpenedRelease, origin_level: str, destination_level: str) -> Sums:
    """Return the OD table of a release between units of two levels.

    Raises
    ------
    QueryError
        If the release has no such level.
    ReleaseCorruptError
        If its files cannot be read.
    """
    key = (opened.etag, "levels", origin_level, destination_level)
    return opened.memory.get(key, lambda: Sums(opened, origin_level, destination_level))
