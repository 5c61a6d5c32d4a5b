"""What every mechanism takes and gives: confidential counts in, a table with its loss out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.geography.arrays import row_sums
from synthmap.mechanism.plan import Plan
from synthmap.privacy.rule import Rule


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
    interval : ndarray of int32, shape (rows, 2), or None
        Low and high: about nine tenths of what the true count of all segments may be, and the published one; None
        where the mechanism tells no interval.
    """

    destination: NDArray[np.int32]
    origin: NDArray[np.int32]
    workers: NDArray[np.int64]
    interval: NDArray[np.int32] | None = None


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
    rule : Rule
        The certificate that was met.
    """

    epsilon: float
    delta: float
    pdp_delta_destination: float | None
    pdp_delta_table: float | None
    rule: Rule


def refuse_other_headcounts(plan: Plan, counts: Counts) -> None:
    """Raise PrivacyParameterError if a destination's workers do not add up to its public headcount."""
    rows = np.add.reduceat(row_sums(counts.workers), counts.first_row[:-1])
    if not np.array_equal(rows, plan.headcount):
        raise PrivacyParameterError("the plan must be made for the headcounts of this table; plan again")


def tally(
    plan: Plan, keys: NDArray[np.int64], segments: int, intervals: NDArray[np.int32] | None = None
) -> SyntheticCounts:
    """Return sorted keys counted: rows (destination, origin) with workers by segment.

    An interval that leaves out its row's own count is stretched to it: where nearly nobody is expected, rounding still
    has to put somebody somewhere, and a reader must not find a count outside its interval. Nothing but what is
    published decides on that.
    """
    place = np.repeat(np.arange(len(plan)), plan.synthetic_size)
    origin = keys // segments
    new = np.ones(keys.size, bool)
    new[1:] = (place[1:] != place[:-1]) | (origin[1:] != origin[:-1])
    row = np.cumsum(new) - 1
    workers = np.bincount(row * segments + keys % segments, minlength=int(new.sum()) * segments).reshape(-1, segments)
    if intervals is not None:
        count = row_sums(workers)
        ends = np.minimum(intervals[new, 0], count), np.maximum(intervals[new, 1], count)
        intervals = np.stack(ends, axis=1).astype(np.int32)
    return SyntheticCounts(
        destination=plan.destination[place[new]],
        origin=origin[new].astype(np.int32),
        workers=workers.astype(np.int64),
        interval=intervals,
    )
