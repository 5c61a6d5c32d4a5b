"""A confidential origin-destination table, read in blocks, its ids replaced by ranks of zones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.confidential.files import check_columns, read_blocks
from synthmap.confidential.unknown import UnknownIds
from synthmap.confidential.validation import ids_of, whole_numbers
from synthmap.errors import (
    ConfidentialDataError,
    ConfigurationError,
    UnknownZoneError,
    VintageError,
)
from synthmap.geography.arrays import row_sums, rows_at
from synthmap.geography.zones import Zones
from synthmap.spec import TableSpec


@dataclass(frozen=True)
class Chunk:
    """A block of a confidential table, ids replaced by ranks.

    Attributes
    ----------
    destination : ndarray of int32, shape (rows,)
        Rank in the zones.
    origin : ndarray of int32, shape (rows,)
        Rank in the zones; ``len(zones)`` means elsewhere.
    counts : ndarray of int64, shape (rows, S)
        Workers of each segment, S = max(1, number of segment columns); no row is all 0.
    beyond : ndarray of uint64, shape (rows whose origin is elsewhere,)
        A number for the id of each of these origins as it is written, see `id_numbers`.
    """

    destination: NDArray[np.int32]
    origin: NDArray[np.int32]
    counts: NDArray[np.int64]
    beyond: NDArray[np.uint64]


@dataclass(frozen=True)
class Columns:
    """Which column of a file plays which part; no `count` means one row a worker."""

    file: str
    destination: str
    origin: str
    count: str | None
    segments: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """All that are read."""
        return [
            self.destination,
            self.origin,
            *([self.count] if self.count else []),
            *self.segments,
        ]


def one_row_a_worker(table: TableSpec) -> bool:
    """Return whether the table has one row a worker, so that equal rows are no duplicates."""
    return table.format == "long" and table.count is None


def read_table(
    table: TableSpec,
    zones: Zones,
    *,
    segments: tuple[str, ...],
    outside: Literal["refuse", "elsewhere"],
    part: tuple[int, int] = (0, 1),
) -> Iterator[Chunk]:
    """Return the rows of a confidential table in blocks, never more than one of them in memory.

    Vintage and header are checked at once, the rest while reading. Nothing may be made of the
    chunks before the last one has come: unknown ids are told at the end, when all have been seen.

    Parameters
    ----------
    table : TableSpec
        Where the file is and what its columns mean; its content is confidential.
    zones : Zones
        All destinations, and all origins on the map; public.
    segments : tuple of str
        Columns that split the count; empty for the total alone.
    outside : {"refuse", "elsewhere"}
        What an origin is that is empty or no zone: a fault, or off the map. Not so a zone's id that was written
        otherwise, for instance as a number, which is a fault with both.
    part : (int, int)
        Which part of the file, and of how many, see `read_blocks`.

    Returns
    -------
    iterator of Chunk
        In the order of the file; rows whose counts are all 0 are left out.

    Raises
    ------
    VintageError
        If table and zones are of different vintages; before the file is opened.
    UnknownZoneError
        If a destination, or with ``"refuse"`` an origin, is not a zone.
    ConfidentialDataError
        If the file or a column breaks a rule; the message never shows a count or a row.
    ConfigurationError
        If one column is to play two parts, or the separator cannot separate.
    """
    if table.vintage != zones.vintage:
        raise VintageError(
            f"{table.path.name}: vintage ({table.vintage}) must be that of the zones "
            f"({zones.vintage}); use the zones the table was made for"
        )
    columns = columns_of(table, segments)
    check_columns(table, columns.names, zones)
    blocks = read_blocks(table, columns.names, part)
    return _chunks(blocks, columns, zones, outside == "elsewhere")


def columns_of(table: TableSpec, segments: tuple[str, ...]) -> Columns:
    """Return the columns to read."""
    destination, origin, count = table.destination, table.origin, table.count
    if table.format == "lodes":
        destination, origin, count = "w_geocode", "h_geocode", "S000"
    columns = Columns(table.path.name, destination or "", origin or "", count, segments)
    twice = sorted({name for name in columns.names if columns.names.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"{table.path.name}: origin, destination, count and segments must be different "
            f"columns; {', '.join(twice)} is named more than once"
        )
    return columns


def _chunks(blocks: Iterator[pa.RecordBatch], columns: Columns, zones: Zones, elsewhere: bool) -> Iterator[Chunk]:
    """Yield the chunks of a file whose header has been checked; tell unknown ids at the end."""
    destinations = UnknownIds(columns.file, columns.destination, zones)
    origins = UnknownIds(columns.file, columns.origin, zones, elsewhere=elsewhere)
    for block in blocks:
        destination, _ = _ranks(block, destinations)
        if destinations.empty:
            raise ConfidentialDataError(destinations.message())
        origin, beyond = _ranks(block, origins)
        counts = counts_of(block, columns)
        if destinations or origins:
            continue
        keep = row_sums(counts) > 0
        beyond = beyond.filter(pa.array(keep[origin < 0]))
        numbers = id_numbers(beyond) if len(beyond) else np.empty(0, np.uint64)
        origin[origin < 0] = len(zones)
        yield Chunk(destination[keep], origin[keep], rows_at(counts, np.flatnonzero(keep)), numbers)
    faults = [destinations.message()] if destinations else []
    if origins:
        way_out = "" if origins.respelled else '; if such origins lie off the map, set outside = "elsewhere"'
        faults.append(origins.message() + way_out)
    if faults:
        raise UnknownZoneError("; ".join(faults))


def _ranks(block: pa.RecordBatch, unknown: UnknownIds) -> tuple[NDArray[np.int32], pa.StringArray]:
    """Return the rank of each id of a column, −1 for those that are no zone; and these, which `unknown` has seen."""
    ids = ids_of(block.column(unknown.column), f"{unknown.file}: column {unknown.column}")
    ranks = unknown.zones.find(ids)
    beyond = ids.filter(pa.array(ranks < 0))
    if len(beyond):
        unknown.add(beyond)
    return np.array(ranks), beyond


def id_numbers(ids: pa.StringArray) -> NDArray[np.uint64]:
    """Return a number for each id, shape (ids,), the same for the same id everywhere; an empty one is one like others.

    Two ids have the same one, a hash of 64 bits, only by chance. It is as secret as the id.
    """
    from pandas.util import hash_array  # takes a while to import, and few tables need it

    found = pc.fill_null(ids, "").dictionary_encode()
    each = hash_array(found.dictionary.to_numpy(zero_copy_only=False), categorize=False)
    numbers: NDArray[np.uint64] = each[np.asarray(found.indices)]
    return numbers


def counts_of(block: pa.RecordBatch, columns: Columns) -> NDArray[np.int64]:
    """Return the counts, shape (rows, S); checks that segments sum to the total."""

    def numbers(column: str) -> NDArray[np.int64]:
        return whole_numbers(block.column(column), f"{columns.file}: column {column}")

    total = numbers(columns.count) if columns.count else np.ones(block.num_rows, np.int64)
    if not columns.segments:
        return total[:, np.newaxis]
    counts = np.stack([numbers(segment) for segment in columns.segments], axis=1)
    if (row_sums(counts) != total).any():
        names = ", ".join(columns.segments)
        rule = (
            f"sum to column {columns.count} in every row"
            if columns.count
            else "be one 1 and otherwise 0 in every row, which stands for one worker"
        )
        raise ConfidentialDataError(f"{columns.file}: columns {names} must {rule}")
    return counts
