"""Commute lengths under the prior, seen from each destination: what closed forms of their errors need. Public."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.prior_world import Setting, domain_planned
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.urns import some
from synthmap.compiled import compiled
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import (
    PriorModel,
    elsewhere_share_of,
    mass_below,
    mean_km_of,
    prior_from,
    worth,
)
from synthmap.kernels.bounded import KEEP_UNITS


def prior_cdf_width_km(setting: Setting) -> NDArray[np.float64]:
    """Return ``∫ √(F·(1 − F)) dt`` of each destination, km; F is the prior's distribution of commute lengths.

    Notes
    -----
    At least their standard deviation. Everywhere else is left out; all of a piece of the prior has one length.
    """
    return _widths(setting.tree, setting.model, setting.points, setting.destination)


class PriorCommutes(NamedTuple):
    """Commutes under the prior, seen from each destination and its plan's cells.

    Arrays of float64, shape (destinations,); NaN where cells are not those planned.

    Attributes
    ----------
    bias_km : ndarray
        Expected signed error of an average commute, if the prior were the truth; of Dirichlet resampling, NaN also
        where empty cells of several segments are dropped, or light ones rather than heavy ones, which is not modelled.
    mean_km : ndarray
    groups_km2, cells_km2, inside_km2 : ndarray
        Variance of a commute's length: that of the mean lengths of groups of cells, of those of cells within groups,
        and what is inside cells.
    parts : ndarray
        Cells on the map.
    strength : ndarray
        How many workers the prior is worth.
    """

    bias_km: NDArray[np.float64]
    mean_km: NDArray[np.float64]
    groups_km2: NDArray[np.float64]
    cells_km2: NDArray[np.float64]
    inside_km2: NDArray[np.float64]
    parts: NDArray[np.float64]
    strength: NDArray[np.float64]


def prior_commutes(setting: Setting, plan: PublishedPlan) -> PriorCommutes:
    """Return what the prior says of commutes to each destination.

    Notes
    -----
    The signed error is ``A/(N + A)·(Σ_c μ_c/k − Σ_c p_c·μ_c)`` of N true workers on the map: pseudo-counts are the
    same in all k cells on the map, A together; p_c is a cell's share of the prior there and μ_c its mean length. It is
    0 for cells of equal mass. Exact with N = n if nobody comes from elsewhere; else N is taken for n times the share of
    the prior that lies on the map. Where an empty cell is kept with the chance f, a cell counts as
    ``1 − (1 − f)·(1 − q_c)^n`` of one, which is the chance that it is kept.
    """
    alpha = plan.alpha_numerator / plan.alpha_denominator * setting.segments
    found = PriorCommutes(
        *_commutes(
            setting.tree,
            setting.model,
            setting.points,
            setting.destination,
            plan.finest,
            np.stack([plan.cells_asked, plan.groups_asked], axis=1),
            plan.cells,
            plan.resampled,
            plan.headcount,
            alpha,
            plan.keep_units / KEEP_UNITS,
        )
    )
    return found._replace(bias_km=np.where(plan.resampled & modelled(setting, plan), found.bias_km, np.nan))


def modelled(setting: Setting, plan: PublishedPlan) -> NDArray[np.bool_]:
    """Return where closed forms of cells know which empty ones are kept: all, or each with the same chance."""
    return np.asarray((plan.keep_units == KEEP_UNITS) | (setting.segments == 1 and not setting.keep_by_prior))


@compiled
def _widths(
    tree: ZoneTree, model: PriorModel, points: NDArray[np.float64], destination: NDArray[np.int32]
) -> NDArray[np.float64]:
    out = np.empty(len(points))
    for d in range(len(points)):
        prior = prior_from(tree, model, points[d], destination[d])
        mass = np.diff(prior.mass)[: prior.decay.size].astype(np.float64)
        km = np.diff(prior.moment) / np.maximum(mass, 1.0)
        order = np.argsort(km)
        total, below, width, last = mass.sum(), 0.0, 0.0, -1
        for piece in order:
            if mass[piece] > 0:
                share = below / total
                if last >= 0:
                    width += np.sqrt(max(0.0, share * (1.0 - share))) * (km[piece] - km[last])
                below += mass[piece]
                last = piece
        out[d] = width
    return out


@compiled
def _commutes(
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    destination: NDArray[np.int32],
    finest: NDArray[np.int64],
    asked: NDArray[np.int64],
    cells: NDArray[np.int64],
    resampled: bool,
    headcount: NDArray[np.int64],
    alpha: NDArray[np.float64],
    keep: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the fields of `PriorCommutes`; the signed error as if all were modelled."""
    out = np.full((7, len(points)), np.nan)
    zones = tree.cumulative.size - 1
    for d in range(len(points)):
        prior = prior_from(tree, model, points[d], destination[d])
        nested = domain_planned(tree, points[d], prior, finest[d], (asked[d, 0], asked[d, 1]), resampled)
        bounds = nested.bounds
        if bounds.size - 1 != cells[d]:
            continue
        share, moment = np.zeros(nested.groups), np.zeros(nested.groups)
        means, known, parts, squares = 0.0, 0.0, 0, 0.0
        for cell in range(cells[d]):
            high = min(bounds[cell + 1], zones)
            below = mass_below(prior, tree.cumulative, bounds[cell])
            here = mass_below(prior, tree.cumulative, high) - below
            if here > 0:
                mean = mean_km_of(prior, tree.cumulative, bounds[cell], high)
                q = (mass_below(prior, tree.cumulative, bounds[cell + 1]) - below) / prior.mass[-1]
                kept = 1.0 - (1.0 - keep[d]) * (1.0 - some(headcount[d], q))
                means += kept * mean
                known += kept
                p = here / prior.mass[-2]
                share[nested.group[cell]] += p
                moment[nested.group[cell]] += p * mean
                squares += p * mean * mean
                parts += 1
        of_groups = (moment**2 / np.maximum(share, 1e-300)).sum()
        between = min(max(0.0, squares - prior.mean_km**2), prior.variance_km2)
        groups = min(max(0.0, of_groups - prior.mean_km**2), between)
        mass, workers = alpha[d] * known, headcount[d] * (1.0 - elsewhere_share_of(prior))
        out[0, d] = mass / (workers + mass) * (means / known - prior.mean_km) if cells[d] > 1 and known > 0.0 else 0.0
        out[1, d], out[2, d], out[3, d] = prior.mean_km, groups, between - groups
        out[4, d], out[5, d] = prior.variance_km2 - between, parts
        out[6, d] = worth(model, destination[d], headcount[d])
    return out
