"""What a manifest says in figures of a plan: functions of ``plan.parquet``, for who writes it and who checks it."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.privacy.gaussian import gaussian_variance
from synthmap.privacy.histogram import UNITS, histogram_epsilon
from synthmap.release.manifest import HeadcountClass

_CLASSES = ((1, 1), (2, 4), (5, 19), (20, 99), (100, 999), (1_000, 9_999), (10_000, 2**62))
_KEEP_UNITS = 65_536  # keep probabilities are multiples of one in so many
_LOSSES = ("epsilon", "delta", "epsilon_dropping")


def summarise_classes(plan: pa.Table, segments: int) -> list[HeadcountClass]:
    """Return a plan by class of public headcount.

    Parameters
    ----------
    plan : pyarrow.Table
        As in ``plan.parquet``.
    segments : int
        Segments synthesised, at least 1.
    """
    headcount, cells, predicted = (plan[name].to_numpy() for name in ("headcount", "cells", "predicted_km"))
    share = prior_share(plan, segments)
    classes = []
    for low, high in _CLASSES:
        inside = (headcount >= low) & (headcount <= high)
        if not inside.any():
            continue
        median = np.median(predicted[inside])
        classes.append(
            HeadcountClass(
                headcount_from=low,
                headcount_to=min(high, int(headcount.max())),
                destinations=int(inside.sum()),
                workers=int(headcount[inside].sum()),
                cells_median=float(np.median(cells[inside])),
                **_noise(plan.filter(pa.array(inside))),
                prior_share_mean=float(np.average(share[inside], weights=headcount[inside])),
                predicted_km_median=None if np.isnan(median) else float(median),
            )
        )
    return classes


def prior_share_mean(plan: pa.Table, segments: int) -> float:
    """Return how much of all workers is prior, not data."""
    return float(np.average(prior_share(plan, segments), weights=plan["headcount"].to_numpy()))


def prior_share(plan: pa.Table, segments: int) -> NDArray[np.float64]:
    """Return how much of each destination's workers is prior, not data: A/(n + A) by resampling, 1 with one cell.

    What noisy counts are worth beside the prior depends on zones and prior, too: there the plan's own column.
    """
    if not resampled(plan):
        return np.asarray(plan["prior_share"].to_numpy())
    cells, headcount = plan["cells"].to_numpy(), plan["headcount"].to_numpy()
    mass = _alpha(plan) * cells * segments
    return np.where(cells == 1, 1.0, mass / (headcount + mass))


def keep_smallest(plan: pa.Table) -> float:
    """Return the smallest probability that an empty cell stays; 1 where none is dropped."""
    return float(plan["keep_units"].to_numpy().min() / _KEEP_UNITS) if resampled(plan) else 1.0


def summarise_steps(plan: pa.Table) -> dict[str, float]:
    """Return what each step takes, where it takes most: resampling and dropping, or noisy counts of cells and groups.

    Dropping never fails: all of δ belongs to resampling.
    """
    if resampled(plan):
        epsilon, delta, dropping = (plan[name].to_numpy() for name in _LOSSES)
        return {
            "resampling_epsilon": float((epsilon - dropping).max()),
            "resampling_delta": float(delta.max()),
            "dropping_epsilon": float(dropping.max()),
        }
    epsilon = plan["epsilon"].to_numpy()
    if _gaussian_units(plan):
        return {"cells_epsilon": float(epsilon.max()), "cells_delta": float(plan["delta"].to_numpy().max())}
    both = np.stack([plan[name].to_numpy() for name in ("noise_units", "group_noise_units")], axis=1)
    pairs = np.unique(both[epsilon > 0], axis=0).tolist()
    cells = [float(histogram_epsilon(c)) for c, _ in pairs]
    groups = [float(histogram_epsilon(g)) for _, g in pairs if g]
    return {"cells_epsilon": max(cells, default=0.0), "groups_epsilon": max(groups, default=0.0)}


def resampled(plan: pa.Table) -> bool:
    """Return whether a plan is one of Dirichlet resampling; else noise is added to counts."""
    return "alpha_numerator" in plan.column_names


def _alpha(plan: pa.Table) -> NDArray[np.float64]:
    return np.asarray(plan["alpha_numerator"].to_numpy() / plan["alpha_denominator"].to_numpy())


def _gaussian_units(plan: pa.Table) -> int:
    """Return the noise of Gaussian counts, the same everywhere; 0 where it is geometric, as in plans without."""
    return int(plan["gaussian_units"].to_numpy().max()) if "gaussian_units" in plan.column_names else 0


def _noise(plan: pa.Table) -> dict[str, float]:
    """Return α of some destinations, or the noise on a cell's count and how many have noisy counts of groups."""
    if resampled(plan):
        alpha = _alpha(plan)
        return {
            "alpha_smallest": float(alpha.min()),
            "alpha_median": float(np.median(alpha)),
            "alpha_largest": float(alpha.max()),
        }
    if units := _gaussian_units(plan):
        sd = np.sqrt(gaussian_variance(units))
    else:
        ratio = plan["noise_units"].to_numpy() / (UNITS - plan["noise_units"].to_numpy())
        sd = np.median(np.sqrt(2.0 * ratio) / (1.0 - ratio))
    return {"noise_sd_median": float(sd), "groups_share": float((plan["group_noise_units"].to_numpy() > 0).mean())}
