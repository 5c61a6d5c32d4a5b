"""What a release's measures are expected to be, from the release's public files alone: no ε is spent."""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from synthmap.analysis.classes import density_edges, jobs_per_km2
from synthmap.analysis.comparison import Comparison, measure
from synthmap.analysis.expected_flows import ExpectedPairs, expected_flows
from synthmap.analysis.gravity import GravityFit
from synthmap.analysis.measures import PairCounts, common_part, count_pairs, weighted_mean
from synthmap.analysis.prior_distances import PriorCommutes, modelled, prior_cdf_width_km, prior_commutes
from synthmap.analysis.prior_world import Setting, in_cells, prior_variances_km2, prior_world
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import ZONE, pair
from synthmap.analysis.true_averages import ClassErrors, errors_by_true_average, true_averages
from synthmap.geography.zones import Zones
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.published.expected import (
    HEADCOUNT_EDGES,
    LENGTH_EDGES_KM,
    expected_common_part,
    expected_mae_km,
    expected_pairs,
    expected_wasserstein_km,
    sampling_sd_km,
)
from synthmap.release.manifest import Manifest


class ExpectedClass(BaseModel):
    """Expected errors of average commutes of the destinations whose value lies in [low, high).

    Attributes
    ----------
    destinations, workers : int
        All that the plan has there, or is expected to have.
    mae_km, mae_km_unweighted, bias_km, bias_km_unweighted, rmse_km : float or None
        As ``distance_…`` of `Expected`, of this class; what is None at one destination is None of its class.
    """

    model_config = ConfigDict(frozen=True)

    low: float
    high: float | None
    destinations: int
    workers: int
    mae_km: float | None
    mae_km_unweighted: float | None
    bias_km: float | None
    bias_km_unweighted: float | None
    rmse_km: float | None


