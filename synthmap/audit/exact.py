"""The exact audit: every table of a small world, every choice of the code that draws it, in fractions."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synthmap.audit.choices import Choices, synthesize
from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.pairs import excess, failure, ratio_at
from synthmap.audit.worlds import Outcome, Table, World
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.chosen import mechanism_of
from synthmap.mechanism.plan import Plan
from synthmap.privacy.composition import table_dp
from synthmap.privacy.epsilon import ratio_minus_one

Laws = dict[Table, dict[Outcome, Fraction]]


@dataclass(frozen=True)
class ExactFinding:
    """What is promised in a world, and the exact worst over all pairs of neighbouring tables.

    Attributes
    ----------
    world, mechanism : str
    tables : int
        How many confidential tables there are.
    promised_epsilon, promised_delta : float
        (ε, δ)-DP of the table over zones: the ε asked for and the δ that the plan states.
    worst_delta : Fraction
        The true δ at the promised ε.
    worst_epsilon : float
        The true ε at the promised δ; infinite if no ε is enough.
    promised_failure, worst_failure : float and Fraction, or None
        Probabilistic DP of the table over cells at the promised ε: what is stated, and the truth; None where the rule
        does not promise it.
    """

    world: str
    mechanism: str
    tables: int
    promised_epsilon: float
    promised_delta: float
    worst_delta: Fraction
    worst_epsilon: float
    promised_failure: float | None
    worst_failure: Fraction | None

    @property
    def holds(self) -> bool:
        """Whether every promise is kept."""
        if self.promised_failure is not None and self.worst_failure is not None:
            return self.worst_delta <= self.promised_delta and self.worst_failure <= self.promised_failure
        return self.worst_delta <= self.promised_delta


def laws(world: World, mechanism: Mechanism = AS_IT_IS) -> tuple[Plan, Laws]:
    """Return the plan of `world` and the exact law of what is published, for every confidential table."""
    places, headcount = np.array(world.places, np.int32), np.array(world.headcount, np.int64)
    plan = mechanism.plan(world.region, places, headcount, world.settings)
    region, numbered = world.copies(plan, 1)
    choices, unread = Choices(), seeded_stream(0)
    draw = mechanism.around(synthesize(choices, world.settings))

    def law(table: Table) -> dict[Outcome, Fraction]:
        counts = world.counts(table, 1)

        def run() -> Outcome:
            drawn = draw(numbered, counts, region, world.settings, unread)
            told = [] if drawn.interval is None else drawn.interval.ravel().tolist()
            return (*world.outcomes(drawn, 1)[0].tolist(), *told)

        return choices.law(run)

    return plan, {table: law(table) for table in world.tables()}


def audit_exactly(world: World, mechanism: Mechanism = AS_IT_IS) -> ExactFinding:
    """Return the worst that any outcome tells of any change of one worker, and what was promised."""
    plan, found = laws(world, mechanism)
    # the ratio that was certified is a few units below exp(ε)
    ratio = 1 + Fraction(ratio_minus_one(world.settings.epsilon))
    _, delta = table_dp(plan.epsilon, plan.delta)
    promised = Fraction(delta)
    pairs = [(found[table], found[other]) for table in found for other in world.neighbours(table)]
    ratios = [ratio_at(one, other, promised) for one, other in pairs]
    stated = mechanism_of(world.settings).loss(plan, world.settings).pdp_delta_table
    worst_failure = None
    if stated is not None:
        coarse = _over_cells(found, world.cells(plan))
        worst_failure = max(
            failure(law, [coarse[other] for other in world.neighbours(table)], ratio) for table, law in coarse.items()
        )
    return ExactFinding(
        world=world.name,
        mechanism=mechanism.name,
        tables=len(found),
        promised_epsilon=world.settings.epsilon,
        promised_delta=delta,
        worst_delta=max(excess(one, other, ratio) for one, other in pairs),
        worst_epsilon=max(math.inf if one is None else math.log(one) for one in ratios),
        promised_failure=stated,
        worst_failure=worst_failure,
    )


def _over_cells(found: Laws, cells: NDArray[np.int64]) -> Laws:
    """Return the laws of the draw before it was spread over zones."""
    size = int(cells.max()) + 1
    out: Laws = {}
    for table, law in found.items():
        coarse = out.setdefault(table, {})
        for outcome, p in law.items():
            x = tuple(np.bincount(cells, outcome, size).astype(int).tolist())
            coarse[x] = coarse.get(x, Fraction(0)) + p
    return out
