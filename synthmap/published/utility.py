"""How far a release can be trusted, from its public files alone: no ε is spent, nothing secret is looked at."""

import itertools
import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import NotFoundError
from synthmap.geography.zones import ELSEWHERE
from synthmap.privacy.gaussian import gaussian_variance
from synthmap.published.expected import (
    HEADCOUNT_EDGES,
    LENGTH_EDGES_KM,
    expected_common_part,
    expected_mae_km,
    noise_floor,
    planned_variance,
)
from synthmap.published.memory import Memory
from synthmap.published.store import OpenedRelease
from synthmap.published.utility_bands import ELSEWHERE_BAND, Sample, drawn_by_band, prior_by_band, sample_destinations
from synthmap.published.utility_report import (
    DestinationUtility,
    DistanceBand,
    FigureError,
    HeadcountClass,
    ReleaseUtility,
    Whole,
    trust_destination,
    trust_release,
)
from synthmap.release.statement_facts import MOSTLY, mostly_prior_below

_PLAN = [
    "destination", "headcount", "synthetic_size", "cells", "alpha_numerator", "alpha_denominator", "keep_units",
    "noise_units", "gaussian_units", "share_variance", "common_part",
    "prior_share", "prior_strength", "scale_km", "predicted_km", "epsilon", "delta",
]  # fmt: skip
_KEEP_UNITS = 65_536
_kept = Memory(2**20)


def release_utility(opened: OpenedRelease) -> ReleaseUtility:
    """Return the utility of a release, computed once: a release never changes."""
    return _kept.get(opened.etag, lambda: _release_utility(opened))


def destination_utility(opened: OpenedRelease, destination: str) -> DestinationUtility:
    """Return the utility of what a release says about one destination.

    Raises
    ------
    NotFoundError
        If nobody works there according to the release, or there is no such zone.
    """
    plan = _Plan(opened, pl.col("destination") == destination)
    if not len(plan):
        known = destination in opened.places.ids
        rule = "have workers in this release" if known else "be a zone of this release"
        raise NotFoundError(f"destination ({destination}) must {rule}")
    bands = _bands(opened, plan, Sample(np.zeros(1, np.int64), plan.size.astype(float)))
    row = plan.frame.row(0, named=True)
    size = int(plan.size[0])
    floor = _finite(plan.floor[0])
    measured = opened.manifest.prior.lengths is not None
    return DestinationUtility(
        release=opened.id,
        warning=opened.manifest.warning,
        destination=destination,
        headcount=row["headcount"],
        synthetic_size=size,
        cells=row["cells"],
        alpha=None if row["alpha_numerator"] is None else row["alpha_numerator"] / row["alpha_denominator"],
        keep=None if row["keep_units"] is None else row["keep_units"] / _KEEP_UNITS,
        noise_sd=None if row["noise_units"] is None else _noise_sd(row["noise_units"], row["gaussian_units"] or 0),
        epsilon=row["epsilon"],
        delta=row["delta"],
        prior_share=row["prior_share"],
        predicted_km=_known(plan.predicted_km[0]),
        expected_km=_known(expected_mae_km(plan.predicted_km)[0]),
        common_part=float(plan.common_part[0]),
        noise_floor=floor,
        figures=_figures(size, float(plan.variance[0])),
        by_distance=bands,
        trust=trust_destination(row["headcount"], row["cells"], row["prior_share"], floor, MOSTLY, measured=measured),
    )


def _noise_sd(units: int, gaussian: int) -> float:
    """Return the standard deviation of Gaussian noise, or of two-sided geometric noise, q = units/(2^32 − units)."""
    if gaussian:
        return math.sqrt(gaussian_variance(gaussian))
    ratio = units / (2**32 - units)
    return math.sqrt(2.0 * ratio) / (1.0 - ratio)


def _figures(size: int, variance: float) -> list[FigureError]:
    """Return the expected errors of 1, 2, 5, 10, … workers, up to half of the total."""
    round_ones = (digit * 10**power for power in range(len(str(size))) for digit in (1, 2, 5))
    return [
        FigureError(workers=one, error=math.sqrt(one * (size - one) * variance))
        for one in round_ones
        if 2 * one <= size
    ]


