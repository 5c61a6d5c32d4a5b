"""Flows between units, the strongest first."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.published.table import narrowed
from synthmap.published.tiles_table import Flows, joined
from synthmap.published.tiles_units import Units

MOST = 1 << 24  # flows kept of one level, the strongest: bounds memory at about 200 MB
_STRETCH = 1 << 20


@dataclass(frozen=True)
class RankedFlows:
    """Flows between units, the strongest first.

    Among equal counts a fixed shuffle decides, not the ids, so that no corner of the map is preferred.

    Attributes
    ----------
    units : Units
    origin, destination : ndarray of int32, shape (flows,)
        Units.
    count : ndarray of unsigned integers, shape (flows,)
        Synthetic workers.
    """

    units: Units
    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    count: NDArray[np.integer]

    def __len__(self) -> int:
        return self.count.size

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory beside its units."""
        return self.origin.nbytes + self.destination.nbytes + self.count.nbytes

    def take(self, rows: slice | NDArray[np.int64]) -> "RankedFlows":
        """Return some of the flows."""
        return RankedFlows(self.units, self.origin[rows], self.destination[rows], self.count[rows])

    def lines(self) -> NDArray[np.float64]:
        """Return both ends of each flow, shape (flows, 2 ends, 2 coordinates), the shorter way round the globe.

        Origins lie in the world's square; a destination may lie west or east of it.
        """
        x, y = self.units.x, self.units.y
        ends = np.empty((len(self), 2, 2))
        step = x[self.destination] - x[self.origin]
        ends[:, 0, 0], ends[:, 1, 0] = x[self.origin], x[self.origin] + step - np.round(step)
        ends[:, 0, 1], ends[:, 1, 1] = y[self.origin], y[self.destination]
        return ends


def rank_flows(stretches: Iterable[Iterable[Flows]], units: Units) -> RankedFlows:
    """Return the flows between `units`; when there are more than `MOST`, the strongest.

    Flows from everywhere else are not on the map.

    Parameters
    ----------
    stretches : iterable of iterables of Flows
        As `tiles_table.stretches` yields them for these units.
    units : Units
    """
    found: list[Flows] = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8))]
    for stretch in stretches:
        parts = []
        for origin, destination, count in stretch:
            here = origin >= 0
            ends = units.of_zone[origin[here]], units.of_zone[destination[here]]
            parts.append(_pairs(*ends, count[here], len(units)))
        found.append(parts[0] if len(parts) == 1 else _pairs(*joined(parts), len(units)))
        if sum(part[0].size for part in found) > MOST:
            found = [_ranked(found)]
    return RankedFlows(units, *_ranked(found))


def _pairs(origin: NDArray[np.int32], destination: NDArray[np.int32], count: NDArray[np.integer], units: int) -> Flows:
    """Return flows with each pair once, by destination, then origin."""
    key = destination.astype(np.int64) * units + origin
    if (key[1:] > key[:-1]).all():  # flows between zones, as a release has them
        return origin, destination, narrowed(count)
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.add.reduceat(count[order], first, dtype=np.int64) if first.size else count
    return origin[order][first], destination[order][first], narrowed(count)


def _ranked(parts: list[Flows]) -> Flows:
    """Return the `MOST` strongest flows in order, and empty `parts`, so that memory does not hold them twice.

    Count, shuffle and row are packed into one number each, which is sorted in place: half the memory of an argsort.
    """
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()
    origin, destination, count = (np.concatenate(columns.pop(0)) for _ in range(3))
    largest = int(count.max(initial=0))
    for_row = count.size.bit_length()
    for_shuffle = min(32, 64 - for_row - largest.bit_length())
    key = np.arange(count.size, dtype=np.uint64)
    for start in range(0, count.size, _STRETCH):
        part = slice(start, start + _STRETCH)
        key[part] |= (_shuffled(origin[part], destination[part]) >> np.uint64(64 - for_shuffle)) << np.uint64(for_row)
        key[part] |= np.uint64(largest) - count[part].astype(np.uint64) << np.uint64(for_row + for_shuffle)
    key.sort()
    key = key[:MOST]
    key &= np.uint64((1 << for_row) - 1)
    rows = key.astype(np.uint32)
    del key
    origin = origin[rows]
    destination = destination[rows]
    return origin, destination, narrowed(count[rows])


def _shuffled(origin: NDArray[np.int32], destination: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return a number for each pair that looks random (the finalizer of SplitMix64)."""
    mixed = (origin.astype(np.uint64) << np.uint64(32)) + destination.astype(np.uint64)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