class Expected(BaseModel):
    """Expectations of measures of a release. Public.

    Attributes
    ----------
    distance_mae_km, distance_mae_km_unweighted : float or None
        `expected_mae_km` of the plan's predicted error of each destination's average commute and its signed error,
        if known, averaged with the weights of the measure; None where the plan predicts none.
    distance_bias_km, distance_bias_km_unweighted : float or None
        Signed error of average commutes, if the prior were the truth (`prior_commutes`); None where noise is added
        to counts, or empty cells of several segments, or light ones rather, are dropped.
    distance_rmse_km : float or None
        Root of the worker-weighted mean square of the plan's predicted errors.
    length_wasserstein_by_destination_km : float or None
        `expected_wasserstein_km`, under the assumptions of ``distance_mae_km``; None likewise, and of cells by
        distance, whose uniform noise moves all lengths of a destination one way.
    distance_sampling_sd_km : float or None
        Worker-weighted mean of the standard deviation that drawing alone gives an average commute; None where real
        counts are not resampled.
    prior_share : float
        Share of synthetic workers drawn from the prior.
    cpc_cells, spurious_cells, missing_cells : float or None
        Common part of the tables of cells, and shares of occupied ones, if the prior were the truth: `expected_flows`;
        where it tells none, `expected_common_part` and `expected_pairs`, which take cells to have equal mass. Zones do
        not fit such cells exactly, and spurious ones come out up to a fifth too low. None where ``distance_bias_km``
        is, and of cells by distance where `expected_flows` is.
    cpc : dict of str to float
        Common part of commuters, keyed as `Comparison.cpc`: as the histogram's plan expects it, from origins of the
        level that it was planned for to zones; where real counts are resampled, all of `expected_flows`, or none.
    tv, tv_unweighted : float or None
    tv_by_level : dict of str to float
    marginals : dict of str to float
    pairs : dict of str to ExpectedPairs
    cpl : float or None
    length_wasserstein_km : float or None
    gravity : GravityFit or None
        `expected_flows`, shares unless said, if the prior were the truth: errors of origin zones at a destination, and
        by level of origins; relative errors of workers by area of residence, by level; pairs of zones, as
        ``spurious_cells``; commute lengths, km; coefficients. None, or empty, where it tells none: noise on counts,
        ways of dropping as for ``distance_bias_km``, other totals than the true ones, other cells than planned, too
        many pairs of zones. Where empty cells are dropped, pairs of zones alone are told.
    by_headcount, by_density, by_length : list of ExpectedClass
        Classes of `Comparison`. A destination's true average commute is not public, but how far it may lie from its
        prior's mean is planned with: so it is in several classes of ``by_length``, in each with its chance, and numbers
        are expected ones, rounded (`true_averages`). Empty where cells are not those planned, or noisy counts are not
        read as means.
    if_prior_were_true : Comparison or None
        Every measure in a world whose true origins are drawn from the prior (`prior_world`): noise and sampling
        without the error of the prior. None where the plan cannot be run again over these zones.
    cpc_cells_if_prior_were_true, pairs_cells_if_prior_were_true : float, PairCounts or None
        The same of tables of cells.
    """

    model_config = ConfigDict(frozen=True)

    distance_mae_km: float | None
    distance_mae_km_unweighted: float | None
    distance_bias_km: float | None
    distance_bias_km_unweighted: float | None
    distance_rmse_km: float | None
    length_wasserstein_by_destination_km: float | None
    distance_sampling_sd_km: float | None
    prior_share: float
    cpc_cells: float | None = None
    spurious_cells: float | None = None
    missing_cells: float | None = None
    cpc: dict[str, float]
    tv: float | None = None
    tv_unweighted: float | None = None
    tv_by_level: dict[str, float] = {}
    marginals: dict[str, float] = {}
    pairs: dict[str, ExpectedPairs] = {}
    cpl: float | None = None
    length_wasserstein_km: float | None = None
    gravity: GravityFit | None = None
    by_headcount: list[ExpectedClass]
    by_density: list[ExpectedClass]
    by_length: list[ExpectedClass]
    if_prior_were_true: Comparison | None
    cpc_cells_if_prior_were_true: float | None
    pairs_cells_if_prior_were_true: PairCounts | None


def expectation(manifest: Manifest, plan: PublishedPlan, setting: Setting, zones: Zones) -> Expected:
    """Return the expectations of a release with this plan."""
    n, mass = plan.headcount, plan.mass(setting.segments)
    alike = bool(((plan.finest < 0) | (plan.cells == 1)).all())  # cells of equal prior mass
    variances = prior_variances_km2(setting)
    wasserstein = expected_wasserstein_km(plan.predicted_km, variances, prior_cdf_width_km(setting))
    density = jobs_per_km2(plan.destination, n, zones)
    world = prior_world(setting, plan)
    both = None if world is None else pair(*world, len(zones))
    cells = None if both is None else in_cells(both, setting, plan)
    flows = expected_flows(setting, plan, zones)
    sampling = None
    planned = {} if plan.resampled else {f"{_planned_level(manifest)}/{ZONE}": weighted_mean(plan.common_part, n)}
    told: dict[str, Any] = {"cpc": planned} if flows is None else dict(vars(flows))
    if flows is None and plan.resampled and alike and modelled(setting, plan).all():
        model = n, plan.size, plan.cells, mass / plan.cells, plan.keep_units / KEEP_UNITS
        told["cpc_cells"] = float(weighted_mean(expected_common_part(*model), n + plan.size))
        told["spurious_cells"], told["missing_cells"] = expected_pairs(*model)
    if plan.resampled:
        deviation = sampling_sd_km(variances, n, plan.size, _pull(mass, plan))
        sampling = float(weighted_mean(deviation, n))
    commutes = prior_commutes(setting, plan)
    bias = commutes.bias_km
    every = _errors(plan.predicted_km, bias, n, np.ones(n.size))
    told |= {f"distance_{name}": value for name, value in every.items()}
    return Expected(
        length_wasserstein_by_destination_km=_mean(wasserstein, n) if alike or not plan.resampled else None,
        distance_sampling_sd_km=sampling,
        prior_share=float(weighted_mean(plan.prior_share, n)),
        **told,
        by_headcount=_by(plan, bias, n.astype(float), HEADCOUNT_EDGES),
        by_density=_by(plan, bias, density, density_edges(density)),
        by_length=_by_true_length(setting, plan, commutes),
        if_prior_were_true=None if both is None else measure(both, zones)[0],
        cpc_cells_if_prior_were_true=None if cells is None else common_part(cells),
        pairs_cells_if_prior_were_true=None if cells is None else count_pairs(cells),
    )