class _Plan:
    """The destinations of a release as arrays, all public."""

    def __init__(self, opened: OpenedRelease, which: pl.Expr | None = None) -> None:
        frame = opened.plan if which is None else opened.plan.filter(which)
        self.frame = opened.collect(frame.select(_PLAN))
        self.headcount = self.frame["headcount"].to_numpy()
        self.size = self.frame["synthetic_size"].to_numpy()
        self.cells = self.frame["cells"].to_numpy()
        self.prior_share = self.frame["prior_share"].to_numpy()
        self.predicted_km = self.frame["predicted_km"].fill_null(math.nan).to_numpy()
        self.variance = planned_variance(self.frame)
        self.floor = noise_floor(self.variance, self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = self.headcount * self.prior_share / (1.0 - self.prior_share)  # A, segments summed
        alpha = np.where(self.cells == 1, 0.0, mass / self.cells)
        planned = self.frame["common_part"]
        self.common_part = planned.to_numpy()
        if planned.is_null().any():
            keep = self.frame["keep_units"].fill_null(_KEEP_UNITS).to_numpy() / _KEEP_UNITS
            self.common_part = expected_common_part(self.headcount, self.size, self.cells, alpha, keep)

    def __len__(self) -> int:
        return self.frame.height


def _release_utility(opened: OpenedRelease) -> ReleaseUtility:
    plan = _Plan(opened)
    manifest = opened.manifest
    every = np.ones(len(plan), np.bool_)
    classes = []
    for low, high in itertools.pairwise(HEADCOUNT_EDGES):
        inside = (plan.headcount >= low) & (plan.headcount < high)
        if inside.any():
            to = None if math.isinf(high) else int(high) - 1
            classes.append(
                HeadcountClass(headcount_from=int(low), headcount_to=to, **_whole(plan, inside).model_dump())
            )
    mostly = plan.prior_share > MOSTLY
    below = mostly_prior_below(plan.headcount, plan.prior_share)
    whole = _whole(plan, every)
    share = float(plan.size[mostly].sum() / max(1, plan.size.sum()))
    sample = sample_destinations(plan.size, len(opened.places))
    return ReleaseUtility(
        release=opened.id,
        title=manifest.title,
        warning=manifest.warning,
        epsilon=manifest.privacy.dp.epsilon,
        delta=manifest.privacy.dp.delta,
        **whole.model_dump(),
        mostly_prior_below=below,
        mostly_prior_workers_share=share,
        by_headcount=classes,
        by_distance=_bands(opened, plan, sample),
        by_distance_destinations=sample.rows.size,
        trust=trust_release(whole.prior_share, below, share, classes, measured=manifest.prior.lengths is not None),
    )


def _whole(plan: _Plan, inside: NDArray[np.bool_]) -> Whole:
    """Return what is told of some destinations together; means are weighted by their synthetic workers."""
    workers = plan.size[inside].astype(float)
    predicted = plan.predicted_km[inside]

    def mean(values: NDArray[np.float64]) -> float | None:
        return _known((values[inside] * workers).sum() / workers.sum()) if workers.size else None

    return Whole(
        destinations=int(inside.sum()),
        workers=int(workers.sum()),
        cells_median=_known(np.median(plan.cells[inside])) if workers.size else None,
        prior_share=mean(plan.prior_share),
        predicted_km_median=_known(np.median(predicted)) if workers.size else None,
        expected_km=mean(expected_mae_km(plan.predicted_km)),
        common_part=mean(plan.common_part),
        noise_floor_median=_finite(np.median(plan.floor[inside])) if workers.size else None,
    )


def _bands(opened: OpenedRelease, plan: _Plan, sample: Sample) -> list[DistanceBand]:
    """Return the bands of the sampled destinations together; empty ones are left out.

    None where a public table is mixed into the prior: it is no part of the release, so its shares are not known here.
    Of the m·s workers drawn from the prior, its share of the band falls there; the others follow the data.
    """
    if not sample.rows.size or opened.manifest.prior.source is not None:
        return []
    ids = plan.frame["destination"][sample.rows]
    at = opened.places.ids.search_sorted(ids).to_numpy().astype(np.int64)
    scale_km = plan.frame["scale_km"].to_numpy()[sample.rows]
    expected = prior_by_band(opened.places, opened.manifest.prior, at, scale_km)
    drawn = drawn_by_band(opened, ids, at)
    total = max(1.0, sample.workers.sum())
    prior_share = plan.prior_share[sample.rows]
    error = np.sqrt(expected * (1.0 - expected) * plan.variance[sample.rows][:, None])
    from_prior = (sample.workers * prior_share) @ expected / total
    share, share_of_prior, error = (sample.workers @ values / total for values in (drawn, expected, error))
    out = []
    for band in np.flatnonzero((share > 0) | (share_of_prior > 0)):
        away = band == ELSEWHERE_BAND
        high = math.inf if away else LENGTH_EDGES_KM[band + 1]
        out.append(
            DistanceBand(
                km_from=None if away else LENGTH_EDGES_KM[band],
                km_to=None if math.isinf(high) else float(high),
                origin=ELSEWHERE if away else None,
                share=float(share[band]),
                share_of_prior=float(share_of_prior[band]),
                prior_share=min(1.0, float(from_prior[band] / share[band])) if share[band] > 0 else None,
                share_error=float(error[band]),
            )
        )
    return out


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
