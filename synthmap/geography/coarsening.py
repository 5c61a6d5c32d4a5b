"""Coarsening a destination's origin domain: a partition of every possible origin into cells.

A cell is a range of ranks; k cells are k + 1 ascending boundaries from 0 to Z + 1, where rank Z is everywhere else,
which may be several cells (`own_cells`). Here the heaviest range that can still be split is split, again and again; the
other way is by distance (`distance_cells`). A range without prior mass is never a cell of its own, or noise would fill
it: it belongs to a neighbour's.
"""

from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import DEEPEST, ZoneTree
from synthmap.geography.prior import Prior, moment_below, piece_at

Whole = int | np.integer[Any]
_BELOW_STEP = 46  # bits of a double below its exponent and the first 6 of its fraction: steps of 1 % to 2 %
_ROUNDING = 0.5 + 5e-7  # of the share of everywhere else, which is a float, so that halves are rounded up


class Splits(NamedTuple):
    """Nodes that are heavier than a limit and split in two, in the order of ranks.

    Attributes
    ----------
    boundary : ndarray of int64
        Where each is split.
    mass : ndarray of int64
        Its prior mass.
    means, squares : ndarray of float64
        What the split adds to the sum over cells of the mean distance, km, and to that of prior mass × its square.
    """

    boundary: NDArray[np.int64]
    mass: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]


@compiled
def _fill(splits: Splits, tree: ZoneTree, prior: Prior, point: NDArray[np.float64], limit: int, measured: bool) -> int:
    """Fill `splits` with all splits of nodes with more than `limit` mass; return how many, or −1 if they do not fit.

    Unless `measured`, what they add to distances is left out.
    """
    found = 0
    cumulative, by_decay = tree.cumulative, prior.by_decay
    # of a node to visit: its number; that of its first piece by decay while it lies above these, else −1; its mass and
    # that below it; its first and its last piece. Or −1 and a split whose left is done
    node = np.empty((DEEPEST, 6), np.int64)
    value = np.zeros((DEEPEST, 2))  # a node's mean distance; or what a split adds
    _put(node[0], 0, 0, prior.mass[prior.decay.size], 0, 0, prior.decay.size - 1)
    value[0, 0] = prior.mean_km
    depth = 1
    while depth:
        depth -= 1
        here, leaf, mass, below, low, high = node[depth]
        if here < 0:
            if found == splits.mass.size:
                return -1
            splits.boundary[found], splits.mass[found] = below, mass
            splits.means[found], splits.squares[found] = value[depth]
            found += 1
            continue
        if mass <= limit:
            continue
        if leaf >= 0 and by_decay.right[here] < 0:
            here, leaf = by_decay.node[leaf], -1  # on in the tree
        if leaf >= 0:
            right = np.int64(by_decay.right[here])
            right_leaf = leaf + (right - here) // 2  # of m pieces, the left child is 2m − 1 nodes
            piece = prior.first[right_leaf]
            middle, at, last = np.int64(prior.start[piece]), prior.mass[piece], piece - 1
        else:
            right, right_leaf = tree.nodes[here]["right"], leaf
            if right < 0:
                continue
            middle, weight = np.int64(tree.nodes[here + 1]["stop"]), tree.nodes[here + 1]["weight_below_stop"]
            piece = piece_at(prior.start, int(middle), high, low)
            at = prior.mass[piece] + prior.decay[piece] * (weight - cumulative[prior.start[piece]])
            last = piece - 1 if prior.start[piece] == middle else piece
        left = at - below
        if left == 0 or left == mass:  # nobody lives in one of the two: it stays with its neighbour
            if left == 0:
                node[depth, 0], node[depth, 1], node[depth, 4] = right, right_leaf, piece
            else:
                node[depth, 0], node[depth, 1], node[depth, 5] = here + 1, leaf, last
            depth += 1
            continue
        if measured:
            mean = value[depth, 0]
            moment = moment_below(prior, at, piece)
            if leaf < 0 and low == last:
                left_mean = great_circle_km(point, tree.nodes[here + 1]["centre"])
            else:
                left_mean = (moment - moment_below(prior, below, low)) / left
            if leaf < 0 and piece == high:
                right_mean = great_circle_km(point, tree.nodes[right]["centre"])
            else:
                right_mean = (moment_below(prior, below + mass, high) - moment) / (mass - left)
            value[depth + 1, 0] = left_mean + right_mean - mean
            value[depth + 1, 1] = left * left_mean**2 + (mass - left) * right_mean**2 - mass * mean**2
            value[depth, 0], value[depth + 2, 0] = right_mean, left_mean
        _put(node[depth], right, right_leaf, mass - left, at, piece, high)
        _put(node[depth + 1], -1, -1, mass, middle, 0, 0)
        _put(node[depth + 2], here + 1, leaf, left, below, low, last)
        depth += 3
    return found


@compiled
def _put(row: NDArray[np.int64], here: Whole, leaf: Whole, mass: Whole, below: Whole, low: Whole, high: Whole) -> None:
    row[0], row[1], row[2], row[3], row[4], row[5] = here, leaf, mass, below, low, high


