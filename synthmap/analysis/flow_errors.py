"""Expected absolute errors of flows between units of all levels, if the prior is the truth. Public."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.absolute import mean_absolute
from synthmap.analysis.cell_tables import END, CellTables, place_of, read
from synthmap.analysis.prior_cells import Domain, Resampled, domain_of, inside
from synthmap.analysis.urns import Urn, between, nobody, some
from synthmap.compiled import compiled


class Units(NamedTuple):
    """Units of all levels as slots of one array, finest level first; the last slot of each level is elsewhere.

    Attributes
    ----------
    first : ndarray of int64, shape (levels + 1,)
        First slot of each level, then the number of slots.
    closes : ndarray of int64, shape (zones,)
        Levels of which a unit ends with this zone, at least 1: that of the zones.
    fitted : int
        Level whose flows are kept, −1 for none.
    place : ndarray of int64, shape (destinations,)
        Number of each destination's unit at that level, among those that have destinations.
    """

    first: NDArray[np.int64]
    closes: NDArray[np.int64]
    fitted: int
    place: NDArray[np.int64]


class FlowErrors(NamedTuple):
    """Sums over flows; workers, unless said. D is the error of a flow.

    Attributes
    ----------
    made : bool
        False where a destination's cells are not those planned, or it was stopped; nothing else holds then.
    absolute : ndarray of float64, shape (levels + 1, levels)
        ``Σ E|D|`` by level of destinations, the last all of them together, and of origins.
    variation : float
        Sum over destinations of ``Σ E|D|/(2n)`` over zones.
    pairs : ndarray of float64, shape (levels, 3)
        Expected pairs of units of one level with workers in the true table, in the synthetic one, and in both; where
        empty cells are dropped, of zones alone.
    cells : ndarray of float64, shape (4,)
        ``Σ E|D|`` over cells of destinations, and these with true workers, with synthetic ones, and with both.
    flows : ndarray of float64, shape (2, units with destinations, units)
        Expected true workers by unit of destination and of origin at the fitted level, and the mean of D.
    """

    made: bool
    absolute: NDArray[np.float64]
    variation: float
    pairs: NDArray[np.float64]
    cells: NDArray[np.float64]
    flows: NDArray[np.float64]


@compiled
def flow_errors(of: Resampled, units: Units, stop: NDArray[np.int64]) -> FlowErrors:
    """Return sums of expected errors.

    Another thread stops it, at the next destination, by making `stop`, shape (1,), other than 0. To be called in a
    thread of a pool: a signal that the main thread has yet to handle crashes numba where it makes the named tuple.

    Notes
    -----
    A unit takes the share r_c of the prior mass of cell c; x_c and y_c are the cell's true and synthetic workers. The
    unit's D is Σ r_c·(y_c − x_c) and what is left of its own y and x, which have mean 0 given all cells, each from its
    own draw. So D has the mean n·Σ r_c·(p_c − q_c), q and p as in `Domain`, and the variance `between` plus `inside` of
    each cell. Destinations are drawn independently: means and variances add, and the chances that a unit has nobody at
    any destination of another are products.
    """
    levels = units.first.size - 1
    slots, zones = units.first[levels], units.closes.size
    size = units.first[units.fitted + 1] - units.first[units.fitted] if units.fitted >= 0 else 0
    absolute, pairs, variation = np.zeros((levels + 1, levels)), np.zeros((levels, 3)), 0.0
    cells = np.zeros(4)
    flows = np.zeros((2, units.place.max() + 1, size))
    sums = np.zeros((levels, slots, 5))  # of the unit that each level of destinations above zones is at, see `_add`
    none = np.ones((slots, 3))  # of units above zones, of the unit of destinations that its level is at, see `_none`
    destination = of.destination
    for d in range(destination.size):
        here = domain_of(of, d)
        if here.number.sum() != of.plan[d, 1] or stop[0]:
            return FlowErrors(False, absolute, variation, pairs, cells, flows)
        start = absolute[0, 0]
        row = flows[:, units.place[d]] if units.fitted == 0 else np.empty((2, 0))
        _one(sums[0], absolute[0], pairs[0], cells, none, row, of, d, here, units)
        variation += (absolute[0, 0] - start) / (2.0 * of.plan[d, 3])
        done = 1  # levels of which a unit of destinations ends before the next destination
        for rank in range(destination[d], destination[d + 1] if d + 1 < destination.size else zones):
            done = max(done, units.closes[rank])
        for level in range(1, done):
            if level == units.fitted:
                for slot in range(size):
                    for i in range(2):
                        flows[i, units.place[d], slot] = sums[level - 1, units.first[level] + slot, i]
            _close(sums[level - 1], sums[level], absolute[level], units)
            for slot in range(units.first[level], units.first[level + 1]):
                _count((none[slot, 0], none[slot, 1], none[slot, 2]), pairs[level])
                none[slot] = 1.0
    _close(sums[levels - 1], np.zeros((slots, 5)), absolute[levels], units)
    return FlowErrors(True, absolute, variation, pairs, cells, flows)


@compiled
def _close(sums: NDArray[np.float64], above: NDArray[np.float64], absolute: NDArray[np.float64], units: Units) -> None:
    """Add the errors of flows to one unit of destinations to `absolute`; hand them on to `above`, and clear them.

    The sum of many errors is taken for `mean_absolute` of its variance; what each alone has more or less of that,
    relative, fades with the square of what they have together over what all have alone, as excess kurtosis does.
    """
    for level in range(absolute.size):
        for slot in range(units.first[level], units.first[level + 1]):
            if sums[slot, 4] > 0.0:
                together = mean_absolute(sums[slot, 1], sums[slot, 2])
                more = sums[slot, 3] / sums[slot, 4] - 1.0
                absolute[level] += together * (1.0 + more * (together / sums[slot, 4]) ** 2)
                for i in range(5):
                    above[slot, i] += sums[slot, i]
                    sums[slot, i] = 0.0


@compiled
def _count(none: tuple[float, float, float], pairs: NDArray[np.float64]) -> None:
    """Add the chances of true workers, of synthetic ones, and of both, from those of none, none, and neither."""
    pairs[0] += 1.0 - none[0]
    pairs[1] += 1.0 - none[1]
    pairs[2] += 1.0 - none[0] - none[1] + none[2]


@compiled
def _none(none: NDArray[np.float64], here: tuple[float, float, float]) -> None:
    """Multiply a unit's chances of no true workers, no synthetic ones, and neither, by those of one destination."""
    for kind in range(3):
        none[kind] *= here[kind]


