"""Predicted errors of noisy counts read through the prior: what a domain and its noise would do. Public data only."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import Prior, PriorModel, mass_below, mean_km_of, prior_at_scale, worth
from synthmap.kernels.destination import cell_masses
from synthmap.kernels.histogram import Nested, nest


class Candidates(NamedTuple):
    """Domains and noise that the planner may choose from; arrays of equal length C.

    Attributes
    ----------
    cells, groups : ndarray of int64
        Asked for.
    finest : ndarray of int64
        Coarsening of the cells, see `Plan.finest`.
    variance, group_variance : ndarray of float64
        Of the noise on a count; group_variance < 0 where groups have no noisy counts.
    """

    cells: NDArray[np.int64]
    groups: NDArray[np.int64]
    finest: NDArray[np.int64]
    variance: NDArray[np.float64]
    group_variance: NDArray[np.float64]


class Predicted(NamedTuple):
    """What each candidate does at each destination.

    Attributes
    ----------
    cells, groups : ndarray of int64, shape (D, C)
        Made; 0 for candidates that were not looked at.
    km : ndarray of float64, shape (D, C)
        Root mean square error of the average commute; infinite where not looked at.
    variation : ndarray of float64, shape (D, C)
        Total variation between true and published origins, by the units of a level.
    prior_share : ndarray of float64, shape (D, C)
        Mean weight of the prior in a count, by workers.
    strength : ndarray of float64, shape (D,)
        How many workers the prior is worth.
    """

    cells: NDArray[np.int64]
    groups: NDArray[np.int64]
    km: NDArray[np.float64]
    variation: NDArray[np.float64]
    prior_share: NDArray[np.float64]
    strength: NDArray[np.float64]


@compiled
def _off(variance: float) -> float:
    """Return the expected difference of two whole numbers one of which is the other's mean, rounded at random.

    About 2v where both are nearly always 0 and √(2v/π) where they are large.
    """
    return float(2.0 * variance / (1.0 + 2.5 * np.sqrt(variance)))


@compiled
def predict_one(
    tree: ZoneTree,
    prior: Prior,
    nested: Nested,
    headcount: int,
    noise: tuple[float, float],
    strength: tuple[float, float],
    units: NDArray[np.int32],
) -> tuple[float, float, float]:
    """Return (error of the average commute in km, total variation, weight of the prior) of one domain.

    Parameters
    ----------
    noise : tuple of float
        Variance of the noise of cells and of groups; the latter below 0 for none.
    strength : tuple of float
        Between groups and inside them, see `kernels.reading`.
    units : ndarray of int32
        Where the units of the level start that total variation is meant for.

    Notes
    -----
    A cell of λ expected workers varies by V = λ·(1 + n/inside) around the prior; with noise of variance ω what is left
    is v = 1/(1/V + 1/ω), and the prior's weight is ω/(V + ω). A group varies by V_g = nΠ(1 − Π)(n + S)/(1 + S); what is
    known of it is the sum of its cells, noise kω, and its own noisy count. With distances d of cells and d_g of groups,

        n²·E² = Σ_g v_g·(d_g − d̄)² + Σ_i v_i·(d_i − d_g)² + (σ² − ω²)       reading, and rounding to whole workers
                + n²·ω²·(1/n + (1 − 1/n)/(k + S)) + n·ω²/max(1, n/k)           inside cells, as `predicted_errors`,

    σ² the prior's variance of the distance, ω² what of it is inside cells. Total variation adds up how far units are
    off; those inside one cell share what is known of it.
    """
    zones, n, k = tree.cumulative.size - 1, float(headcount), nested.group.size
    masses = cell_masses(prior, tree.cumulative, nested.bounds)
    total = float(masses[-1])
    km, left = np.empty(k), np.zeros(k)
    lam_g, km_g, known_g = np.zeros(nested.groups), np.zeros(nested.groups), np.zeros(nested.groups)
    squares, variation, weight = 0.0, 0.0, 0.0
    for i in range(k):
        low, high, g = nested.bounds[i], min(nested.bounds[i + 1], zones), nested.group[i]
        lam = n * (masses[i + 1] - masses[i]) / total
        km[i] = prior.mean_km if low >= zones else mean_km_of(prior, tree.cumulative, low, high)
        if lam == 0.0:
            continue
        if low < zones:  # what is inside cells is of those on the map, as the variance is
            squares += (mass_below(prior, tree.cumulative, high) - masses[i]) / prior.mass[-2] * km[i] ** 2
        varies = lam * (1.0 + n / strength[1])
        left[i] = 1.0 / (1.0 / varies + 1.0 / noise[0]) if noise[0] > 0.0 else 0.0
        weight += lam / n * noise[0] / (varies + noise[0])
        lam_g[g] += lam
        km_g[g] += lam * km[i]
        known_g[g] += noise[0]
        inside = max(1, np.searchsorted(units, nested.bounds[i + 1]) - np.searchsorted(units, low))
        variation += inside * _off(varies / inside * (1.0 - 1.0 / inside) + left[i] / inside**2)
    squared = 0.0
    for g in range(nested.groups):
        if lam_g[g] == 0.0:
            continue
        km_g[g] /= lam_g[g]
        varies = lam_g[g] * (1.0 - lam_g[g] / n) * (n + strength[0]) / (1.0 + strength[0])
        known = 1.0 / known_g[g] if known_g[g] > 0.0 else np.inf
        if noise[1] > 0.0:
            known += 1.0 / noise[1]
        if varies > 0.0:
            squared += (km_g[g] - prior.mean_km) ** 2 / (1.0 / varies + known)
    for i in range(k):
        squared += left[i] * (km[i] - km_g[nested.group[i]]) ** 2
    inside_km2 = min(prior.variance_km2, max(0.0, prior.variance_km2 + prior.mean_km**2 - squares))
    squared = (squared + prior.variance_km2 - inside_km2) / n**2
    squared += inside_km2 * (1.0 / n + (1.0 - 1.0 / n) / (k + strength[0]) + 1.0 / n / max(1.0, n / k))
    return np.sqrt(squared), min(1.0, variation / (2.0 * n)), weight


@compiled
def predict(
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    scale_km: NDArray[np.float64],
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    candidates: Candidates,
    most: NDArray[np.int64],
    inside: float,
    segments: int,
    units: NDArray[np.int32],
) -> Predicted:
    """Return what every candidate does at every destination, by prior mass those of at most `most`; see `predict_one`.

    With S segments a cell's noise is that of S counts, and the weight of the prior that of one of them.
    """
    shape = (destination.size, candidates.cells.size)
    cells, groups = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    km, variation, share = np.full(shape, np.inf), np.full(shape, np.inf), np.ones(shape)
    strength = np.empty(destination.size)
    for d in range(destination.size):
        prior = prior_at_scale(tree, model, points[d], destination[d], scale_km[d])
        strength[d] = worth(model, destination[d], headcount[d])
        for c in range(candidates.cells.size):
            if candidates.finest[c] < 0 and candidates.cells[c] > most[d]:
                continue
            asked = (candidates.cells[c], candidates.groups[c])
            nested = nest(tree, points[d], prior, candidates.finest[c], asked)
            noise = (segments * candidates.variance[c], segments * candidates.group_variance[c])
            if nested.group.size * segments == 1:
                noise = (0.0, -1.0)
            cells[d, c], groups[d, c] = nested.group.size, nested.groups
            km[d, c], variation[d, c], share[d, c] = predict_one(
                tree, prior, nested, headcount[d], noise, (strength[d], max(inside, strength[d])), units
            )
            if nested.group.size == 1:
                share[d, c] = 1.0
    return Predicted(cells, groups, km, variation, share, strength)
