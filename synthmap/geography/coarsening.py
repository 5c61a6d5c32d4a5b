"""Coarsening a destination's origin domain: a partition of every possible origin into cells.

A cell is a range of ranks; k cells are k + 1 ascending boundaries from 0 to Z + 1, where rank Z is
everywhere else. Both strategies split the most important range that can still be split, again and
again; the order of the splits is kept, so its first k − 1 boundaries are the domain with k cells. A range
without prior mass is never a cell of its own, or noise would fill it: it belongs to a neighbour's.
"""

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import Prior, mass_below

OWN_CELL = 0.5  # everywhere else is a cell of its own from this share of an average cell's mass on


@compiled
def _push(keys: NDArray[np.float64], items: NDArray[np.int64], size: int, key: float, item: int) -> int:
    """Add to the max-heap (ties: the smaller item first) and return its new size."""
    at = size
    while at:
        above = (at - 1) // 2
        if keys[above] > key or (keys[above] == key and items[above] < item):
            break
        keys[at], items[at] = keys[above], items[above]
        at = above
    keys[at], items[at] = key, item
    return size + 1


@compiled
def _pop(keys: NDArray[np.float64], items: NDArray[np.int64], size: int) -> tuple[float, int]:
    """Remove and return the largest (key, item); the caller lowers its size by one."""
    top = keys[0], items[0]
    key, item = keys[size - 1], items[size - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        other = child + 1
        if other < size - 1 and (
            keys[other] > keys[child] or (keys[other] == keys[child] and items[other] < items[child])
        ):
            child = other
        if key > keys[child] or (key == keys[child] and item < items[child]):
            break
        keys[at], items[at] = keys[child], items[child]
        at = child
    keys[at], items[at] = key, item
    return top


@compiled
def split_by_mass(
    tree: ZoneTree, prior: Prior, most: int, enough: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return boundaries in the order in which the heaviest cell is split, and what each k leaves unresolved.

    Parameters
    ----------
    tree, prior
        Public.
    most : int
        Largest number of map cells wanted.
    enough : float
        Stop when less than this is unresolved, km²; below 0: never.

    Returns
    -------
    boundaries : ndarray of int64, shape (at most most − 1,)
    unresolved : ndarray of float64, shape (boundaries + 1,)
        With 1, 2, … cells: the mean squared distance of a place to the centre of its cell, km².
    """
    zones = tree.cumulative.size - 1
    most = min(most, zones)
    boundaries = np.empty(max(most - 1, 0), np.int64)
    unresolved = np.empty(most)
    keys = np.empty(most + 1)
    items = np.empty(most + 1, np.int64)
    total = float(mass_below(prior, tree.cumulative, zones))
    spread = total * tree.spread[0]
    unresolved[0] = tree.spread[0]
    size = _push(keys, items, 0, total, 0) if zones > 1 else 0
    count = 0
    while size and count < most - 1 and unresolved[count] > enough:
        key, node = _pop(keys, items, size)
        size -= 1
        spread -= key * tree.spread[node]
        parted = True
        for side in range(2):
            child = node + 1 if side == 0 else int(tree.right[node])
            mass = float(
                mass_below(prior, tree.cumulative, tree.stop[child])
                - mass_below(prior, tree.cumulative, tree.start[child])
            )
            spread += mass * tree.spread[child]
            parted = parted and mass > 0.0
            if mass > 0.0 and tree.right[child] >= 0:
                size = _push(keys, items, size, mass, child)
        if not parted:  # nobody lives in one of the two: it stays with its neighbour
            continue
        boundaries[count] = tree.stop[node + 1]
        count += 1
        unresolved[count] = max(0.0, spread) / total
    return boundaries[:count], unresolved[: count + 1]


@compiled
def split_by_distance(
    tree: ZoneTree, prior: Prior, point: NDArray[np.float64], finest: int, most: int
) -> tuple[NDArray[np.int64], float]:
    """Return the boundaries that distance coarsening draws, and how much they leave unresolved.

    The nearest unit gives way to its children of the next finer level, level by level; a unit whose children would
    pass `most` cells stays whole, and the next nearest is tried. A unit's place is the weighted mean of its zones'
    internal points.

    Parameters
    ----------
    tree, prior
        Public.
    point : ndarray of float64, shape (3,)
        Unit vector of the destination.
    finest : int
        Index in `tree.level_start` of the finest level a cell may have.
    most : int
        Largest number of map cells.

    Returns
    -------
    boundaries : ndarray of int64
        Not sorted. None where the coarsest level has more than `most` units.
    unresolved : float
        The mean squared distance of a place to the centre of its cell, km².
    """
    boundaries = np.empty(max(most - 1, 0), np.int64)
    count = 0
    if tree.level_start[0].size - 1 > most:
        return boundaries[:0], tree.spread[0]
    total = float(mass_below(prior, tree.cumulative, tree.cumulative.size - 1))
    unresolved = 0.0
    keys = np.empty(most + 1)
    items = np.empty(most + 1, np.int64)
    size = 0
    for level in range(finest + 1):
        starts = tree.level_start[level]
        next_keys = np.empty(most + 1)
        next_items = np.empty(most + 1, np.int64)
        next_size = 0
        first, last = 0, starts.size - 1
        while True:
            if level > 0:
                if size == 0:
                    break
                _, parent = _pop(keys, items, size)
                size -= 1
                first = np.searchsorted(starts, tree.level_start[level - 1][parent])
                last = np.searchsorted(starts, tree.level_start[level - 1][parent + 1])
                if count + last - first > most:
                    continue
                unresolved -= _left_in(tree, prior, level - 1, parent)
            for unit in range(first, last):
                if unit > first:
                    boundaries[count] = starts[unit]
                    count += 1
                km = great_circle_km(point, tree.level_centre[level][unit])
                next_size = _push(next_keys, next_items, next_size, -km, unit)
                unresolved += _left_in(tree, prior, level, unit)
            if level == 0:
                break
        keys, items, size = next_keys, next_items, next_size
    return _without_massless(tree, prior, np.sort(boundaries[:count])), max(0.0, unresolved) / total


@compiled
def _without_massless(tree: ZoneTree, prior: Prior, boundaries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ascending boundaries without those beside a range that has no prior mass."""
    kept = np.empty_like(boundaries)
    count = 0
    below = 0
    whole = mass_below(prior, tree.cumulative, tree.cumulative.size - 1)
    for boundary in boundaries:
        mass = mass_below(prior, tree.cumulative, boundary)
        if below < mass < whole:
            kept[count] = boundary
            count += 1
            below = mass
    return kept[:count]


@compiled
def _left_in(tree: ZoneTree, prior: Prior, level: int, unit: int) -> float:
    """Return mass × spread of a unit."""
    starts = tree.level_start[level]
    mass = mass_below(prior, tree.cumulative, starts[unit + 1]) - mass_below(prior, tree.cumulative, starts[unit])
    return float(mass * tree.level_spread[level][unit])


@compiled
def has_own_cell(elsewhere_share: float, cells: int) -> bool:
    """Return whether everywhere else is a cell of its own in a domain of `cells` cells."""
    return cells > 1 and elsewhere_share * cells >= OWN_CELL


@compiled
def cell_bounds(boundaries: NDArray[np.int64], cells: int, zones: int, elsewhere_share: float) -> NDArray[np.int64]:
    """Return the ascending bounds of at most `cells` cells, a partition of ranks 0 … Z.

    Everywhere else (rank Z) is a cell of its own where the prior gives it enough mass; otherwise it belongs to the
    last cell, and the prior decides inside.
    """
    own = has_own_cell(elsewhere_share, cells)
    inner = min(boundaries.size, cells - 1 - (1 if own else 0))
    bounds = np.empty(inner + 2 + (1 if own else 0), np.int64)
    bounds[0] = 0
    bounds[1 : inner + 1] = np.sort(boundaries[:inner])
    if own:
        bounds[inner + 1] = zones
    bounds[-1] = zones + 1
    return bounds
