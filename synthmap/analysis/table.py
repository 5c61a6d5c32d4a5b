"""Two origin-destination tables over one geography, side by side: sparse pairs, never a zone × zone matrix."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.geography.distance import EARTH_KM, unit_vectors
from synthmap.geography.zones import Zones

ZONE = "zone"  # name of the finest level, that of the zones themselves
_BLOCK = 1_000_000  # rows whose distances are computed at once


@dataclass(frozen=True)
class ODTable:
    """Flows between the zones of one geography; a pair may be in several rows.

    Attributes
    ----------
    origin : ndarray of int32, shape (rows,)
        Rank in the zones; ``len(zones)`` means elsewhere.
    destination : ndarray of int32, shape (rows,)
        Rank in the zones.
    count : ndarray of int64, shape (rows,)
        Workers, at least 0.
    """

    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    count: NDArray[np.int64]


@dataclass(frozen=True)
class Paired:
    """Two tables side by side: every pair that occurs in either, once, sorted by destination and origin.

    Attributes
    ----------
    origin, destination : ndarray of int32, shape (pairs,)
        Ranks, or units of a level after `aggregate`.
    reference, other : ndarray of int64, shape (pairs,)
        Workers in the table that counts as true and in the one that is judged.
    places : int
        Number of possible origins, elsewhere included.
    """

    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    reference: NDArray[np.int64]
    other: NDArray[np.int64]
    places: int

    @property
    def starts(self) -> NDArray[np.int64]:
        """The row at which each destination starts."""
        return np.flatnonzero(np.diff(self.destination, prepend=-1))

    def merged(self) -> "Paired":
        """Return the same flows sorted, equal pairs added up."""
        return _merge(self.origin, self.destination, self.reference, self.other, self.places)


def pair(reference: ODTable, other: ODTable, zones: int) -> Paired:
    """Return two tables side by side.

    Parameters
    ----------
    reference, other : ODTable
        Over the same zones.
    zones : int
        Number of zones; the rank of elsewhere.
    """
    first = reference.origin.size
    count = np.concatenate([reference.count, other.count])
    judged = np.arange(count.size) >= first
    return _merge(
        np.concatenate([reference.origin, other.origin]),
        np.concatenate([reference.destination, other.destination]),
        np.where(judged, 0, count),
        np.where(judged, count, 0),
        zones + 1,
    )


def aggregate(
    paired: Paired,
    origin_unit: NDArray[np.int32] | None,
    destination_unit: NDArray[np.int32] | None,
) -> Paired:
    """Return the flows between units: `origin_unit[o]` is the unit of origin o; None leaves a side as it is."""
    origin = paired.origin if origin_unit is None else origin_unit[paired.origin]
    destination = paired.destination if destination_unit is None else destination_unit[paired.destination]
    places = paired.places if origin_unit is None else int(origin_unit.max()) + 1
    return _merge(origin, destination, paired.reference, paired.other, places)


def _merge(
    origin: NDArray[np.int32],
    destination: NDArray[np.int32],
    reference: NDArray[np.int64],
    other: NDArray[np.int64],
    places: int,
) -> Paired:
    """Return rows sorted by destination and origin, equal pairs added up, empty ones left out."""
    key = destination.astype(np.int64) * places + origin
    order = np.argsort(key, kind="stable")  # nearly linear: the input is a few sorted runs
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    if starts.size:
        reference = np.add.reduceat(reference[order], starts)
        other = np.add.reduceat(other[order], starts)
    key = key[starts]
    some = (reference > 0) | (other > 0)
    if not some.all():
        key, reference, other = key[some], reference[some], other[some]
    return Paired((key % places).astype(np.int32), (key // places).astype(np.int32), reference, other, places)


def units_by_level(zones: Zones) -> dict[str, NDArray[np.int32]]:
    """Return the unit of every rank at each level, finest (`ZONE`) first, shape (zones + 1,).

    Elsewhere, the last rank, is a unit of its own at every level.
    """
    out = {ZONE: np.arange(len(zones) + 1, dtype=np.int32)}
    for level, parent in zip(reversed(zones.levels), reversed(zones.parents), strict=True):
        coded = parent.dictionary_encode()
        unit = coded.indices.to_numpy().astype(np.int32)
        out.setdefault(level, np.append(unit, np.int32(len(coded.dictionary))))
    return out


def by_levels(paired: Paired, units: Mapping[str, NDArray[np.int32]]) -> Iterator[tuple[str, str, Paired]]:
    """Yield (origin level, destination level, flows between their units) for every pair of levels.

    Levels must be nested and finest first, so each table is made from the next finer one.
    """
    levels = list(units)
    ups: list[NDArray[np.int32] | None] = [None]
    for fine, coarse in itertools.pairwise(levels):
        up = np.empty(int(units[fine].max()) + 1, np.int32)
        up[units[fine]] = units[coarse]
        ups.append(up)
    column = paired
    for destination_level, destination_up in zip(levels, ups, strict=True):
        if destination_up is not None:
            column = aggregate(column, None, destination_up)
        cell = column
        for origin_level, origin_up in zip(levels, ups, strict=True):
            if origin_up is not None:
                cell = aggregate(cell, origin_up, None)
            yield origin_level, destination_level, cell


def pair_km(origin: NDArray[np.int32], destination: NDArray[np.int32], zones: Zones) -> NDArray[np.float64]:
    """Return the great-circle distance in km between the internal points of each pair.

    A flow within one zone has distance 0; an origin elsewhere has none (NaN).
    """
    points = np.vstack([unit_vectors(zones.longitude, zones.latitude), np.full((1, 3), np.nan)])
    out = np.empty(origin.size)
    for low in range(0, origin.size, _BLOCK):
        part = slice(low, low + _BLOCK)
        chord = np.sqrt(((points[origin[part]] - points[destination[part]]) ** 2).sum(axis=1))
        out[part] = 2.0 * EARTH_KM * np.arcsin(np.minimum(1.0, chord / 2.0))
    return out
