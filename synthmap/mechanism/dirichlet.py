"""Dirichlet resampling of whole destinations: the mechanism of OnTheMap, as one randomised map with its loss."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.destination import synthesize_many
from synthmap.kernels.stream import Stream
from synthmap.mechanism.plan import Plan, PlanSettings, model_of
from synthmap.privacy.composition import table_dp, table_pdp_delta


@dataclass(frozen=True)
class Counts:
    """Confidential histograms of many destinations, in the order of a plan.

    Attributes
    ----------
    first_row : ndarray of int64, shape (destinations + 1,)
        Where each destination's rows start.
    origin : ndarray of int32, shape (rows,)
        Rank; the number of zones means elsewhere. Ascending within a destination.
    workers : ndarray of int64, shape (rows, S)
        Workers by segment.
    """

    first_row: NDArray[np.int64]
    origin: NDArray[np.int32]
    workers: NDArray[np.int64]


@dataclass(frozen=True)
class SyntheticCounts:
    """The draw, spread over zones: one row for each (destination, origin) that occurs. Publishable.

    Attributes
    ----------
    destination, origin : ndarray of int32, shape (rows,)
        Ranks, ascending by (position in the plan, origin).
    workers : ndarray of int64, shape (rows, S)
    """

    destination: NDArray[np.int32]
    origin: NDArray[np.int32]
    workers: NDArray[np.int64]


@dataclass(frozen=True)
class TableLoss:
    """What one synthetic table costs a worker with one job.

    Attributes
    ----------
    epsilon, delta : float
        (ε, δ)-DP of everything derived from the table: the largest over destinations.
    pdp_delta_destination, pdp_delta_table : float or None
        δ of probabilistic DP at cell level, for the worst destination and for the whole table; None where the rule
        certifies plain DP only.
    """

    epsilon: float
    delta: float
    pdp_delta_destination: float | None
    pdp_delta_table: float | None


def loss(plan: Plan, settings: PlanSettings) -> TableLoss:
    """Return the loss of a table drawn by `plan` (adjacency: one worker of one destination has another origin).

    Destinations compose in parallel, so (ε, δ)-DP takes the maximum; the failure of probabilistic DP anywhere in the
    table is a union, so its δ adds up (proofs/composition.md).
    """
    epsilon, delta = table_dp(plan.epsilon, plan.delta)
    if settings.rule == "adp":
        return TableLoss(epsilon, delta, None, None)
    return TableLoss(epsilon, delta, delta, table_pdp_delta(plan.delta))


def synthesize(
    plan: Plan,
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
    rows = np.add.reduceat(counts.workers.sum(axis=1), counts.first_row[:-1])
    if not np.array_equal(rows, plan.headcount):
        raise PrivacyParameterError("the plan must be made for the headcounts of this table; plan again")
    size = plan.synthetic_size
    keys = np.empty(int(size.sum()), np.int64)
    status = np.ones(len(plan), np.int8)
    budget = _words_needed(plan, settings)
    columns = ("cells_asked", "cells", "synthetic_size", "alpha_numerator", "alpha_denominator", "keep_units", "finest")
    parameters = np.stack([getattr(plan, name) for name in columns], axis=1)
    model = model_of(settings, table)
    points = region.points(plan.destination)
    while (status == 1).any():
        asked = np.where(status == 1, budget, 0)
        words = stream.batch(plan.destination, asked)
        synthesize_many(
            counts.first_row,
            counts.origin,
            counts.workers,
            region.tree,
            model,
            points,
            plan.destination,
            parameters,
            settings.keep_by_prior,
            np.append(0, np.cumsum(asked)),
            words,
            keys,
            status,
        )
        budget = budget * 2
    if (status == 2).any():
        raise PrivacyParameterError("the plan must be made for this geography; plan again")
    return _tally(plan, keys, counts.workers.shape[1])


def _words_needed(plan: Plan, settings: PlanSettings) -> NDArray[np.int64]:
    """Return a number of random words that nearly always suffices."""
    words = 2 * plan.synthetic_size + 2
    dropping = plan.keep_units < KEEP_UNITS
    extra = plan.synthetic_size + plan.cells * settings.segments // 16 + 64
    return words + np.where(dropping, extra, 0)


def _tally(plan: Plan, keys: NDArray[np.int64], segments: int) -> SyntheticCounts:
    """Return sorted keys counted: rows (destination, origin) with workers by segment."""
    place = np.repeat(np.arange(len(plan)), plan.synthetic_size)
    origin = keys // segments
    new = np.ones(keys.size, bool)
    new[1:] = (place[1:] != place[:-1]) | (origin[1:] != origin[:-1])
    row = np.cumsum(new) - 1
    workers = np.bincount(row * segments + keys % segments, minlength=int(new.sum()) * segments)
    return SyntheticCounts(
        destination=plan.destination[place[new]],
        origin=origin[new].astype(np.int32),
        workers=workers.reshape(-1, segments).astype(np.int64),
    )
