"""The public prior over origins seen from a destination, in integers: weight × decay with distance, and a public table.

The decay is constant over a *piece*, a tree node that is small against its distance (Barnes and Hut, Nature 324, 1986)
or has little mass, so a destination's prior over millions of zones is a few hundred pieces, and the mass of any range
of ranks is two binary searches. An origin with workers in the public table is a piece of its own.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.decay import DECAY_UNITS, Pieces, decay_units, pieces_from, rough_mean_km
from synthmap.geography.distance import arcs_km, great_circle_km
from synthmap.geography.hierarchy import ZoneTree

_LARGEST_MASS = 2.0**61
_WORTH = 0.5  # of a worker in the public table, which may be synthetic: a draw of a draw
_ALIKE = 10.0  # workers of a destination whose decay is worth half of what it is at a large one
_ALONG = 0.5  # share of a node's squared spread along the way to the destination


NO_CLASSES = np.empty(0)


class PriorTable(NamedTuple):
    """A public origin-destination table, sorted by destination and origin.

    Attributes
    ----------
    first : ndarray of int64, shape (zones + 1,) or (0,)
        Where the rows of each destination start, by rank; empty without a table.
    origin : ndarray of int32, shape (rows,)
        Rank; the number of zones means elsewhere.
    workers : ndarray of int64, shape (rows,)
        At least 1.
    """

    first: NDArray[np.int64]
    origin: NDArray[np.int32]
    workers: NDArray[np.int64]


class PriorModel(NamedTuple):
    """What every destination's prior is made of. Public.

    Attributes
    ----------
    scale_km, power, elsewhere_share : float
        Decay with distance, and the share of everywhere else where the table says nothing.
    mixing, strength : float
        A destination with c workers in the table takes the share mixing·c/(c + strength) of its prior from there. For
        what the prior is worth see `worth`.
    table : PriorTable
    edges_km : ndarray of float64, shape (classes − 1,) or (0,)
        Ascending; a destination's class is the number of them that are at most its `rough_mean_km` by `scale_km`.
    scales_km : ndarray of float64, shape (classes,) or (0,)
        Of the decay, by class of destination, instead of `scale_km`; empty: that for all.
    """

    scale_km: float
    power: float
    elsewhere_share: float
    mixing: float
    strength: float
    table: PriorTable
    edges_km: NDArray[np.float64] = NO_CLASSES
    scales_km: NDArray[np.float64] = NO_CLASSES


class Prior(NamedTuple):
    """Prior mass seen from one destination.

    Attributes
    ----------
    start : ndarray of int32, shape (pieces + 2,)
        First rank of each piece, then the number of zones Z (where everywhere else begins) and Z + 1.
    decay : ndarray of int64, shape (pieces,)
        Mass of a unit of weight; 0 for a piece that is one zone of the table.
    mass : ndarray of int64, shape (pieces + 2,)
        Mass below each start.
    moment : ndarray of float64, shape (pieces + 1,)
        Sum of mass × distance in km below each start.
    mean_km, variance_km2 : float
        Of the distance to an origin drawn from the prior, everywhere else left out.
    by_decay : Pieces
        Those that decay alone makes; the rows of a table cut them into the pieces here.
    first : ndarray of int64, shape (pieces by decay + 1,)
        Number of the first piece in each of those, then of pieces.
    """

    start: NDArray[np.int32]
    decay: NDArray[np.int64]
    mass: NDArray[np.int64]
    moment: NDArray[np.float64]
    mean_km: float
    variance_km2: float
    by_decay: Pieces
    first: NDArray[np.int64]


NO_TABLE = PriorTable(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))


@compiled
def class_at(tree: ZoneTree, model: PriorModel, point: NDArray[np.float64]) -> int:
    """Return the class of a destination at the unit vector `point`; 0 where there is only one."""
    if model.edges_km.size == 0:
        return 0
    return int(np.searchsorted(model.edges_km, rough_mean_km(tree, model.scale_km, model.power, point), side="right"))


@compiled
def scale_at(tree: ZoneTree, model: PriorModel, point: NDArray[np.float64]) -> float:
    """Return the scale of the decay, in km, seen from the unit vector `point`."""
    if model.scales_km.size == 0:
        return model.scale_km
    return float(model.scales_km[class_at(tree, model, point)])


@compiled
def scales_at(tree: ZoneTree, model: PriorModel, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same for several points, shape (points, 3)."""
    out = np.empty(len(points))
    for d in range(len(points)):
        out[d] = scale_at(tree, model, points[d])
    return out


@compiled
def _units(tree: ZoneTree, model: PriorModel, share: float) -> int:
    """Return the mass of a unit of weight at distance 0: 2^20, or less where the total would pass 2^61."""
    units = DECAY_UNITS
    room = _LARGEST_MASS * (1.0 - model.elsewhere_share) * (1.0 - share)
    while units > 1 and float(tree.cumulative[-1]) * units > room:
        units //= 2
    return units


