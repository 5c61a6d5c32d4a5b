"""The OD table of a release in blocks of numbers, read when first asked for and kept while used."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.published.damage import unharmed
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.units import Units, parents_as_units, zones_as_units

Rows = slice | NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Some rows of a table, in the order of destinations, then origins: a sparse matrix by rows.

    Attributes
    ----------
    destinations : ndarray of uint32, shape (runs,)
        Codes, ascending.
    starts : ndarray of int64, shape (runs + 1,)
        The rows of a destination are those from its start to the next.
    origins : ndarray of uint32, shape (rows,)
        Codes, ascending within a destination.
    values : tuple of ndarray of int, shape (rows,)
        Count, then segments, each as narrow as it may be.
    interval : tuple of ndarray of int, shape (rows,)
        Low and high of the count, of tables between zones where the release tells them; else empty.
    """

    destinations: NDArray[np.uint32]
    starts: NDArray[np.int64]
    origins: NDArray[np.uint32]
    values: tuple[NDArray[np.integer], ...]
    interval: tuple[NDArray[np.integer], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        ends = self.destinations.nbytes + self.starts.nbytes + self.origins.nbytes
        return ends + sum(column.nbytes for column in (*self.values, *self.interval))

    def rows(self, runs: NDArray[np.int64]) -> Rows:
        """Return the rows of some destinations, given by their places, ascending."""
        if runs.size == 0:
            return slice(0, 0)
        if runs[-1] - runs[0] + 1 == runs.size:
            return slice(int(self.starts[runs[0]]), int(self.starts[runs[-1] + 1]))
        start = self.starts[runs]
        length = self.starts[runs + 1] - start
        before = np.cumsum(length) - length
        rows: NDArray[np.int64] = np.arange(int(length.sum())) + np.repeat(start - before, length)
        return rows

    def destination_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the codes of the destinations of rows."""
        return self.destinations[np.searchsorted(self.starts, rows, side="right") - 1]

    def after(self, destination: int, origin: int) -> int:
        """Return the first row behind a pair."""
        run = int(np.searchsorted(self.destinations, destination))
        if run == self.destinations.size or self.destinations[run] != destination:
            return int(self.starts[run])
        start, stop = self.starts[run : run + 2]
        return int(start + np.searchsorted(self.origins[start:stop], origin, side="right"))


def narrowed(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return numbers of at least 0 in the narrowest type that holds them."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))


@dataclass(frozen=True)
class _Index:
    """Where the rows of a destination lie.

    Attributes
    ----------
    groups : tuple of (str, int)
        File and row group of every block.
    first : ndarray of int64, shape (blocks + 1,)
        The runs of a block are those from its first to the next's.
    destinations : ndarray of uint32, shape (runs,)
    lengths : ndarray of int64, shape (runs,)
        Rows of the run.
    """

    groups: tuple[tuple[str, int], ...]
    first: NDArray[np.int64]
    destinations: NDArray[np.uint32]
    lengths: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.destinations.nbytes + self.lengths.nbytes


class Table:
    """The OD table between zones; a block is a row group of its files.

    Attributes
    ----------
    zones : Units
        Its ends.
    index : _Index
    """

    def __init__(self, opened: OpenedRelease) -> None:
        self._opened = opened.emptied()  # kept longer than a request: it must not hold the zones
        self.zones = units_of(opened, ZONE)
        self.index = opened.memory.get((opened.etag, "index"), self._read_index)
        self.first = self.index.destinations[self.index.first[:-1]]
        self.last = self.index.destinations[self.index.first[1:] - 1]

    def __len__(self) -> int:
        return len(self.index.groups)

    def block(self, number: int, *, keep: bool = True) -> Block:
        """Return a block.

        Who reads all of them once says that they need not be kept, and does not push out what others use.

        Raises
        ------
        ReleaseCorruptError
            If it cannot be read.
        """
        key = (self._opened.etag, "block", number)
        if keep or key in self._opened.memory:
            return self._opened.memory.get(key, lambda: self._read_block(number))
        return self._read_block(number)

    def _read_block(self, number: int) -> Block:
        segments = self._opened.manifest.segments
        table = self._read(*self.index.groups[number], ["origin", "count", *segments, *self._opened.interval])
        of, ends = self._coded(table["origin"])
        runs = slice(*self.index.first[number : number + 2])
        starts = np.concatenate(([0], np.cumsum(self.index.lengths[runs])))
        values = [table[name].to_numpy() for name in ("count", *segments)]
        interval = [table[name].to_numpy() for name in self._opened.interval]
        if starts[-1] != table.num_rows or min(int(column.min()) for column in (*values, *interval)) < 0:
            raise self._corrupt()
        numbers = tuple(map(narrowed, values)), tuple(map(narrowed, interval))
        return Block(self.index.destinations[runs], starts, ends[of], *numbers)

    def _read_index(self) -> _Index:
        groups, destinations, lengths = [], [], []
        for name in self._opened.parts:
            with unharmed(self._opened.id):
                number = pq.read_metadata(self._opened.file(name)).num_row_groups
            for group in range(number):
                of, ends = self._coded(self._read(name, group, ["destination"])["destination"])
                if of.size == 0:
                    continue
                starts = np.concatenate(([0], np.flatnonzero(np.diff(of)) + 1))
                groups.append((name, group))
                destinations.append(ends[of[starts]])
                lengths.append(np.diff(starts, append=of.size))
        found = np.concatenate([np.empty(0, np.uint32), *destinations])
        first = np.cumsum([0, *(one.size for one in destinations)])
        rises = np.diff(found.astype(np.int64))
        if (rises < 0).any() or (np.delete(rises, first[1:-1] - 1) == 0).any():
            raise self._corrupt()
        return _Index(tuple(groups), first, found, np.concatenate([np.empty(0, np.int64), *lengths]))

    def _read(self, name: str, group: int, columns: list[str]) -> pa.Table:
        """Return columns of a row group; ids as places in a dictionary."""
        with unharmed(self._opened.id):
            file = pq.ParquetFile(self._opened.file(name), read_dictionary=["origin", "destination"])
            table = file.read_row_group(group, columns=columns, use_threads=False)
        if table.column_names != columns or any(column.null_count for column in table.columns):
            raise self._corrupt()
        return table

    def _coded(self, ids: pa.ChunkedArray) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Return the place of each id in a dictionary, and the dictionary's codes."""
        with unharmed(self._opened.id):
            one = ids.unify_dictionaries().combine_chunks()
            one.validate(full=True)  # a page that went bad can be readable and name places that are not there
        codes, known = self.zones.find(pl.Series(one.dictionary, dtype=pl.String))
        if not known.all():
            raise self._corrupt()
        return one.indices.to_numpy(), codes

    def _corrupt(self) -> ReleaseCorruptError:
        return ReleaseCorruptError(f"release {self._opened.id}: od/ must be sorted rows between its zones; verify it")


def units_of(opened: OpenedRelease, level: str) -> Units:
    """Return the units of a level of a release.

    Raises
    ------
    QueryError
        If it has no such level.
    """
    opened.places.level(level)
    elsewhere = opened.manifest.zones.elsewhere is not None

    def make() -> Units:
        if level == ZONE:
            return zones_as_units(opened.places, elsewhere=elsewhere)
        return parents_as_units(opened.places, level, elsewhere=elsewhere)

    return opened.memory.get((opened.etag, "units", level), make)