@compiled
def _enough_splits(tree: ZoneTree, prior: Prior, point: NDArray[np.float64], most: int, measured: bool) -> Splits:
    """Return the splits of the most − 1 heaviest nodes that can be split, and some lighter ones."""
    limit = prior.mass[prior.decay.size] // max(1, most) // 3 * 4  # nodes above it: mostly a tenth more than asked for
    capacity = 2 * most + 32
    while True:
        made = Splits(
            np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity)
        )
        found = _fill(made, tree, prior, point, limit, measured)
        if found < 0:
            capacity *= 2
        elif found >= most - 1 or limit == 0:
            return Splits(made.boundary[:found], made.mass[:found], made.means[:found], made.squares[:found])
        else:
            limit //= 2


@compiled
def split_by_mass(tree: ZoneTree, prior: Prior, most: int) -> NDArray[np.int64]:
    """Return the ascending boundaries of `most` map cells, or of as many as can be made.

    The heaviest cell is split, again and again (of equally heavy ones the first).
    """
    found = _enough_splits(tree, prior, np.empty(3), most, False)
    wanted = max(0, min(most - 1, found.mass.size))
    order = heaviest_first(found.mass)
    taken = np.zeros(found.mass.size, np.bool_)
    for i in range(wanted):
        taken[order[i]] = True
    out = np.empty(wanted, np.int64)
    size = 0
    for split in range(taken.size):
        if taken[split]:
            out[size] = found.boundary[split]
            size += 1
    return out


@compiled
def heaviest_first(mass: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of `mass`, each above 0, in descending order, of equal ones the first before the others.

    By counting how many are in each small step of mass, few in most; inside a step, by insertion.
    """
    order = np.empty(mass.size, np.int64)
    if mass.size == 0:
        return order
    steps = mass.astype(np.float64).view(np.int64) >> _BELOW_STEP
    steps = steps.max() - steps
    first = np.zeros(steps.max() + 2, np.int64)
    for step in steps:
        first[step + 1] += 1
    first = np.cumsum(first)
    end = first.copy()
    for i in range(mass.size):
        step = steps[i]
        place = end[step]
        while place > first[step] and mass[order[place - 1]] < mass[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
        end[step] += 1
    return order


@compiled
def survey_by_mass(
    tree: ZoneTree, prior: Prior, point: NDArray[np.float64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what domains of map cells by prior mass do to distances.

    Parameters
    ----------
    wanted : ndarray of int64, shape (C,)
        Map cells, ascending, none more than can be made.

    Returns
    -------
    inside : ndarray of float64, shape (C,)
        Prior variance of the distance that lies inside cells, km².
    pull : ndarray of float64, shape (C,)
        How far the prior's mean distance moves if all cells weigh the same, km.
    """
    found = _enough_splits(tree, prior, point, wanted[-1], True)
    order = heaviest_first(found.mass)
    means, squares = np.zeros(wanted.size), np.zeros(wanted.size)
    first = 0
    for i in range(wanted.size):
        last = max(first, min(wanted[i] - 1, found.mass.size))
        for place in order[first:last]:
            means[i] += found.means[place]
            squares[i] += found.squares[place]
        first = last
    total = float(prior.mass[prior.decay.size])
    means, squares = np.cumsum(means), np.cumsum(squares)
    inside = np.maximum(0.0, prior.variance_km2 - squares / total)
    return inside, (prior.mean_km + means) / wanted - prior.mean_km


@compiled
def own_cells(elsewhere_share: float, cells: int) -> int:
    """Return how many of `cells` cells may be everywhere else: its share of them, rounded; never all of them.

    All cells have the same noise. Where those on the map have about equal prior mass, everywhere else is so pulled
    neither down nor up from its share.
    """
    return min(cells - 1, int(elsewhere_share * cells + _ROUNDING))


def cells_for(parts: int, elsewhere_share: float) -> int:
    """Return the fewest cells of which so many are on the map."""
    return next(cells for cells in count(parts) if cells - own_cells(elsewhere_share, cells) >= parts)


@compiled
def own_beside(elsewhere_share: float, own: int, parts: int) -> int:
    """Return how many of `own` cells that may be everywhere else are, beside `parts` cells on the map; 1 if any may.

    These may be fewer than were asked for.
    """
    return min(own, max(1, int(parts * elsewhere_share / (1.0 - elsewhere_share) + _ROUNDING)))


@compiled
def cell_bounds(boundaries: NDArray[np.int64], zones: int, own: int) -> NDArray[np.int64]:
    """Return the ascending bounds of cells, a partition of ranks 0 … Z, from those inside the map.

    Everywhere else (rank Z) is `own` cells: ranges from Z, of which only the last has it, so that it has all true
    workers from there; whoever is drawn from any of them comes from there. Otherwise it belongs to the last cell on the
    map, and the prior decides inside.
    """
    bounds = np.full(boundaries.size + 2 + own, zones)
    bounds[0] = 0
    bounds[1 : boundaries.size + 1] = boundaries
    bounds[-1] = zones + 1
    return bounds