def _planned_level(manifest: Manifest) -> str:
    """Return the level by which a histogram's origins were planned to be right: the finest above the zones, if any."""
    return manifest.plan.finest or (manifest.zones.levels or [ZONE])[-1]


def _pull(mass: NDArray[np.float64], plan: PublishedPlan) -> NDArray[np.float64]:
    """Return A, infinite where one cell means that all is drawn from the prior."""
    return np.where(plan.cells == 1, 1e15, mass)


def _mean(values: NDArray[np.float64], weights: NDArray[np.int64] | NDArray[np.float64]) -> float | None:
    """Return the weighted mean, None if a value is unknown: a part would not stand for the whole."""
    return None if np.isnan(values).any() else weighted_mean(values, weights)


def _errors(
    rmse: NDArray[np.float64],
    bias: NDArray[np.float64],
    workers: NDArray[np.int64] | NDArray[np.float64],
    once: NDArray[np.float64],
) -> dict[str, float | None]:
    """Return figures of `LengthError` by name, km, by worker and by destination."""
    mae = expected_mae_km(rmse, np.nan_to_num(bias))
    square = _mean(rmse**2, workers)
    return {
        "mae_km": _mean(mae, workers),
        "mae_km_unweighted": _mean(mae, once),
        "bias_km": _mean(bias, workers),
        "bias_km_unweighted": _mean(bias, once),
        "rmse_km": None if square is None else math.sqrt(square),
    }


def _by(
    plan: PublishedPlan, bias: NDArray[np.float64], value: NDArray[np.float64], edges: tuple[float, ...]
) -> list[ExpectedClass]:
    """Return the classes by a public value of each destination."""
    found = []
    for low, high in itertools.pairwise(edges):
        inside = (value >= low) & (value < high)
        found.append(_class(plan, ClassErrors(low, high, inside.astype(float), plan.predicted_km, bias)))
    return [one for one in found if one is not None]


def _by_true_length(setting: Setting, plan: PublishedPlan, commutes: PriorCommutes) -> list[ExpectedClass]:
    """Return the classes by true average commute. Noisy counts read as means are taken to err by nothing on average."""
    if np.isnan(commutes.mean_km).any() or (setting.agreement and not plan.resampled):
        return []
    averages = true_averages(setting, plan, commutes)
    bias = commutes.bias_km if plan.resampled else np.zeros(plan.headcount.size)
    found = (_class(plan, one) for one in errors_by_true_average(averages, plan.predicted_km, bias, LENGTH_EDGES_KM))
    return [one for one in found if one is not None]


def _class(plan: PublishedPlan, of: ClassErrors) -> ExpectedClass | None:
    """Return what is expected of a class, None where nobody is expected in it."""
    some = of.chance > 0.0
    chance = of.chance[some]
    workers = plan.headcount[some] * chance
    if not round(workers.sum()):
        return None
    return ExpectedClass(
        low=of.low,
        high=of.high if np.isfinite(of.high) else None,
        destinations=round(chance.sum()),
        workers=round(workers.sum()),
        **_errors(of.rmse_km[some], of.bias_km[some], workers, chance),
    )
