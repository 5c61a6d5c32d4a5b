"""The OD table of a release in chunks that fit in memory, and its totals by zone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Table

ROWS = 131_072  # of a chunk, and of a row group of Parquet


@dataclass(frozen=True)
class Chunk:
    """Some rows of the OD table, in its order.

    Attributes
    ----------
    table : polars.DataFrame
        Columns origin, destination, count and the segments.
    origin, destination : ndarray of int64, shape (rows,)
        Rows of the release's places; -1 is everywhere else.
    """

    table: pl.DataFrame
    origin: NDArray[np.int64]
    destination: NDArray[np.int64]


def count_rows(opened: OpenedRelease) -> int:
    """Return the number of rows of the OD table, from the files' footers."""
    return int(opened.collect(opened.flows.select(pl.len())).item())


def from_elsewhere(opened: OpenedRelease) -> int:
    """Return how many synthetic workers live off the map."""
    if opened.manifest.zones.elsewhere is None:
        return 0
    table = Table(opened)
    away = table.zones.codes((ELSEWHERE,), "origin")[0]

    def count() -> np.int64:
        blocks = (table.block(number, keep=False) for number in range(len(table)))
        return np.int64(sum(int(one.values[0][one.origins == away].sum()) for one in blocks))

    return int(opened.memory.get((opened.etag, "from elsewhere"), count))


def chunks(opened: OpenedRelease) -> Iterator[Chunk]:
    """Yield the OD table, `ROWS` rows at a time.

    Raises
    ------
    ReleaseCorruptError
        If a file cannot be read or names a zone that zones.parquet does not have.
    """
    row = pl.DataFrame({"id": opened.places.ids, "row": np.arange(len(opened.places))})
    for table in _tables(opened):
        ends = _places(table["origin"], row), _places(table["destination"], row)
        strange = (ends[0] < 0) & (table["origin"] != ELSEWHERE).to_numpy() | (ends[1] < 0)
        if strange.any():
            raise ReleaseCorruptError(f"release {opened.id}: od/ names a zone that zones.parquet does not have")
        yield Chunk(table, *ends)


def _tables(opened: OpenedRelease) -> Iterator[pl.DataFrame]:
    """Yield the parts in their order, cut and put together to `ROWS` rows; the last may have fewer, but never none."""
    waiting: list[pl.DataFrame] = []
    for part in opened.parts:
        lazy = pl.scan_parquet(opened.file(part), glob=False)
        height = int(opened.collect(lazy.select(pl.len())).item())
        for start in range(0, height, ROWS):
            waiting.append(opened.collect(lazy.slice(start, ROWS)))
            if sum(frame.height for frame in waiting) >= ROWS:
                both = pl.concat(waiting)
                yield both.head(ROWS)
                waiting = [both.slice(ROWS)]
    rest = pl.concat(waiting) if waiting else pl.DataFrame()
    if rest.height:
        yield rest


def _places(ids: pl.Series, row: pl.DataFrame) -> NDArray[np.int64]:
    """Return the row of the place of each id, -1 where there is none."""
    found = ids.to_frame("id").join(row, on="id", how="left", maintain_order="left")
    return found["row"].fill_null(-1).to_numpy()


@dataclass(frozen=True)
class Totals:
    """Synthetic workers at one end of the flows, by zone; the last row is everywhere else.

    Attributes
    ----------
    sums : ndarray of int64, shape (zones + 1, 1 + segments)
        Of count and of each segment.
    within : ndarray of int64, shape (zones + 1,)
        Workers who live and work in the zone.
    from_elsewhere : ndarray of int64, shape (zones + 1,)
        Workers whose origin is everywhere else.
    """

    sums: NDArray[np.int64]
    within: NDArray[np.int64]
    from_elsewhere: NDArray[np.int64]


def totals(opened: OpenedRelease, end: str) -> Totals:
    """Return the totals at `end`, ``origin`` or ``destination``, in one pass over the table."""
    columns = ["count", *opened.manifest.segments]
    sums = np.zeros((len(opened.places) + 1, len(columns)), np.int64)
    within, away = np.zeros(len(sums), np.int64), np.zeros(len(sums), np.int64)
    for chunk in chunks(opened):
        at = chunk.origin if end == "origin" else chunk.destination  # -1 is the last row
        count = chunk.table["count"].to_numpy()
        for place, column in enumerate(columns):
            np.add.at(sums[:, place], at, chunk.table[column].to_numpy())
        np.add.at(within, at, np.where(chunk.origin == chunk.destination, count, 0))
        np.add.at(away, at, np.where(chunk.origin < 0, count, 0))
    return Totals(sums, within, away)