@compiled
def _nobody(
    linear: NDArray[np.float64], urn: Urn, cells: int, tables: CellTables, case: int
) -> tuple[float, float, float]:
    """Return these chances of a unit from its sums, see `between`: parts of several cells are taken for fewer whole."""
    n, share, drawn = urn.headcount, linear[0, 0], linear[1, 0]
    part = linear[1, 2] / drawn  # mean of r
    if cells > 1:
        whole = (urn.total * drawn - n * share) / (urn.total - n) * cells  # Σr
        if part < (1.0 - 1e-6) * whole:
            return nobody(urn, share, whole)
    return _others(_meet(n, share, drawn, _like_whole(part, drawn * cells), tables, case))


@compiled
def _others(met: tuple[float, float, float, float]) -> tuple[float, float, float]:
    """Return the chances of no true workers, no synthetic ones, and neither, from those of any: `_meet`."""
    true, found, both, _ = met
    return 1.0 - true, 1.0 - found, max(0.0, 1.0 - true - found + both)


@compiled
def _one(
    sums: NDArray[np.float64],
    absolute: NDArray[np.float64],
    pairs: NDArray[np.float64],
    cells: NDArray[np.float64],
    none: NDArray[np.float64],
    row: NDArray[np.float64],
    of: Resampled,
    d: int,
    here: Domain,
    units: Units,
) -> None:
    """Add what is expected of the flows from every unit to one destination; `row`, if any, is of `FlowErrors.flows`."""
    n, tables, case, urn, every = of.plan[d, 3], of.tables, of.tables.case[d], here.urn, of.plan[d, 1]
    levels = units.first.size - 1
    zones = units.closes.size
    slot = units.first[:-1].copy()  # the unit of each level at which we are
    linear, spread = np.zeros((levels, 4, 3)), np.zeros(levels)  # sums over cells of that unit
    before = np.zeros(levels)  # share of the prior in this cell before that unit
    for cell in range(here.prior.size):
        prior, drawn = here.prior[cell], here.drawn[cell]
        weights = np.array([prior, drawn, here.varies[cell], here.together[cell]])
        variance = between(urn, np.repeat(weights, 3).reshape(4, 3))
        mean_of = n * (drawn / prior - 1.0)  # mean of D over the share of the prior
        ratio = read(tables, case, place_of(tables, min(n * prior, n - n * prior)), 4)
        cells[0] += ratio * mean_absolute(n * (drawn - prior), variance)
        _count(nobody(urn, prior, here.number[cell]), cells[1:])
        gone = 0.0  # share of the prior in this cell up to here
        before[:] = 0.0
        for rank in range(here.bounds[cell], min(zones, here.bounds[cell + 1])):
            share = here.share[rank]
            if share > 0.0:
                part = share / prior
                own = _own(n, prior, drawn, part, tables, case)
                met = _meet(n, share, drawn * part, _like_whole(part, part * drawn * every), tables, case)
                for kind in range(3):
                    pairs[kind] += met[kind]
                absolute[0] += _add(sums[rank], n * share, mean_of * share, part * part * variance + own, met[3])
                if row.shape[1]:
                    row[0, rank], row[1, rank] = n * share, mean_of * share
                gone += share
            for i in range(1, units.closes[rank]):
                spread[i] += _part(linear[i], gone - before[i], weights, n, tables, case)
                workers, own = n * linear[i, 0, 0], between(urn, linear[i]) + spread[i]
                ratio = read(tables, case, place_of(tables, min(workers, n - workers)), 0)
                absolute[i] += _add(sums[slot[i]], workers, n * linear[i, 1, 0] - workers, own, ratio)
                if workers > 0.0:
                    _none(none[slot[i]], _nobody(linear[i], urn, every, tables, case))
                linear[i] = 0.0
                spread[i], before[i] = 0.0, gone
                slot[i] += 1
        for i in range(1, levels):
            spread[i] += _part(linear[i], gone - before[i], weights, n, tables, case)
        share = here.share[zones]
        if share > 0.0 and here.bounds[cell + 1] > zones:
            part = share / prior
            own = part * part * variance + inside(n, prior, drawn, part, 1.0, tables, case)
            met = _meet(n, share, drawn * part, _like_whole(part, part * drawn * every), tables, case)
            for kind in range(3):
                pairs[kind] += met[kind]
            for i in range(levels):
                absolute[i] += _add(sums[units.first[i + 1] - 1], n * share, mean_of * share, own, met[3])
                _none(none[units.first[i + 1] - 1], _others(met))
            if row.shape[1]:
                row[0, zones], row[1, zones] = n * share, mean_of * share


