"""Dirichlet resampling of whole destinations: the mechanism of OnTheMap, as one randomised map with its loss."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.destination import synthesize_many
from synthmap.kernels.stream import Stream, draw_all
from synthmap.mechanism.dirichlet_plan import DirichletPlan
from synthmap.mechanism.plan import PlanSettings, model_of
from synthmap.mechanism.table import Counts, SyntheticCounts, TableLoss, refuse_other_headcounts, tally
from synthmap.privacy.composition import table_dp, table_pdp_delta


def loss(plan: DirichletPlan, settings: PlanSettings) -> TableLoss:
    """Return the loss of a table drawn by `plan` (adjacency: one worker of one destination has another origin).

    Destinations compose in parallel, so (ε, δ)-DP takes the maximum; the failure of probabilistic DP anywhere in the
    table is a union, so its δ adds up (proofs/composition.md).
    """
    epsilon, delta = table_dp(plan.epsilon, plan.delta)
    if settings.rule == "adp":
        return TableLoss(epsilon, delta, None, None, settings.rule)
    return TableLoss(epsilon, delta, delta, table_pdp_delta(plan.delta), settings.rule)


def synthesize(
    plan: DirichletPlan,
    counts: Counts,
    region: Region,
    settings: PlanSettings,
    stream: Stream,
    table: PriorTable = NO_TABLE,
) -> SyntheticCounts:
    """Return a synthetic table for the destinations of `plan`.

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
    keys = np.empty(int(plan.synthetic_size.sum()), np.int64)
    columns = ("cells_asked", "cells", "synthetic_size", "alpha_numerator", "alpha_denominator", "keep_units", "finest")
    draw = partial(
        synthesize_many,
        counts.first_row,
        counts.origin,
        counts.workers,
        region.tree,
        model_of(settings, table),
        region.points(plan.destination),
        plan.destination,
        plan.scale_km,
        np.stack([getattr(plan, name) for name in columns], axis=1),
        settings.keep_by_prior,
    )
    status = draw_all(stream, plan.destination, _words_needed(plan, settings), draw, keys)
    if (status == 2).any():
        raise PrivacyParameterError("the plan must be made for this geography; plan again")
    return tally(plan, keys, counts.workers.shape[1])


def _words_needed(plan: DirichletPlan, settings: PlanSettings) -> NDArray[np.int64]:
    """Return a number of random words that nearly always suffices."""
    words = 2 * plan.synthetic_size + 2
    dropping = plan.keep_units < KEEP_UNITS
    extra = plan.synthetic_size + plan.cells * settings.segments // 16 + 64
    return words + np.where(dropping, extra, 0)
