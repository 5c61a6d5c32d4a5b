"""Classes of destinations by which errors are told: headcount, density and true length of the commute."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.lengths import LengthError, MeanLengths, length_error
from synthmap.geography.zones import Zones
from synthmap.published.expected import HEADCOUNT_EDGES, LENGTH_EDGES_KM

DENSITY_NAMES = ("sparse", "medium", "dense")
_KM_PER_DEGREE = 111.195
_REACH = 2  # grid cells of 1 km to each side: a square of 5 km


@dataclass(frozen=True)
class LengthClass:
    """Errors of the destinations whose value lies in [low, high); `high` None has no upper end."""

    low: float
    high: float | None
    error: LengthError


@dataclass(frozen=True)
class ByDestination:
    """What is measured at each destination; `density` in workers per km², in the order of `lengths`."""

    lengths: MeanLengths
    density: NDArray[np.float64]


def by_headcount(lengths: MeanLengths) -> list[LengthClass]:
    """Return errors by class of headcount, workers."""
    return _by(lengths, lengths.headcount.astype(float), HEADCOUNT_EDGES)


def by_true_length(lengths: MeanLengths) -> list[LengthClass]:
    """Return errors by the reference's average commute, km: short ones first.

    A class by the true value shows pull towards the middle: short commutes look overstated, long ones understated, in
    any noisy estimate.
    """
    return _by(lengths, lengths.reference, LENGTH_EDGES_KM)


def by_density(lengths: MeanLengths, density: NDArray[np.float64]) -> list[LengthClass]:
    """Return errors by third of the destinations: sparse, medium, dense; fewer where thirds coincide.

    `density` is in workers per km², see `jobs_per_km2`.
    """
    return _by(lengths, density, density_edges(density))


def density_edges(density: NDArray[np.float64]) -> tuple[float, ...]:
    """Return 0, the thirds and infinity, without repetition."""
    if not density.size:
        return (0.0, np.inf)
    return tuple(np.unique([0.0, *np.quantile(density, [1 / 3, 2 / 3]).tolist(), np.inf]).tolist())


def _by(lengths: MeanLengths, value: NDArray[np.float64], edges: tuple[float, ...]) -> list[LengthClass]:
    out = []
    for low, high in itertools.pairwise(edges):
        found = length_error(lengths, (value >= low) & (value < high))
        if found is not None:
            out.append(LengthClass(low, high if np.isfinite(high) else None, found))
    return out


def jobs_per_km2(destination: NDArray[np.int32], headcount: NDArray[np.int64], zones: Zones) -> NDArray[np.float64]:
    """Return the density around each destination: workers in a square of 5 km, per km².

    Parameters
    ----------
    destination : ndarray of int32, shape (destinations,)
        Distinct ranks.
    headcount : ndarray of int64
        Public.

    Notes
    -----
    Workers are counted in a grid of about 1 km × 1 km; a destination gets the sum of its cell and two cells to each
    side, over 25 km². Linear in the number of destinations. The grid does not close over the date line.
    """
    if not destination.size:
        return np.zeros(0)
    longitude, latitude = zones.longitude[destination], zones.latitude[destination]
    row = np.floor((latitude + 90.0) * _KM_PER_DEGREE).astype(np.int64)

    def key(at: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
        width = _KM_PER_DEGREE * np.cos(np.radians((at + 0.5) / _KM_PER_DEGREE - 90.0))
        column: NDArray[np.int64] = np.floor((longitude + 180.0) * width).astype(np.int64)
        return at * 100_000 + column + shift

    cells, index = np.unique(key(row, 0), return_inverse=True)
    workers = np.bincount(index, headcount)
    total = np.zeros(destination.size)
    for up in range(-_REACH, _REACH + 1):
        for side in range(-_REACH, _REACH + 1):
            wanted = key(row + up, side)
            at = np.minimum(np.searchsorted(cells, wanted), cells.size - 1)
            total += np.where(cells[at] == wanted, workers[at], 0.0)
    return total / (2 * _REACH + 1) ** 2
