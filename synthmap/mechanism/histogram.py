"""The noisy histogram, read through the public prior, as one randomised map with its loss."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.histogram import publish_many
from synthmap.kernels.noise import GEOMETRIC, TABLE_UNITS, Law, law_of
from synthmap.kernels.stream import Stream, draw_all
from synthmap.mechanism.histogram_plan import HistogramPlan
from synthmap.mechanism.plan import PlanSettings, model_of
from synthmap.mechanism.table import Counts, SyntheticCounts, TableLoss, refuse_other_headcounts, tally
from synthmap.privacy.composition import table_dp
from synthmap.privacy.gaussian import gaussian_tails
from synthmap.privacy.histogram import UNITS
from synthmap.privacy.rule import Rule

_COLUMNS = (
    "cells_asked",
    "groups_asked",
    "cells",
    "groups",
    "noise_units",
    "group_noise_units",
    "headcount",
    "finest",
)


def loss(plan: HistogramPlan, settings: PlanSettings) -> TableLoss:
    """Return the loss of a table drawn by `plan` (adjacency: one worker has another origin).

    Pure ε-DP, or (ε, δ)-DP by Gaussian noise. Destinations compose in parallel; what is published is made from noisy
    counts alone.
    """
    epsilon, delta = table_dp(plan.epsilon, plan.delta)
    return TableLoss(epsilon, delta, None, None, Rule.ADP if settings.gaussian else Rule.PURE)


def noise_law(gaussian_units: NDArray[np.int64]) -> Law:
    """Return the one law of Gaussian noise that all destinations of a plan have, `GEOMETRIC` for 0.

    Raises
    ------
    PrivacyParameterError
        If they differ: what several jobs cost together was worked out for one.
    """
    (units, *others) = np.unique(gaussian_units).tolist()
    if others:
        raise PrivacyParameterError("gaussian noise must be the same at every destination; plan again")
    return law_of(gaussian_tails(units)) if units else GEOMETRIC


def synthesize(
    plan: HistogramPlan,
    counts: Counts,
    region: Region,
    settings: PlanSettings,
    stream: Stream,
    table: PriorTable = NO_TABLE,
) -> SyntheticCounts:
    """Return a table for the destinations of `plan`, with an interval for every figure.

    **Guarantee** (adjacency: one worker of one destination has another origin and segment): `loss`. Each destination
    draws from its own stream, so the table does not depend on how destinations are grouped.

    Parameters
    ----------
    plan, region, settings
        Public.
    counts : Counts
        Confidential.
    stream : Stream
        `secure_stream()` for a release.
    table : PriorTable
        Public; the one that the plan was made with.

    Raises
    ------
    PrivacyParameterError
        If a destination's workers do not add up to its public headcount, or a domain is not as planned.
    """
    refuse_other_headcounts(plan, counts)
    size, law = int(plan.headcount.sum()), noise_law(plan.gaussian_units)
    keys, intervals = np.empty(size, np.int64), np.empty((size, 2), np.int32)
    draw = partial(
        publish_many,
        counts.first_row,
        counts.origin,
        counts.workers,
        region.tree,
        model_of(settings, table),
        region.points(plan.destination),
        plan.destination,
        plan.scale_km,
        np.stack([getattr(plan, name) for name in _COLUMNS], axis=1),
        law,
        settings.strength_inside,
        settings.agreement,
    )
    status = draw_all(stream, plan.destination, _words_needed(plan, law, settings), draw, keys, intervals)
    if (status == 2).any():
        raise PrivacyParameterError("the plan must be made for this geography; plan again")
    return tally(plan, keys, counts.workers.shape[1], intervals)


def _words_needed(plan: HistogramPlan, law: Law, settings: PlanSettings) -> NDArray[np.int64]:
    """Return a number of random words that nearly always suffices: three and more for a count that turns positive."""

    def level(cells: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.float64]:
        positive = units / UNITS  # of the empty cells
        each = 3.0 + np.minimum(plan.headcount, 1.0 / (1.0 - units / (UNITS - units)))
        cells = cells * settings.segments
        return cells / 16 + each * (cells * positive + 4.0 * np.sqrt(cells * positive) + plan.headcount)

    if law.tails.size:  # one word for each count, two for each that turns positive
        cells, positive = plan.cells * settings.segments, law.tails[0] / TABLE_UNITS
        drawn = cells / 16 + 2.0 * (cells * positive + 4.0 * np.sqrt(cells * positive)) + plan.headcount
        return np.asarray(drawn, np.int64) + 2 * plan.headcount + 128
    found = level(plan.cells, plan.noise_units) + level(plan.groups, plan.group_noise_units)
    return np.asarray(found, np.int64) + 2 * plan.headcount + 64
