"""A confidential origin-destination table, read in blocks, its ids replaced by ranks of zones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
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
    """

    destination: NDArray[np.int32]
    origin: NDArray[np.int32]
    counts: NDArray[np.int64]


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
        What an origin is that is empty or no zone: a fault, or off the map.
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
    destinations = UnknownIds(columns.file, columns.destination)
    origins = UnknownIds(columns.file, columns.origin)
    for block in blocks:
        destination = _ranks(block, columns.destination, zones, destinations)
        if destinations.empty:
            raise ConfidentialDataError(destinations.message())
        origin = _ranks(block, columns.origin, zones, origins)
        counts = counts_of(block, columns)
        if destinations or (origins and not elsewhere):
            continue
        origin[origin < 0] = len(zones)
        keep = counts.any(axis=1)
        yield Chunk(destination[keep], origin[keep], counts[keep])
    faults = [destinations.message()] if destinations else []
    if origins and not elsewhere:
        way_out = 'if such origins lie off the map, set outside = "elsewhere"'
        faults.append(f"{origins.message()}; {way_out}")
    if not faults and origins and (short := origins.short_of_a_zero(zones)):
        raise UnknownZoneError(
            f"{columns.file}: ids of column {columns.origin} must have their leading zeros; '{short}' is no zone, but "
            "with zeros before it is one; read the column as text where the file was made"
        )
    if faults:
        raise UnknownZoneError("; ".join(faults))


def _ranks(block: pa.RecordBatch, column: str, zones: Zones, unknown: UnknownIds) -> NDArray[np.int32]:
    """Return the rank of each id of `column`, −1 for those added to `unknown`."""
    ids = ids_of(block.column(column), f"{unknown.file}: column {column}")
    ranks = zones.find(ids)
    missing = ranks < 0
    if missing.any():
        unknown.add(ids.filter(pa.array(missing)))
    return np.array(ranks)


def counts_of(block: pa.RecordBatch, columns: Columns) -> NDArray[np.int64]:
    """Return the counts, shape (rows, S); checks that segments sum to the total."""

    def numbers(column: str) -> NDArray[np.int64]:
        return whole_numbers(block.column(column), f"{columns.file}: column {column}")

    total = numbers(columns.count) if columns.count else np.ones(block.num_rows, np.int64)
    if not columns.segments:
        return total[:, np.newaxis]
    counts = np.stack([numbers(segment) for segment in columns.segments], axis=1)
    if (counts.sum(axis=1) != total).any():
        names = ", ".join(columns.segments)
        rule = (
            f"sum to column {columns.count} in every row"
            if columns.count
            else "be one 1 and otherwise 0 in every row, which stands for one worker"
        )
        raise ConfidentialDataError(f"{columns.file}: columns {names} must {rule}")
    return counts


def merge_duplicates(
    destination: NDArray[np.int32],
    origin: NDArray[np.int32],
    counts: NDArray[np.int64],
    *,
    policy: Literal["refuse", "sum"],
    zones: Zones,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows sorted by destination, then origin, each pair once.

    Many origins off the map share one rank, so rows from elsewhere are summed under either policy.

    Parameters
    ----------
    destination, origin : ndarray of int32, shape (rows,)
        Ranks in `zones`; an origin of ``len(zones)`` is elsewhere. Confidential.
    counts : ndarray of int64, shape (rows, S)
        Workers of each segment. Confidential.
    policy : {"refuse", "sum"}
        What a pair in several rows is: a fault, or several parts of one flow. Tables with one row a
        worker need ``"sum"``.
    zones : Zones
        Public.

    Raises
    ------
    ConfidentialDataError
        If a pair occurs twice under ``"refuse"``; names up to ten destinations, never an origin.
    """
    pair = destination.astype(np.int64) * (len(zones) + 1) + origin
    order = np.argsort(pair, kind="stable")
    pair = pair[order]
    first = np.ones(pair.size, dtype=np.bool_)
    first[1:] = pair[1:] != pair[:-1]
    again = order[~first]
    again = again[origin[again] < len(zones)]
    if policy == "refuse" and again.size:
        raise ConfidentialDataError(_duplicates_message(np.unique(destination[again]), zones))
    if first.all():
        return destination[order], origin[order], counts[order]
    starts = np.flatnonzero(first)
    kept = order[starts]
    return destination[kept], origin[kept], np.add.reduceat(counts[order], starts, axis=0)


def _duplicates_message(destinations: NDArray[np.int32], zones: Zones) -> str:
    """Return the message for pairs in several rows, at `destinations`."""
    ids = zones.ids.take(pa.array(destinations[:10])).to_pylist()
    more = ", …" if destinations.size > 10 else ""
    return (
        f"each pair of origin and destination must occur once; some occur in several rows, at "
        f"destination {', '.join(map(repr, ids))}{more}: remove the repeated rows, or set "
        f'duplicates = "sum" if they are parts of one flow'
    )
