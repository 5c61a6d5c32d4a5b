"""One destination's prior, zone by zone, its cells, and what resampling does to a part of one. Public."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.cell_tables import END, LONG_SPREAD, CellTables, place_of, read
from synthmap.compiled import compiled
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import PriorModel, prior_from
from synthmap.kernels.destination import cell_masses
from synthmap.kernels.histogram import nest

_FEW = 0.01  # expected workers up to which the chance of any is a series of three terms, right to 1e-6 of it


class Resampled(NamedTuple):
    """Destinations whose real counts are resampled, as many synthetic workers as true ones, ascending.

    Attributes
    ----------
    tree : ZoneTree
    model : PriorModel
    points : ndarray of float64, shape (destinations, 3)
    destination : ndarray of int32, shape (destinations,)
    plan : ndarray of int64, shape (destinations, 5)
        Cells asked, groups asked, cells, finest and n.
    alpha : ndarray of float64, shape (destinations,)
        Workers for each cell.
    tables : CellTables
    """

    tree: ZoneTree
    model: PriorModel
    points: NDArray[np.float64]
    destination: NDArray[np.int32]
    plan: NDArray[np.int64]
    alpha: NDArray[np.float64]
    tables: CellTables


class Domain(NamedTuple):
    """A destination's origins.

    Attributes
    ----------
    share : ndarray of float64, shape (zones + 1,)
        Share of the prior of each zone, the last elsewhere.
    bounds : ndarray of int64, shape (cells + 1,)
        Ranks at which cells start, then zones + 1.
    prior, drawn : ndarray of float64, shape (cells,)
        Share q_c of the prior, and ``(n·q_c + α)/N``, that of synthetic workers, if the prior is the truth.
    """

    share: NDArray[np.float64]
    bounds: NDArray[np.int64]
    prior: NDArray[np.float64]
    drawn: NDArray[np.float64]


@compiled
def domain_of(of: Resampled, d: int) -> Domain:
    """Return the origins of the destination in place d."""
    tree, point, headcount, alpha = of.tree, of.points[d], of.plan[d, 4], of.alpha[d]
    prior = prior_from(tree, of.model, point, of.destination[d])
    bounds = nest(tree, point, prior, of.plan[d, 3], (of.plan[d, 0], of.plan[d, 1])).bounds
    every = float(prior.mass[-1])
    zones = tree.cumulative.size - 1
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
    return Domain(share, bounds, cells, (headcount * cells + alpha) / (headcount + alpha * cells.size))


@compiled
def between(headcount: int, total: float, linear: NDArray[np.float64]) -> float:
    """Return the variance, workers², of Σ r_c·(y_c − x_c), or the covariance of two such sums.

    Parameters
    ----------
    headcount, total : n, and N = n + A.
    linear : ndarray of float64, shape (6,)
        Σ a·q, Σ b·q, Σ a·b·q over cells, and the same with `Domain.drawn` for q; a and b are the r of either sum.

    Notes
    -----
    Let θ = (x + α)/N, x ~ Multinomial(n, q), y ~ DirichletMultinomial(n; Nθ), and W(p) = Σ a·b·p − Σ a·p·Σ b·p. Given
    x, y has the mean nθ and Σ a·y, Σ b·y have the covariance n·(n + N)/(1 + N)·W(θ). Over x the mean of W(θ) is
    W(p) − n·W(q)/N², p the mean of θ, and nθ − x = n·α/N − (A/N)·x adds (A/N)²·n·W(q).
    """
    prior = linear[2] - linear[0] * linear[1]
    drawn = linear[5] - linear[3] * linear[4]
    moved = (total - headcount) / total
    drawing = headcount * (headcount + total) / (1.0 + total)
    return float(moved * moved * headcount * prior + drawing * (drawn - headcount / (total * total) * prior))


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


@compiled
def some(headcount: int, share: float) -> float:
    """Return the chance ``1 − (1 − q)^n`` that any of n workers comes from the share q of the prior."""
    few = headcount * share
    if few < _FEW:
        return few * (1.0 - 0.5 * (few - share) * (1.0 - (few - 2.0 * share) / 3.0))
    return 1.0 - math.exp(headcount * math.log1p(-share)) if share < 1.0 else 1.0


@compiled
def nobody(headcount: int, total: float, share: float, mass: float) -> tuple[float, float, float]:
    """Return the chances that a union of whole cells has no true workers, no synthetic ones, and neither.

    Parameters
    ----------
    headcount, total : n, and N = n + A.
    share, mass : the union's share q of the prior, and pseudo-count a, workers.

    Notes
    -----
    With x true workers none is drawn with the chance ``G(x) = Γ(c + n)·Γ(N)/(Γ(c)·Γ(N + n))``, c = N − a − x, so that
    ``G(x)/G(x − 1) = c/(c + n)``; x is binomial.
    """
    rest = total - mass
    if share >= 1.0 or rest <= 0.0:
        return 0.0, 0.0, 0.0
    true = 1.0 - some(headcount, share)
    drawn = math.lgamma(rest + headcount) - math.lgamma(rest) + math.lgamma(total) - math.lgamma(total + headcount)
    neither = true * math.exp(drawn)
    odds, term, found = share / (1.0 - share), neither, neither
    for x in range(1, headcount + 1):
        rest -= 1.0
        term *= (headcount - x + 1.0) / x * odds * max(0.0, rest) / (max(0.0, rest) + headcount)
        found += term
        if term < 1e-12 * found:
            break
    return true, found, neither