@compiled
def finest_level(tree: ZoneTree) -> int:
    """Return the index in `tree.level_start` of the zones themselves."""
    level = len(tree.level_start) - 1
    while tree.level_start[level].size == 0:
        level -= 1
    return level


@compiled
def table_workers(model: PriorModel, destination: int) -> int:
    """Return the workers of a destination in the public table."""
    table = model.table
    if table.first.size == 0:
        return 0
    return int(table.workers[table.first[destination] : table.first[destination + 1]].sum())


@compiled
def table_share(model: PriorModel, destination: int) -> float:
    """Return the share of a destination's prior that comes from the public table."""
    workers = table_workers(model, destination)
    return float(model.mixing * workers / (workers + model.strength)) if workers else 0.0


@compiled
def worth(model: PriorModel, destination: int, headcount: int) -> float:
    """Return how many workers a destination's prior is worth.

    Few workers are more alike than many, so the decay fits small destinations worse: it is worth n/(n + 10) of
    `strength` at n workers, as was seen in three published tables (``python -m tests.benchmarks.utility``). Where the
    table has the share w of the prior, what is left of a misfit is (1 − w)² of the decay's and w² of the table's.
    """
    share = table_share(model, destination)
    known = _WORTH * table_workers(model, destination)
    decay = model.strength * headcount / (headcount + _ALIKE)
    misfit = (1.0 - share) ** 2 / (1.0 + decay) + share**2 / (1.0 + known)
    return 1.0 / misfit - 1.0


class _Seen(NamedTuple):
    """Pieces as a destination sees them, in the order of ranks; room for what `Prior` adds.

    Attributes
    ----------
    start : ndarray of int32, shape (pieces + 2,)
        First rank of each piece, then the number of zones.
    decay, mass : ndarray of int64, shapes (pieces,) and (pieces + 2,)
        Mass of a unit of weight, and of the piece by decay alone.
    workers : ndarray of int64, shape (pieces,)
        In the public table, where the piece is one zone of it.
    km, square : ndarray of float64, shape (pieces,)
        Distance, and mean squared distance.
    first : ndarray of int64
        See `Prior`.
    """

    start: NDArray[np.int32]
    decay: NDArray[np.int64]
    mass: NDArray[np.int64]
    workers: NDArray[np.int64]
    km: NDArray[np.float64]
    square: NDArray[np.float64]
    first: NDArray[np.int64]


@compiled
def _by_decay(tree: ZoneTree, pieces: Pieces, scale_km: float, power: float, units: int) -> _Seen:
    """Return the pieces that decay alone makes; one of `units` mass a unit of weight would be at the destination."""
    km = arcs_km(pieces.chord)
    decay = decay_units(km, scale_km, power, units)
    size = km.size
    start, mass, square = np.empty(size + 2, np.int32), np.empty(size + 2, np.int64), np.empty(size)
    before = np.int64(0)  # a piece begins where the one before it ends; so does its weight
    start[0] = 0
    for i in range(size):
        node = tree.nodes[pieces.node[i]]
        weight = node["weight_below_stop"]
        start[i + 1], mass[i] = node["stop"], decay[i] * (weight - before)
        square[i] = km[i] ** 2 + _ALONG * node["spread"]
        before = weight
    return _Seen(start, decay, mass, np.zeros(size, np.int64), km, square, np.arange(size + 1))


@compiled
def _with_table(
    seen: _Seen, tree: ZoneTree, point: NDArray[np.float64], origin: NDArray[np.int32], workers: NDArray[np.int64]
) -> _Seen:
    """Return the pieces cut so that each zone in the rows of a table is one of its own."""
    rows = origin.size - (1 if origin[-1] == tree.cumulative.size - 1 else 0)  # without everywhere else
    places = tree.level_centre[finest_level(tree)]
    most = seen.decay.size + 2 * rows
    start, decay, mass = np.empty(most + 2, np.int32), np.empty(most, np.int64), np.empty(most + 2, np.int64)
    first = np.empty(seen.first.size, np.int64)
    out = _Seen(start, decay, mass, np.zeros(most, np.int64), np.empty(most), np.empty(most), first)
    pieces, row = 0, 0
    for i in range(seen.decay.size):
        first[i] = pieces
        low, stop = seen.start[i], seen.start[i + 1]
        while low < stop:
            zone = origin[row] if row < rows else stop
            high = min(stop, zone)
            units, km, square = seen.decay[i], seen.km[i], seen.square[i]
            if zone == low:
                high, km = low + 1, great_circle_km(point, places[low])
                out.workers[pieces], square = workers[row], km**2
                row += 1
            out.start[pieces], out.decay[pieces] = low, 0 if zone == low else units
            out.mass[pieces] = units * (tree.cumulative[high] - tree.cumulative[low])
            out.km[pieces], out.square[pieces] = km, square
            pieces += 1
            low = high
    first[seen.decay.size] = pieces
    return _Seen(start[: pieces + 2], decay[:pieces], mass[: pieces + 2], out.workers, out.km, out.square, first)


