"""Mechanisms that somebody might have written, each with a breach: an audit that does not find it is blind."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synthmap.audit.mechanism import Drawing, Mechanism
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.stream import Stream
from synthmap.mechanism.dirichlet_plan import DirichletPlan, plan_destinations
from synthmap.mechanism.plan import Plan, PlanSettings
from synthmap.mechanism.table import Counts, SyntheticCounts
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.reference_zero_sample import reference_zero_sample_alpha

_DENOMINATOR = 2**40


def _only_occupied_cells(draw: Drawing) -> Drawing:
    def drawn(plan: Plan, counts: Counts, *rest: object) -> SyntheticCounts:
        none_kept = replace(plan, keep_units=np.zeros(len(plan), np.int64))  # type: ignore[call-arg]
        return draw(none_kept, counts, *rest)  # type: ignore[arg-type]

    return drawn


def _seven_tenths(
    region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], settings: PlanSettings
) -> Plan:
    plan = plan_destinations(region, destination, headcount, settings)
    return replace(plan, alpha_numerator=-(-7 * plan.alpha_numerator // 10))


def _with_alpha(plan: DirichletPlan, alpha: list[Fraction]) -> DirichletPlan:
    """Return `plan` with each α rounded up to a rational that the urn can hold."""
    numerator = [math.ceil(one * _DENOMINATOR) for one in alpha]
    return replace(
        plan,
        alpha_numerator=np.array(numerator, np.int64),
        alpha_denominator=np.full(len(plan), _DENOMINATOR, np.int64),
    )


def _reference_rule(
    region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], settings: PlanSettings
) -> Plan:
    plan = plan_destinations(region, destination, headcount, settings)
    alpha = [
        reference_zero_sample_alpha(epsilon=settings.epsilon, delta=settings.delta, headcount=n, cells=k)
        for n, k in zip(headcount.tolist(), (plan.cells * settings.segments).tolist(), strict=True)
    ]
    stated = np.full(len(plan), settings.delta)
    return replace(_with_alpha(plan, [Fraction(a) for a in alpha]), delta=stated)


def _dropping_by_the_maximum(
    region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], settings: PlanSettings
) -> Plan:
    """Charge dropping ln(1/f) on top of resampling, and nothing for the cell that is entered."""
    plan = plan_destinations(region, destination, headcount, replace(settings, keep=1.0))
    units = math.ceil(settings.keep * KEEP_UNITS)
    left = (1 + Fraction(ratio_minus_one(settings.epsilon))) * Fraction(units, KEEP_UNITS) - 1
    plan = _with_alpha(plan, [n / left for n in headcount.tolist()])
    return replace(plan, keep_units=np.full(len(plan), units, np.int64), delta=np.zeros(len(plan)))


@dataclass(frozen=True)
class _Shared(Stream):
    """A stream of which two neighbouring destinations read the same words."""

    def batch(self, destinations: NDArray[np.integer], counts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the words of half the number."""
        return super().batch(destinations // 2, counts)


def _one_stream_for_two(draw: Drawing) -> Drawing:
    def drawn(plan: Plan, counts: Counts, region: Region, settings: PlanSettings, stream: Stream) -> SyntheticCounts:
        return draw(plan, counts, region, settings, _Shared(stream.key, stream.private))

    return drawn


def _size_from_the_data(draw: Drawing) -> Drawing:
    """Draw as many workers as there are different origins."""

    def drawn(plan: Plan, counts: Counts, *rest: object) -> SyntheticCounts:
        return draw(replace(plan, synthetic_size=np.diff(counts.first_row)), counts, *rest)  # type: ignore[arg-type]

    return drawn


def _lone_workers_forgotten(draw: Drawing) -> Drawing:
    """Draw for destinations of two workers and more, and let the others through as they are."""

    def drawn(plan: Plan, counts: Counts, *rest: object) -> SyntheticCounts:
        found = draw(plan, counts, *rest)  # type: ignore[arg-type]
        destination = np.repeat(plan.destination, np.diff(counts.first_row))
        lone = plan.destination[plan.headcount == 1]
        kept, passed = ~np.isin(found.destination, lone), np.isin(destination, lone)
        return SyntheticCounts(
            np.append(found.destination[kept], destination[passed]),
            np.append(found.origin[kept], counts.origin[passed]),
            np.append(found.workers[kept], counts.workers[passed], axis=0),
        )

    return drawn


ONLY_OCCUPIED_CELLS = Mechanism("noise only on occupied cells", around=_only_occupied_cells)
SEVEN_TENTHS = Mechanism("α too small by 30 %", _seven_tenths)
REFERENCE_RULE = Mechanism("the reference 0-sample rule", _reference_rule)
DROPPING_BY_THE_MAXIMUM = Mechanism("dropping charged by the maximum", _dropping_by_the_maximum)
ONE_STREAM_FOR_TWO = Mechanism("one stream for two destinations", around=_one_stream_for_two)
SIZE_FROM_THE_DATA = Mechanism("synthetic size taken from the data", around=_size_from_the_data)
LONE_WORKERS_FORGOTTEN = Mechanism("destinations of one worker forgotten", around=_lone_workers_forgotten)
