"""The plan of the noisy histogram: for each destination its cells, groups and noise, all from public data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthmap.geography.prior import NO_TABLE, PriorTable, finest_level, scales_at
from synthmap.geography.region import Region
from synthmap.kernels.histogram import BY_PRIOR_MASS
from synthmap.kernels.reading import INTERVAL, noise_variance
from synthmap.mechanism.plan import Plan, PlanSettings, model_of
from synthmap.mechanism.predict_histogram import Candidates, predict
from synthmap.privacy.gaussian import GaussianNoise, gaussian_variance, minimum_gaussian
from synthmap.privacy.histogram import UNITS, histogram_epsilon, minimum_units

_BY_MASS = (8, 16, 32, 64, 128, 256, 512, 1024)
_FEW_BY_MASS = 256  # where units of a level may be cells, those are better than more by prior mass
_MOST_UNITS = 2048  # of a level, for all of them to be cells
_CELLS_A_WORKER = 2  # and 32 more by prior mass: beyond, the units of a level are better cells
_GROUPS = 48  # neighbouring cells are read together, by that many groups
_NOISY_GROUPS = 8  # groups with noisy counts of their own are fewer
_GROUP_SHARE = 0.15  # of ε, where groups have noisy counts
_PAIRS = 8.0  # how much the error of pairs counts beside that of commutes, both against the prior alone


@dataclass(frozen=True)
class HistogramPlan(Plan):
    """The plan of the noisy histogram.

    Attributes
    ----------
    groups_asked, groups : ndarray of int64
        Groups that are asked for, and those made.
    noise_units, group_noise_units : ndarray of int64
        c of geometric noise on counts of cells and of groups, q = c/(2^32 − c); 0 where groups have none.
    share_variance : ndarray of float64
        v, where √(q·(1 − q)·v) is the expected error of a share q of the destination's workers.
    common_part : ndarray of float64
        Expected common part of true and published origins, by the units of a level.
    gaussian_units : ndarray of int64
        σ² of Gaussian noise on counts of cells in 1/2^16, the same at all destinations; 0 where the noise is geometric.
    """

    groups_asked: NDArray[np.int64]
    groups: NDArray[np.int64]
    noise_units: NDArray[np.int64]
    group_noise_units: NDArray[np.int64]
    share_variance: NDArray[np.float64]
    common_part: NDArray[np.float64]
    gaussian_units: NDArray[np.int64]

    def summary(self, settings: PlanSettings) -> dict[str, float | str]:
        """Return how noisy counts become a table."""
        told: dict[str, float | str] = {"keep": "1.0", "interval": INTERVAL}
        told |= {"reading": "agreement"} if settings.agreement else {"reading": "means"}
        return told | ({"noise_law": "gaussian"} if settings.gaussian else {})


def plan_destinations(
    region: Region,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    table: PriorTable = NO_TABLE,
    scale_km: NDArray[np.float64] | None = None,
) -> HistogramPlan:
    """Return the plan for the destinations of the given ranks and public headcounts.

    Each destination gets the candidate with the smallest predicted error, of its average commute and of its pairs
    together, each measured against the prior alone. For `table` and `scale_km` see `dirichlet_plan`.

    Raises
    ------
    PrivacyParameterError
        If ε is so small that no noise meets it.
    """
    tree, model, points = region.tree, model_of(settings, table), region.points(destination)
    if scale_km is None:
        scale_km = scales_at(tree, model, points)
    finest_units = len(tree.level_start[settings.finest]) - 1 if settings.finest >= 0 else 0
    gaussian = minimum_gaussian(settings.epsilon, settings.delta, settings.jobs) if settings.gaussian else None
    candidates, noise = _candidates(settings, gaussian, len(region.zones) + 1, finest_units)
    level = settings.finest if settings.finest >= 0 else max(0, finest_level(tree) - 1)
    most = np.full(destination.size, np.iinfo(np.int64).max)
    if not settings.cells:
        most = _CELLS_A_WORKER * headcount + 32
    found = predict(
        tree,
        model,
        points,
        scale_km,
        destination,
        headcount,
        candidates,
        most,
        settings.strength_inside,
        settings.segments,
        tree.level_start[level],
    )
    alone = found.km[:, :1], np.maximum(found.variation[:, :1], 1e-9)
    choice = np.argmin(found.km / np.maximum(alone[0], 1e-9) + _PAIRS * found.variation / alone[1], axis=1)
    row = np.arange(destination.size)
    cells, groups = found.cells[row, choice], found.groups[row, choice]
    nothing = cells * settings.segments == 1
    costs = np.array([histogram_epsilon(*units) if gaussian is None else gaussian.epsilon for units in noise])
    units = np.array(noise, np.int64)[choice]
    return HistogramPlan(
        destination=destination.astype(np.int32),
        headcount=headcount.astype(np.int64),
        synthetic_size=headcount.astype(np.int64),
        cells_asked=candidates.cells[choice],
        cells=cells,
        finest=candidates.finest[choice],
        epsilon=np.where(nothing, 0.0, costs[choice]),
        delta=np.where(nothing, 0.0, 0.0 if gaussian is None else gaussian.delta),
        predicted_km=found.km[row, choice],
        prior_share=found.prior_share[row, choice],
        prior_strength=found.strength,
        scale_km=scale_km,
        groups_asked=candidates.groups[choice],
        groups=groups,
        noise_units=units[:, 0],
        group_noise_units=units[:, 1],
        share_variance=_share_variance(headcount, found.strength, cells, groups, candidates, choice, settings.segments),
        common_part=1.0 - found.variation[row, choice],
        gaussian_units=np.full(destination.size, 0 if gaussian is None else gaussian.units),
    )


def _share_variance(
    headcount: NDArray[np.int64],
    strength: NDArray[np.float64],
    cells: NDArray[np.int64],
    groups: NDArray[np.int64],
    candidates: Candidates,
    choice: NDArray[np.int64],
    segments: int,
) -> NDArray[np.float64]:
    """Return v of a share of whole cells: 1/v is what the prior knows, and what the counts of cells and groups do.

    The prior knows 1/(1/(1 + S) + 1/n); k cells of so many counts with noise of variance ω know n²/(k·segments·ω),
    likewise those of groups.
    """
    n = headcount.astype(float)
    known = 1.0 / (1.0 / (1.0 + strength) + 1.0 / n)
    known = known + np.where(cells > 1, n**2 / (cells * segments * candidates.variance[choice]), 0.0)
    noise = segments * candidates.group_variance[choice]
    known = known + np.where(noise > 0, n**2 / (groups * np.where(noise > 0, noise, 1.0)), 0.0)
    return np.asarray(1.0 / known)


def _candidates(
    settings: PlanSettings, gaussian: GaussianNoise | None, every: int, finest_units: int
) -> tuple[Candidates, list[tuple[int, int]]]:
    """Return the candidates and the geometric noise (cells, groups) of each in 1/2^32. The first has the fewest cells.

    Groups have no Gaussian noise: that of their cells adds up to little more.
    """
    by_mass = settings.finest < 0 or settings.either
    wanted: list[tuple[int, int]] = []
    if settings.cells:
        wanted += [(settings.cells, BY_PRIOR_MASS)] if by_mass else []
        wanted += [(settings.cells, settings.finest)] if settings.finest >= 0 else []
    else:
        wanted.append((1, BY_PRIOR_MASS))
        if by_mass:
            most = _FEW_BY_MASS if settings.finest >= 0 else _BY_MASS[-1]
            wanted += [(k, BY_PRIOR_MASS) for k in sorted({min(k, every) for k in _BY_MASS if k <= most})]
        if settings.finest >= 0:  # all units at once, or as many near the destination as a rung allows
            all_units, some = min(finest_units + 1, _MOST_UNITS), min(finest_units // 4, _MOST_UNITS // 4)
            wanted += [(k, settings.finest) for k in (some, all_units) if k >= _GROUPS or k == all_units]
    alone = minimum_units(settings.epsilon) if gaussian is None else (0, 0)
    rows: list[tuple[Any, ...]] = [(k, min(k, _GROUPS), finest, alone) for k, finest in wanted]
    grouped = [one for one in wanted if settings.cells or settings.finest < 0 or one[1] >= 0]
    if gaussian is None and (large := [one for one in grouped if one[0] >= 2 * _GROUPS]):
        shared = minimum_units(settings.epsilon, _GROUP_SHARE)
        rows += [(k, _NOISY_GROUPS, finest, shared) for k, finest in large]
    variance = np.array([[_variance(c) for c in noise] for *_, noise in rows])
    if gaussian is not None:
        variance[:, 0] = gaussian_variance(gaussian.units)
    asked = np.array([row[:3] for row in rows], np.int64)
    made = Candidates(
        asked[:, 0].copy(), asked[:, 1].copy(), asked[:, 2].copy(), variance[:, 0].copy(), variance[:, 1].copy()
    )
    return made, [noise for *_, noise in rows]


def _variance(units: int) -> float:
    """Return the variance of noise of so many units, −1 for none."""
    return noise_variance(units / (UNITS - units)) if units else -1.0