@compiled
def prior_from(tree: ZoneTree, model: PriorModel, point: NDArray[np.float64], destination: int) -> Prior:
    """Return the prior seen from the destination of rank `destination` at the unit vector `point`."""
    return prior_at_scale(tree, model, point, destination, scale_at(tree, model, point))


@compiled
def prior_at_scale(
    tree: ZoneTree, model: PriorModel, point: NDArray[np.float64], destination: int, scale_km: float
) -> Prior:
    """Return the same where the scale of its decay is known already: finding that is a tenth of a draw."""
    share = table_share(model, destination)
    by_decay = pieces_from(tree, point, scale_km, model.power)
    seen = _by_decay(tree, by_decay, scale_km, model.power, _units(tree, model, share))
    pieces, zones = seen.decay.size, tree.cumulative.size - 1
    total = seen.mass[:pieces].sum()
    away = np.int64(total * (model.elsewhere_share / (1.0 - model.elsewhere_share)))
    each = np.int64(0)
    known = table_workers(model, destination)
    if known:
        each = np.int64(max(1.0, (total + away) * (share / (1.0 - share)) / known))
        table = model.table
        rows = slice(table.first[destination], table.first[destination + 1])
        origin, workers = table.origin[rows], table.workers[rows]
        seen = _with_table(seen, tree, point, origin, workers)
        pieces = seen.decay.size
        if origin[-1] == zones:
            away += each * workers[-1]
    start, mass, moment = seen.start, seen.mass, np.empty(pieces + 1)
    below, first, second = np.int64(0), 0.0, 0.0
    for piece in range(pieces):
        own = mass[piece] + each * seen.workers[piece]
        mass[piece] = below
        moment[piece] = first
        below += own
        first += own * seen.km[piece]
        second += own * seen.square[piece]
    moment[pieces] = first
    start[pieces], start[pieces + 1] = zones, zones + 1
    mass[pieces], mass[pieces + 1] = below, below + away
    mean = first / below
    variance = max(0.0, second / below - mean * mean)
    return Prior(start, seen.decay, mass, moment, mean, variance, by_decay, seen.first)


@compiled
def elsewhere_share_of(prior: Prior) -> float:
    """Return the share of the prior that lies off the map."""
    return float(prior.mass[-1] - prior.mass[-2]) / float(prior.mass[-1])


@compiled
def piece_at(values: NDArray[np.integer[Any]], at: int, last: int, first: int = 0) -> int:
    """Return the largest i in [first, last] with values[i] ≤ at (values ascending, values[first] ≤ at)."""
    low, high = first, last
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
    return mass_below_in(prior, cumulative, piece_at(prior.start, rank, prior.decay.size + 1), rank)


@compiled
def mass_below_in(prior: Prior, cumulative: NDArray[np.int64], piece: int, rank: int) -> int:
    """Return the same where the last piece that starts at or before `rank` is known."""
    below = prior.mass[piece]
    if piece < prior.decay.size:
        below += prior.decay[piece] * (cumulative[rank] - cumulative[prior.start[piece]])
    return int(below)


@compiled
def moment_below(prior: Prior, mass: int, piece: int) -> float:
    """Return the sum of mass × distance below a rank in `piece` that has `mass` below it."""
    whole = prior.mass[piece + 1] - prior.mass[piece]
    if piece >= prior.decay.size or whole == 0:
        return float(prior.moment[min(piece, prior.decay.size)])
    inside = (mass - prior.mass[piece]) / whole
    return float(prior.moment[piece] + inside * (prior.moment[piece + 1] - prior.moment[piece]))


@compiled
def mean_km_of(prior: Prior, cumulative: NDArray[np.int64], low: int, high: int) -> float:
    """Return the mean distance, in km, to zones low … high − 1, low < high; 0 without mass."""
    below, above = mass_below(prior, cumulative, low), mass_below(prior, cumulative, high)
    if above == below:
        return 0.0
    first = piece_at(prior.start, low, prior.decay.size - 1)
    last = piece_at(prior.start, high - 1, prior.decay.size - 1)
    return float((moment_below(prior, above, last) - moment_below(prior, below, first)) / (above - below))


@compiled
def rank_in(prior: Prior, cumulative: NDArray[np.int64], piece: int, unit: int) -> int:
    """Return the rank whose mass covers `unit`, which `piece` covers, the last that begins at or below it."""
    if piece == prior.decay.size or prior.decay[piece] == 0:
        return int(prior.start[piece])
    first = prior.start[piece]
    weight = cumulative[first] + (unit - prior.mass[piece]) // prior.decay[piece]
    return piece_at(cumulative, weight, prior.start[piece + 1] - 1, first)


@compiled
def rank_at(prior: Prior, cumulative: NDArray[np.int64], unit: int) -> int:
    """Return the rank whose mass covers `unit`, 0 ≤ unit < total mass: the inverse of `mass_below`."""
    return rank_in(prior, cumulative, piece_at(prior.mass, unit, prior.decay.size), unit)
