"""Coarsening by distance, as production OnTheMap does it: small units near the destination, large ones far away."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import Prior, mass_below, moment_below, piece_at


class Units(NamedTuple):
    """The units of all levels that distance cells may be, coarsest level first, as one destination sees them.

    Attributes
    ----------
    first : ndarray of int64, shape (finest + 2,)
        Number of the first unit of each level.
    child : ndarray of int64
        For each unit above the finest level, and one more, the number of its first child.
    order : ndarray of int64
        Units above the finest level, within each level the nearest first.
    cells : ndarray of int64
        1 for a unit with prior mass, 0 for one without; −1 where it and the rest are not yet known.
    means, squares : ndarray of float64
        Mean distance, km, and prior mass × its square.
    """

    first: NDArray[np.int64]
    child: NDArray[np.int64]
    order: NDArray[np.int64]
    cells: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]


@compiled
def distance_units(tree: ZoneTree, point: NDArray[np.float64], finest: int) -> Units:
    """Return the units down to level `finest`, seen from the unit vector `point`."""
    first = np.zeros(finest + 2, np.int64)
    for level in range(finest + 1):
        first[level + 1] = first[level] + tree.level_start[level].size - 1
    above = first[finest]
    child = np.empty(above + 1, np.int64)
    child[above] = first[finest + 1]
    order = np.empty(above, np.int64)
    for level in range(finest):
        starts, finer = tree.level_start[level], tree.level_start[level + 1]
        km = np.empty(starts.size - 1)
        at = 0
        for unit in range(starts.size - 1):
            km[unit] = great_circle_km(point, tree.level_centre[level][unit])
            while finer[at] < starts[unit]:
                at += 1
            child[first[level] + unit] = first[level + 1] + at
        order[first[level] : first[level + 1]] = first[level] + np.argsort(km, kind="mergesort")
    size = first[finest + 1]
    return Units(first, child, order, np.full(size, -1), np.empty(size), np.empty(size))


@compiled
def _made(units: Units, most: int) -> NDArray[np.bool_]:
    """Return which units come about, those that then gave way to their children included.

    The nearest unit gives way to its children of the next finer level, level by level; a unit whose children would
    pass `most` cells stays whole, and the next nearest is tried. None where the coarsest level has more than `most`.
    """
    made = np.zeros(units.cells.size, np.bool_)
    count = units.first[1]
    if count > most:
        return made
    made[:count] = True
    for parent in units.order:
        low, high = units.child[parent], units.child[parent + 1]
        if made[parent] and count + high - low - 1 <= most:
            made[low:high] = True
            count += high - low - 1
    return made


@compiled
def split_by_distance(
    tree: ZoneTree, prior: Prior, point: NDArray[np.float64], finest: int, most: int
) -> NDArray[np.int64]:
    """Return the ascending boundaries that distance coarsening draws.

    Parameters
    ----------
    tree, prior
        Public.
    point : ndarray of float64, shape (3,)
        Unit vector of the destination; a unit's place is the weighted mean of its zones' internal points.
    finest : int
        Index in `tree.level_start` of the finest level a cell may have.
    most : int
        Largest number of map cells.
    """
    units = distance_units(tree, point, finest)
    made = _made(units, most)
    inner = np.zeros(tree.cumulative.size, np.bool_)
    for level in range(finest + 1):
        starts = tree.level_start[level]
        for unit in range(1, starts.size - 1):
            if made[units.first[level] + unit]:
                inner[starts[unit]] = True
    return _without_massless(tree, prior, np.flatnonzero(inner))


@compiled
def survey_by_distance(
    tree: ZoneTree, prior: Prior, point: NDArray[np.float64], units: Units, most: int
) -> tuple[int, float, float]:
    """Return (cells, inside, pull) of the domain of at most `most` map cells by distance, see `survey_by_mass`."""
    made = _made(units, most)
    if not made[0]:
        return 1, prior.variance_km2, 0.0
    cells, means, squares = 0, 0.0, 0.0
    level = 0
    for unit in range(made.size):
        while unit >= units.first[level + 1]:
            level += 1
        if not made[unit]:
            continue
        if level < units.first.size - 2 and made[units.child[unit]]:
            continue  # its children are cells in its place
        if units.cells[unit] < 0:
            _measure(units, tree, prior, point, level, unit)
        cells += units.cells[unit]
        means += units.means[unit]
        squares += units.squares[unit]
    inside = max(0.0, prior.variance_km2 + prior.mean_km**2 - squares / float(prior.mass[prior.decay.size]))
    return int(cells), inside, means / cells - prior.mean_km


@compiled
def _measure(units: Units, tree: ZoneTree, prior: Prior, point: NDArray[np.float64], level: int, unit: int) -> None:
    """Find out mass and mean distance of a unit."""
    place = unit - units.first[level]
    low, high = tree.level_start[level][place], tree.level_start[level][place + 1]
    below = mass_below(prior, tree.cumulative, low)
    mass = mass_below(prior, tree.cumulative, high) - below
    units.cells[unit], units.means[unit], units.squares[unit] = 0, 0.0, 0.0
    if mass == 0:
        return
    first = piece_at(prior.start, low, prior.decay.size - 1)
    last = piece_at(prior.start, high - 1, prior.decay.size - 1)
    if first == last:
        mean = great_circle_km(point, tree.level_centre[level][place])
    else:
        mean = (moment_below(prior, below + mass, last) - moment_below(prior, below, first)) / mass
    units.cells[unit], units.means[unit], units.squares[unit] = 1, mean, mass * mean * mean


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
