"""One destination's prior, zone by zone, its cells, and what resampling does to a part of one. Public."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.cell_tables import END, LONG_SPREAD, CellTables, place_of, read
from synthmap.analysis.urns import Urn, dropped, urn_of
from synthmap.compiled import compiled
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import PriorModel, prior_from
from synthmap.kernels.destination import cell_masses, coarsen


class Resampled(NamedTuple):
    """Destinations whose real counts are resampled, as many synthetic workers as true ones, ascending.

    Attributes
    ----------
    tree : ZoneTree
    model : PriorModel
    points : ndarray of float64, shape (destinations, 3)
    destination : ndarray of int32, shape (destinations,)
    plan : ndarray of int64, shape (destinations, 4)
        Cells asked, cells, finest and n.
    alpha : ndarray of float64, shape (destinations,)
        Workers for each cell.
    keep : ndarray of float64, shape (destinations,)
        Chance f, the same in all cells, that an empty one is kept.
    tables : CellTables
    """

    tree: ZoneTree
    model: PriorModel
    points: NDArray[np.float64]
    destination: NDArray[np.int32]
    plan: NDArray[np.int64]
    alpha: NDArray[np.float64]
    keep: NDArray[np.float64]
    tables: CellTables


class Domain(NamedTuple):
    """A destination's origins.

    Attributes
    ----------
    share : ndarray of float64, shape (zones + 1,)
        Share of the prior of each zone, the last elsewhere.
    bounds : ndarray of int64, shape (cells + 1,)
        Ranks at which cells start, then zones + 1.
    number : ndarray of float64, shape (cells,)
        Of the urn's cells that each is: 1, but everywhere else may be several, of which only one ever has workers.
    prior, drawn : ndarray of float64, shape (cells,)
        Share q_c of the prior, and ``(n·q_c + α·κ_c)/N``, that of synthetic workers, if the prior is the truth; κ_c is
        how many of the urn's cells are kept, on average.
    varies, together : ndarray of float64, shape (cells,)
        How many of a cell's are kept has the variance ``varies − n·together²``, and of two cells the covariance −n
        times the product of their `together`. 0 where all are kept.
    urn : Urn
    """

    share: NDArray[np.float64]
    bounds: NDArray[np.int64]
    number: NDArray[np.float64]
    prior: NDArray[np.float64]
    drawn: NDArray[np.float64]
    varies: NDArray[np.float64]
    together: NDArray[np.float64]
    urn: Urn


@compiled
def domain_of(of: Resampled, d: int) -> Domain:
    """Return the origins of the destination in place d."""
    tree, point, headcount, alpha = of.tree, of.points[d], of.plan[d, 3], of.alpha[d]
    prior = prior_from(tree, of.model, point, of.destination[d])
    bounds = coarsen(tree, point, prior, of.plan[d, 2], of.plan[d, 0], of.plan[d, 0])
    every = float(prior.mass[-1])
    zones = tree.cumulative.size - 1
    number = np.ones(min(bounds.size - 1, int(np.searchsorted(bounds, zones)) + 1))
    number[-1] = bounds.size - number.size
    bounds = np.append(bounds[: number.size], zones + 1)
    share = np.empty(zones + 1)
    for piece in range(prior.decay.size):
        low, high, decay = prior.start[piece], prior.start[piece + 1], prior.decay[piece]
        if decay == 0:  # zones of the public table are pieces of their own
            share[low:high] = (prior.mass[piece + 1] - prior.mass[piece]) / every
            continue
        for rank in range(low, high):
            share[rank] = decay * (tree.cumulative[rank + 1] - tree.cumulative[rank]) / every
    share[zones] = (prior.mass[-1] - prior.mass[-2]) / every
    cells = np.diff(cell_masses(prior, tree.cumulative, bounds)) / every
    gone, varies, together = np.zeros(cells.size), np.zeros(cells.size), np.zeros(cells.size)
    if of.keep[d] < 1.0:
        for cell in range(cells.size):
            gone[cell], varies[cell], together[cell] = dropped(headcount, cells[cell], of.keep[d])
        empty = (number[-1] - 1.0) * (1.0 - of.keep[d])
        gone[-1] += empty
        varies[-1] += empty * of.keep[d]
    urn = urn_of(headcount, alpha, of.keep[d], number.sum() - gone.sum(), varies.sum(), together.sum())
    drawn = (headcount * cells + urn.alpha * (number - gone)) / urn.total
    return Domain(share, bounds, number, cells, drawn, varies, together, urn)


@compiled
def inside(
    headcount: int, prior: float, drawn: float, part: float, ranges: float, tables: CellTables, case: int
) -> float:
    """Return the variance, workers², of the error of a part of a cell, the cell's true and synthetic workers given.

    Parameters
    ----------
    headcount : n.
    prior, drawn : the cell's, as of `Domain`.
    part : share of its prior mass.
    ranges : of ranks that it consists of, taken to be alike, and their synthetic workers to vary independently.
    """
    t = headcount * drawn * min(part, 1.0 - part) / ranges
    spread = ranges * (t * read(tables, case, place_of(tables, t), 1) if t < END else LONG_SPREAD)
    between_them = part * (1.0 - part)
    return headcount * (prior * between_them + min(spread / headcount, drawn * between_them))
