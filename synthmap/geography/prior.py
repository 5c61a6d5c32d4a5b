"""The public prior over origins seen from a destination: weight × decay with distance, in integers.

The decay is constant over a *piece*, a tree node that is small against its distance (Barnes and Hut,
Nature 324, 1986), so a destination's prior over millions of zones is a few hundred pieces, and the mass of
any range of ranks is two binary searches.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import ZoneTree

DECAY_UNITS = 2**20
OPENING = 0.4  # a node is one piece when its radius is at most this share of its distance


class Prior(NamedTuple):
    """Prior mass seen from one destination.

    Attributes
    ----------
    start : ndarray of int32, shape (pieces + 2,)
        First rank of each piece, then the number of zones Z (where everywhere else begins) and Z + 1.
    decay : ndarray of int64, shape (pieces,)
        Mass of a unit of weight.
    mass : ndarray of int64, shape (pieces + 2,)
        Mass below each start.
    mean_km, variance_km2 : float
        Of the distance to an origin drawn from the prior, everywhere else left out.
    """

    start: NDArray[np.int32]
    decay: NDArray[np.int64]
    mass: NDArray[np.int64]
    mean_km: float
    variance_km2: float


@compiled
def decay_units(distance_km: float, scale_km: float, power: float) -> int:
    """Return 2^20·(1 + distance/scale)^−power, rounded down, at least 1."""
    return max(1, int(DECAY_UNITS * (1.0 + distance_km / scale_km) ** -power))


@compiled
def prior_from(
    tree: ZoneTree,
    point: NDArray[np.float64],
    scale_km: float,
    power: float,
    elsewhere_share: float,
) -> Prior:
    """Return the prior seen from the unit vector `point`."""
    capacity = 512
    start = np.empty(capacity, np.int32)
    decay = np.empty(capacity, np.int64)
    mass = np.empty(capacity, np.int64)
    pieces = 0
    total = np.int64(0)
    first = 0.0
    second = 0.0
    stack = np.empty(256, np.int64)
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        distance = great_circle_km(point, tree.centre[node])
        if tree.right[node] >= 0 and tree.radius[node] > OPENING * distance:
            stack[depth] = tree.right[node]
            stack[depth + 1] = node + 1
            depth += 2
            continue
        if pieces + 2 >= capacity:
            capacity *= 2
            start = np.append(start, np.empty(capacity - start.size, np.int32))
            decay = np.append(decay, np.empty(capacity - decay.size, np.int64))
            mass = np.append(mass, np.empty(capacity - mass.size, np.int64))
        start[pieces] = tree.start[node]
        decay[pieces] = decay_units(distance, scale_km, power)
        mass[pieces] = total
        weight = tree.cumulative[tree.stop[node]] - tree.cumulative[tree.start[node]]
        total += weight * decay[pieces]
        first += weight * decay[pieces] * distance
        second += weight * decay[pieces] * distance * distance
        pieces += 1
    zones = tree.cumulative.size - 1
    start[pieces] = zones
    mass[pieces] = total
    start[pieces + 1] = zones + 1
    mass[pieces + 1] = total + np.int64(total * (elsewhere_share / (1.0 - elsewhere_share)))
    mean = first / total
    return Prior(
        start[: pieces + 2],
        decay[:pieces],
        mass[: pieces + 2],
        mean,
        max(0.0, second / total - mean * mean),
    )


@compiled
def _piece(values: NDArray[np.integer[Any]], at: int, last: int) -> int:
    """Return the largest i ≤ last with values[i] ≤ at (values ascending, values[0] ≤ at)."""
    low, high = 0, last
    while low < high:
        middle = (low + high + 1) // 2
        if values[middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def mass_below(prior: Prior, cumulative: NDArray[np.int64], rank: int) -> int:
    """Return the prior mass of all ranks below `rank` (Z + 1: everything)."""
    pieces = prior.decay.size
    piece = _piece(prior.start, rank, pieces + 1)
    below = prior.mass[piece]
    if piece < pieces:
        below += prior.decay[piece] * (cumulative[rank] - cumulative[prior.start[piece]])
    return int(below)


@compiled
def rank_at(prior: Prior, cumulative: NDArray[np.int64], unit: int) -> int:
    """Return the rank whose mass covers `unit`, 0 ≤ unit < total mass: the inverse of `mass_below`."""
    pieces = prior.decay.size
    piece = _piece(prior.mass, unit, pieces)
    if piece == pieces:
        return int(prior.start[pieces])
    weight = cumulative[prior.start[piece]] + (unit - prior.mass[piece]) // prior.decay[piece]
    return _piece(cumulative, weight, cumulative.size - 2)
