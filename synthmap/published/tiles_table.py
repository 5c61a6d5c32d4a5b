"""The OD table as rows of `Places`, and the workers of each unit."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from synthmap.geography.zones import ELSEWHERE
from synthmap.published.features_zones import totals_of
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Table

_TOGETHER = 1 << 20  # rows of a stretch


Flows = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.integer]]
"""Origins, destinations and counts."""


def stretches(opened: OpenedRelease, unit: NDArray[np.int32]) -> Iterator[Iterator[Flows]]:
    """Yield the table some destination units at a time, in no order, each in pieces of about a million rows.

    Ends are rows of `Places`; an origin everywhere else is −1.

    Parameters
    ----------
    opened : OpenedRelease
    unit : ndarray of int32, shape (zones,)
        The unit of every zone.
    """
    table = Table(opened)
    of_run = unit[place_of(table)[table.index.destinations]]
    stretch_of_unit = (np.cumsum(np.bincount(of_run, table.index.lengths)) - 1) // _TOGETHER
    stretch_of_run = stretch_of_unit[of_run]
    block_of_run = np.repeat(np.arange(len(table)), np.diff(table.index.first))
    stretches = np.unique(stretch_of_run)
    uses = np.zeros(len(table), np.int64)
    for stretch in stretches:
        uses[np.unique(block_of_run[stretch_of_run == stretch])] += 1
    for stretch in stretches:
        yield _pieces(table, np.flatnonzero(stretch_of_run == stretch), uses > 1)


def _pieces(table: Table, runs: NDArray[np.int64], again: NDArray[np.bool_]) -> Iterator[Flows]:
    """Yield the rows of some destinations, several blocks together; `again` says which of these others need, too."""
    place = place_of(table)
    cuts = np.searchsorted(runs, table.index.first)
    found: list[Flows] = []
    for number in np.flatnonzero(np.diff(cuts)).tolist():
        block = table.block(number, keep=bool(again[number]))
        inside = runs[cuts[number] : cuts[number + 1]] - table.index.first[number]
        rows = block.rows(inside)
        ends = np.repeat(block.destinations[inside], block.starts[inside + 1] - block.starts[inside])
        found.append((place[block.origins[rows]], place[ends], block.values[0][rows]))
        if sum(part[0].size for part in found) >= _TOGETHER:
            yield joined(found)
            found = []
    if found:
        yield joined(found)


def joined(parts: list[Flows]) -> Flows:
    """Return flows one after the other."""
    origin, destination, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    return origin, destination, count


def place_of(table: Table) -> NDArray[np.int32]:
    """Return the row of `Places` of every code of a table's zones; −1 for everywhere else."""
    off = (table.zones.names == ELSEWHERE).to_numpy()
    return np.where(off, -1, np.cumsum(~off) - 1).astype(np.int32)


def unit_totals(opened: OpenedRelease, kind: str, unit: NDArray[np.int32], units: int) -> dict[str, NDArray[np.int64]]:
    """Return count and segments of the workers who live (``origins``) or work (``destinations``) in each unit."""
    inside = place_of(Table(opened)) >= 0
    totals = totals_of(opened).of(kind)
    return {name: np.bincount(unit, sums[inside], minlength=units).astype(np.int64) for name, sums in totals.items()}
