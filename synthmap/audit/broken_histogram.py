"""Noisy histograms that somebody might have written, each with a breach: an audit that does not find it is blind."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from synthmap.audit.mechanism import Drawing, Mechanism
from synthmap.geography.prior import PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism.histogram_plan import plan_destinations
from synthmap.mechanism.plan import Plan, PlanSettings
from synthmap.mechanism.table import Counts, SyntheticCounts


def _half_the_scale(
    region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], settings: PlanSettings
) -> Plan:
    """Plan noisy counts as if one worker changed one count: noise of scale 1/ε."""
    plan = plan_destinations(region, destination, headcount, settings)
    twice = plan_destinations(region, destination, headcount, replace(settings, epsilon=2 * settings.epsilon))
    return replace(plan, noise_units=twice.noise_units, group_noise_units=twice.group_noise_units)


def _seven_tenths(
    region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], settings: PlanSettings
) -> Plan:
    """Plan Gaussian noise of 30 % less variance than was certified."""
    plan = plan_destinations(region, destination, headcount, settings)
    return replace(plan, gaussian_units=plan.gaussian_units * 7 // 10)


def _empty_cells_forgotten(draw: Drawing) -> Drawing:
    """Leave out what noise puts where nobody lives, and give it to where somebody does."""

    def drawn(plan: Plan, counts: Counts, *rest: object) -> SyntheticCounts:
        found = draw(plan, counts, *rest)  # type: ignore[arg-type]
        origin = found.origin.copy()
        for d, first, last in zip(plan.destination, counts.first_row, counts.first_row[1:], strict=False):
            rows = np.flatnonzero(found.destination == d)
            occupied = counts.origin[first:last]
            origin[rows] = np.where(np.isin(origin[rows], occupied), origin[rows], occupied[0])
        return _added_up(found, origin)

    return drawn


def _prior_from_the_counts(draw: Drawing) -> Drawing:
    """Read noisy counts through a prior that is mixed with the confidential table itself."""

    def drawn(plan: Plan, counts: Counts, region: Region, settings: PlanSettings, stream: Stream) -> SyntheticCounts:
        with_table: Callable[..., SyntheticCounts] = draw
        first = np.zeros(int(plan.destination.max()) + 2, np.int64)
        first[plan.destination + 1] = np.diff(counts.first_row)
        table = PriorTable(np.cumsum(first), counts.origin, 10**6 * counts.workers.sum(axis=1))
        return with_table(plan, counts, region, replace(settings, mixing=0.95), stream, table)

    return drawn


def _intervals_from_the_counts(draw: Drawing) -> Drawing:
    """Draw as it should be, and tell the true counts as intervals."""

    def drawn(plan: Plan, counts: Counts, *rest: object) -> SyntheticCounts:
        found = draw(plan, counts, *rest)  # type: ignore[arg-type]
        place = np.repeat(plan.destination, np.diff(counts.first_row)).astype(np.int64) * 2**31 + counts.origin
        true = dict(zip(place.tolist(), counts.workers.sum(axis=1).tolist(), strict=True))
        keys = found.destination.astype(np.int64) * 2**31 + found.origin
        told = np.array([true.get(key, 0) for key in keys.tolist()], np.int32)
        return replace(found, interval=np.stack([told, told], axis=1))

    return drawn


def _added_up(found: SyntheticCounts, origin: NDArray[np.int32]) -> SyntheticCounts:
    """Return a table with other origins, one row a pair."""
    keys = found.destination.astype(np.int64) * 2**31 + origin
    pairs, row = np.unique(keys, return_inverse=True)
    workers = np.zeros((pairs.size, found.workers.shape[1]), np.int64)
    np.add.at(workers, row, found.workers)
    return SyntheticCounts((pairs >> 31).astype(np.int32), (pairs & (2**31 - 1)).astype(np.int32), workers)


SEVEN_TENTHS = Mechanism("σ² too small by 30 %", _seven_tenths)
HALF_THE_SCALE = Mechanism("noise of scale 1/ε instead of 2/ε", _half_the_scale)
EMPTY_CELLS_FORGOTTEN = Mechanism("noise forgotten on empty cells", around=_empty_cells_forgotten)
INTERVALS_FROM_THE_COUNTS = Mechanism("intervals told from the confidential counts", around=_intervals_from_the_counts)
PRIOR_FROM_THE_COUNTS = Mechanism("prior fitted on the confidential counts", around=_prior_from_the_counts)
