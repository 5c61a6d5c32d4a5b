"""The mechanisms by name: what each plans, draws, costs and promises. Nothing outside this room asks which one runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism import dirichlet, dirichlet_plan, histogram, histogram_plan
from synthmap.mechanism.plan import Plan, PlanSettings, settings_of
from synthmap.mechanism.table import Counts, SyntheticCounts, TableLoss
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec

_SAMPLE = 400  # destinations that both mechanisms plan, where the planner chooses
P = TypeVar("P", bound=Plan)


@dataclass(frozen=True)
class Mechanism(Generic[P]):
    """A randomised map from counts to a table, with a stated loss.

    Attributes
    ----------
    name : str
    plan : type
        Its plan, with the columns that are its own.
    plan_destinations, synthesize, loss : callable
        See `dirichlet_plan` and `dirichlet`.
    """

    name: str
    plan: type[P]
    plan_destinations: Callable[..., P]
    synthesize: Callable[..., SyntheticCounts]
    loss: Callable[[P, PlanSettings], TableLoss]


DIRICHLET = Mechanism(
    "dirichlet",
    dirichlet_plan.DirichletPlan,
    dirichlet_plan.plan_destinations,
    dirichlet.synthesize,
    dirichlet.loss,
)
HISTOGRAM = Mechanism(
    "histogram",
    histogram_plan.HistogramPlan,
    histogram_plan.plan_destinations,
    histogram.synthesize,
    histogram.loss,
)


def mechanism_of(settings: PlanSettings) -> Mechanism[Any]:
    """Return the mechanism that `settings` name, once one has been chosen."""
    return {mechanism.name: mechanism for mechanism in (DIRICHLET, HISTOGRAM)}[settings.mechanism]


def plan_destinations(
    region: Region,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    table: PriorTable = NO_TABLE,
    scale_km: NDArray[np.float64] | None = None,
) -> Plan:
    """Return the plan of the mechanism that `settings` name, for destinations of given ranks and public headcounts."""
    plan: Plan = mechanism_of(settings).plan_destinations(region, destination, headcount, settings, table, scale_km)
    return plan


def synthesize(
    plan: Plan,
    counts: Counts,
    region: Region,
    settings: PlanSettings,
    stream: Stream,
    table: PriorTable = NO_TABLE,
) -> SyntheticCounts:
    """Return the table of the mechanism that `settings` name."""
    return mechanism_of(settings).synthesize(plan, counts, region, settings, stream, table)


def promised(spec: Spec) -> tuple[Rule, float]:
    """Return the rule that a release of `spec` meets and the δ it may take for one job.

    The histogram takes none unless its noise is Gaussian. While the mechanism is still to be chosen, it is the dearer
    one.
    """
    if spec.plan.noise == "gaussian":
        return Rule.ADP, spec.privacy.delta
    if spec.plan.mechanism == HISTOGRAM.name or spec.privacy.rule is Rule.PURE:
        return Rule.PURE, 0.0
    return spec.privacy.rule, spec.privacy.delta


def candidates(spec: Spec) -> list[Spec]:
    """Return `spec` with each mechanism that the planner may choose; a single one where it is named."""
    if spec.plan.mechanism != "auto":
        return [spec]
    coarsening = spec.plan.coarsening or (None if spec.plan.finest is None else "auto")
    return [
        spec.model_copy(update={"plan": spec.plan.model_copy(update={"mechanism": one.name, "coarsening": coarsening})})
        for one in (DIRICHLET, HISTOGRAM)
    ]


def choose(
    spec: Spec, region: Region, destination: NDArray[np.int32], headcount: NDArray[np.int64], table: PriorTable
) -> tuple[Spec, str]:
    """Return `spec` with a mechanism instead of "auto", and why that one, from what is public; others as they are.

    Both plan the same sample of destinations, taken by headcount; the smaller predicted error of their average commutes
    wins.
    """
    if spec.plan.mechanism != "auto":
        return spec, ""
    place = np.unique(np.searchsorted(np.cumsum(headcount), np.linspace(1, headcount.sum(), _SAMPLE)))
    found = {}
    for named in candidates(spec):
        settings = settings_of(named, region)
        plan = mechanism_of(settings).plan_destinations(region, destination[place], headcount[place], settings, table)
        found[named.plan.mechanism] = float(np.average(plan.predicted_km, weights=headcount[place])), named
    best = min(found, key=lambda name: found[name][0])
    told = ", ".join(f"{name} {km:.2f} km" for name, (km, _) in found.items())
    return found[best][1], f"predicted error of average commutes, {place.size:,} destinations sampled: {told}"
