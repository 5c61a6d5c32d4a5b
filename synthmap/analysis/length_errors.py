"""Moments of the errors of workers by commute length over whole tables, if the prior is the truth. Public."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.absolute import mean_absolute
from synthmap.analysis.cell_tables import CellTables
from synthmap.analysis.lengths import BIN_KM
from synthmap.analysis.prior_cells import Domain, Resampled, domain_of, inside
from synthmap.analysis.urns import Urn, between
from synthmap.compiled import compiled
from synthmap.geography.distance import EARTH_KM, great_circle_km
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import finest_level

CLASS_KM = 0.5
_TOGETHER = round(BIN_KM / CLASS_KM)


class LengthErrors(NamedTuple):
    """Sums over destinations; workers or workers². D is the error of a number of workers, synthetic less true.

    Attributes
    ----------
    below : ndarray of float64, shape (classes, 4)
        For the end of each class of `CLASS_KM`: expected true workers with shorter commutes, the mean of their D, its
        variance, and its covariance with the D of elsewhere.
    within : ndarray of float64, shape (classes, 3)
        Expected true workers in each class of `BIN_KM`, mean and variance of their D.
    away : ndarray of float64, shape (3,)
        The same of those from elsewhere.
    """

    below: NDArray[np.float64]
    within: NDArray[np.float64]
    away: NDArray[np.float64]


def common_part_and_wasserstein_km(found: LengthErrors) -> tuple[float, float]:
    """Return the expected common part of lengths and Wasserstein distance, km, of all workers on the map.

    Notes
    -----
    ``1 − Σ E|D|/(W + W')`` over classes, W the true workers on the map and W' the synthetic ones. The distance is
    ``∫ E|D_t − F(t)·D_map| dt/W``, F the distribution of lengths, D_t the error of workers nearer than t, and D_map of
    those on the map, that of elsewhere with the other sign; by trapezoids.
    """
    on_map = found.below[-1, 0]
    parts = sum(mean_absolute(mean, variance) for _, mean, variance in found.within.tolist())
    distance = 0.0
    for workers, mean, variance, with_away in found.below.tolist():
        share = workers / on_map
        centred = max(0.0, variance + 2.0 * share * with_away + share**2 * found.away[2])
        distance += CLASS_KM * mean_absolute(mean + share * found.away[1], centred) / on_map
    return float(1.0 - parts / (2.0 * on_map - found.away[1])), float(distance)


def classes_of(tree: ZoneTree) -> int:
    """Return how many classes of `CLASS_KM` hold every length in a region."""
    return math.ceil(min(2.0 * float(tree.nodes["radius"][0]), math.pi * EARTH_KM) / CLASS_KM) + 2


@compiled
def length_errors(of: Resampled, classes: int, stop: NDArray[np.int64]) -> LengthErrors:
    """Return the moments; Notes of `flow_errors` hold for workers of a class, too.

    When it is stopped, no destination that follows is in the sums. Those of one cell that live in a class are ranges of
    its prior mass, which `inside` takes to be alike and to vary independently; with one or few cells that makes
    variances up to a tenth too large.
    """
    below, away = np.zeros((classes, 4)), np.zeros(3)
    within = np.zeros((classes // _TOGETHER + 1, 3))
    share, band = np.zeros(classes), np.zeros(within.shape[0])
    for d in range(of.destination.size):
        if stop[0]:
            break
        _one(below, within, away, of, d, share, band)
    return LengthErrors(below, within, away)


@compiled
def _one(
    below: NDArray[np.float64],
    within: NDArray[np.float64],
    away: NDArray[np.float64],
    of: Resampled,
    d: int,
    share: NDArray[np.float64],
    band: NDArray[np.float64],
) -> None:
    """Add one destination; `share` and `band` are zeros, to work with."""
    here, point, places = domain_of(of, d), of.points[d], of.tree.level_centre[finest_level(of.tree)]
    tables, case = of.tables, of.tables.case[d]
    zones = here.share.size - 1
    steps = np.zeros((share.size + 1, 9))  # what sums over cells change by from one class to the next
    bands = np.zeros((band.size, 9))
    nearer = np.zeros(share.size)  # share of the cell that is nearer than the end of a class
    ends, ranges = np.zeros(share.size + 1), np.zeros(band.size)  # where ranges of ranks end, each of one class or band
    for cell in range(here.prior.size):
        prior = here.prior[cell]
        first, last, before = share.size, -1, -1
        for rank in range(here.bounds[cell], min(zones, here.bounds[cell + 1])):
            if here.share[rank] > 0.0:
                at = min(share.size - 1, int(great_circle_km(point, places[rank]) / CLASS_KM))
                share[at] += here.share[rank]
                first, last = min(first, at), max(last, at)
                if before < 0 or at // _TOGETHER != before // _TOGETHER:
                    ranges[at // _TOGETHER] += 1.0
                if before >= 0 and at != before:  # an end for all distances between the two
                    ends[min(at, before)] += 1.0
                    ends[max(at, before)] -= 1.0
                before = at
        nearer[:] = 0.0
        between_two = 0.0
        for at in range(first, last + 1):
            band[at // _TOGETHER] += share[at]
            nearer[at] = min(1.0, share[at] / prior + (nearer[at - 1] if at else 0.0))
            share[at] = 0.0
            between_two += ends[at]
            ends[at] = 0.0
            sums = _part(nearer[at], here, cell, max(1.0, 0.5 * between_two), tables, case)
            steps[at] += sums
            if at < last:
                steps[at + 1] -= sums
        if last >= 0:
            nearer[last:] = nearer[last]
            for at in range(first // _TOGETHER, last // _TOGETHER + 1):
                if band[at] > 0.0:
                    bands[at] += _part(min(1.0, band[at] / prior), here, cell, ranges[at], tables, case)
                    band[at], ranges[at] = 0.0, 0.0
    part = here.share[zones] / here.prior[-1]  # of the last cell that is elsewhere
    own = _part(part, here, here.prior.size - 1, 1.0, tables, case)
    sums, linear = np.zeros(9), np.empty((4, 3))
    for at in range(share.size):
        sums += steps[at]
        workers, mean, variance = _moments(sums, here.urn)
        below[at, 0] += workers
        below[at, 1] += mean
        below[at, 2] += variance
        if part > 0.0:
            for i in range(4):
                linear[i, 0], linear[i, 1], linear[i, 2] = sums[2 * i], own[2 * i], nearer[at] * own[2 * i]
            below[at, 3] += between(here.urn, linear) - (nearer[at] / (1.0 - part) * own[8] if part < 1.0 else 0.0)
    for at in range(band.size):
        if bands[at, 0] > 0.0:
            for i, moment in enumerate(_moments(bands[at], here.urn)):
                within[at, i] += moment
    for i, moment in enumerate(_moments(own, here.urn)):
        away[i] += moment


@compiled
def _part(part: float, here: Domain, cell: int, ranges: float, tables: CellTables, case: int) -> NDArray[np.float64]:
    """Return what a part of a cell adds to Σ r·q, Σ r²·q, the same of `between`'s others, and the variance inside."""
    weights = here.prior[cell], here.drawn[cell], here.varies[cell], here.together[cell]
    out = np.empty(9)
    for i in range(4):
        out[2 * i], out[2 * i + 1] = part * weights[i], part * part * weights[i]
    out[8] = inside(here.urn.headcount, weights[0], weights[1], part, ranges, tables, case)
    return out


@compiled
def _moments(sums: NDArray[np.float64], urn: Urn) -> tuple[float, float, float]:
    """Return expected true workers, and mean and variance of D, from sums of `_part`."""
    n, linear = urn.headcount, np.empty((4, 3))
    for i in range(4):
        linear[i, :2], linear[i, 2] = sums[2 * i], sums[2 * i + 1]
    return n * sums[0], n * (sums[2] - sums[0]), between(urn, linear) + sums[8]