@compiled
def _add(sums: NDArray[np.float64], workers: float, mean: float, variance: float, ratio: float) -> float:
    """Add a flow: expected true workers, mean and variance of D, E|D|, and E|D| by variance alone; return E|D|."""
    alone = mean_absolute(mean, variance)
    sums[0] += workers
    sums[1] += mean
    sums[2] += variance
    sums[3] += alone * ratio
    sums[4] += alone
    return alone * ratio


@compiled
def _part(
    linear: NDArray[np.float64], taken: float, weights: NDArray[np.float64], n: int, tables: CellTables, case: int
) -> float:
    """Add a part of a cell to the sums of its unit, see `between`; return the variance inside the cell."""
    if taken <= 0.0:
        return 0.0
    part = min(1.0, taken / weights[0])
    for i in range(4):
        linear[i, 0] += part * weights[i]
        linear[i, 1] += part * weights[i]
        linear[i, 2] += part * part * weights[i]
    return inside(n, weights[0], weights[1], part, 1.0, tables, case)


@compiled
def _own(n: int, prior: float, drawn: float, part: float, tables: CellTables, case: int) -> float:
    """Return the variance of the error of a zone that is a part of a cell, the cell's workers given: `inside`, fast."""
    t = n * drawn * part
    if t < END and part < 0.5:
        return n * prior * part * (1.0 - part) + t * read(tables, case, place_of(tables, t), 1)
    return inside(n, prior, drawn, part, 1.0, tables, case)


@compiled
def _meet(
    n: int, share: float, drawn: float, whole: float, tables: CellTables, case: int
) -> tuple[float, float, float, float]:
    """Return the chances that a part of a cell has true workers, synthetic ones, and both, and how E|D| is off.

    `whole` is the weight of whole cells, `_like_whole`.
    """
    t, workers = n * drawn, n * share
    true, found, both, ratio = some(n, share), 0.0, 0.0, 0.0
    if whole > 0.0:
        place = place_of(tables, workers)
        found, both = whole * read(tables, case, place, 5), whole * read(tables, case, place, 6)
        ratio = whole * read(tables, case, place_of(tables, min(workers, n - workers)), 4)
    if whole < 1.0:
        place = place_of(tables, t)
        found += (1.0 - whole) * (min(1.0, t * read(tables, case, place, 2)) if t < END else 1.0)
        both += (1.0 - whole) * (read(tables, case, place, 3) if t < END else 1.0)
        ratio += (1.0 - whole) * read(tables, case, place_of(tables, min(t, n - t)), 0)
    return true, found, min(true, found, true * found * both), ratio


@compiled
def _like_whole(part: float, told: float) -> float:
    """Return the weight of whole cells in the mean that stands for a part of a cell, the rest that of parts.

    Tables know parts of average cells only: in one the same workers are the part `told`, in a lighter cell more of it.
    """
    if told >= 1.0 or part >= 1.0:
        return 1.0
    return max(0.0, (part - told) / (1.0 - told))
