"""Noisy sums of lengths and the table planned with them: their joint law in small worlds, held against the promise.

The code of a release is run with lengths of at most 4 parts instead of 1,000 and without the weight of public means, so
that few sums need to be told apart. Sums so low or so high that the plan and the ratio of two tables' probabilities no
longer change are one outcome each, which loses nothing.
"""

import functools
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from synthmap.audit.choices import Choices, Unit, rebuilt
from synthmap.audit.exact import _over_cells, laws
from synthmap.audit.pairs import excess, failure, ratio_at
from synthmap.audit.worlds import SETTINGS, World, four_zones, two_zones
from synthmap.geography.prior import NO_TABLE
from synthmap.kernels import geometric
from synthmap.kernels import lengths as kernel
from synthmap.mechanism import lengths
from synthmap.mechanism.chosen import mechanism_of
from synthmap.mechanism.plan import model_of
from synthmap.privacy.composition import round_up
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.histogram import UNITS
from synthmap.privacy.lengths import lengths_epsilon
from synthmap.privacy.rule import Rule

PARTS = 4


def without_noise(units, stream, number):
    return 0


_noise_km = rebuilt(lengths._noise_km, PARTS=PARTS)
length_sums = rebuilt(lengths.length_sums, lengths_of=rebuilt(kernel.lengths_of, PARTS=PARTS))
true_sums = rebuilt(lengths.noisy_sums, _sums=rebuilt(lengths._sums, PARTS=PARTS), noise_of_sum=without_noise)
length_classes = rebuilt(lengths.length_classes, PARTS=PARTS, _noise_km=_noise_km, _PRECISION=1e9)
fit_decay = rebuilt(lengths.fit_decay, PARTS=PARTS, _noise_km=_noise_km, _TRUST=1e9)


@dataclass(frozen=True)
class Measured:
    """A world and what of its ε goes to lengths; or how that was got wrong."""

    world: World
    lengths_epsilon: float
    understated: int = 1
    whole: bool = False

    @property
    def epsilon(self):
        return self.world.settings.epsilon


def as_planned(settings, measured, fitted):
    left = -round_up(Fraction(measured.lengths_epsilon) - Fraction(measured.epsilon))  # as `table_epsilon`
    epsilon = settings.epsilon if measured.whole else left
    return replace(settings, epsilon=epsilon, edges_km=tuple(fitted.edges_km), scales_km=tuple(fitted.scales_km))


_GIVEN = {}  # by world and settings: what is broken in the noise of sums changes how likely these are, not what follows


def given(world):
    """Return the plan, δ as stated and the laws of the table over zones and over cells, given the sums."""
    plan, found = laws(world)
    told = tuple(plan.cells.tolist()), tuple(world.cells(plan).tolist()), tuple(plan.delta.tolist())
    loss = mechanism_of(world.settings).loss(plan, world.settings)
    if loss.pdp_delta_table is None:
        return told, 0.0, found, {table: {} for table in found}
    return told, loss.pdp_delta_table, found, _over_cells(found, world.cells(plan))


class Joint:
    """The joint law of all sums and the table, for every table of a world."""

    def __init__(self, measured):
        world, settings = measured.world, measured.world.settings
        self.measured, self.tables = measured, list(world.tables())
        region, model = world.region, model_of(settings, NO_TABLE)
        places, headcount = np.array(world.places, np.int32), np.array(world.headcount, np.int64)
        classes = length_classes(region, model, places, headcount, measured.lengths_epsilon)
        of = lengths.class_of_each(region, model, classes, places)

        def sums(table):
            return length_sums(region, classes, of, places, headcount, world.counts(table, 1))

        self.sums = {table: tuple(true_sums(classes, sums(table), None).tolist()) for table in self.tables}
        workers = sums(self.tables[0]).workers
        units = classes.units
        if measured.understated > 1:  # the noise for a sensitivity that is smaller by this factor
            units = lengths.least_lengths_units(measured.lengths_epsilon, PARTS // measured.understated)
        self.units, self.q = units, Fraction(units, UNITS - units)
        self.low = min(map(min, self.sums.values())) - 1
        self.high = max(map(max, self.sums.values())) + 1
        self.low = min(self.low, -2 * PARTS * int(workers.max()))
        self.high = max(self.high, 2 * PARTS * int(workers.max()))
        self.fit = lambda noisy: fit_decay(region, model, classes, workers, np.array(noisy), measured.lengths_epsilon)
        self.stated, self.fine, self.coarse, self.plans = {}, {}, {}, set()
        for noisy in product(range(self.low, self.high + 1), repeat=workers.size):
            planned = as_planned(settings, measured, self.fit(noisy))
            key = id(world), planned  # all of `WORLDS` stay
            if key not in _GIVEN:
                _GIVEN[key] = given(replace(world, settings=planned))
            plan, self.stated[noisy], fine, coarse = _GIVEN[key]
            self.plans.add(plan)
            for table in self.tables:
                weight = self.weight(noisy, self.sums[table])
                for whole, part in ((self.fine, fine), (self.coarse, coarse)):
                    law = whole.setdefault(table, {})
                    law.update({(noisy, x): weight * p for x, p in part[table].items()})

    def weight(self, noisy, true):
        """Return how likely sums become those, where the lowest and the highest stand for all beyond."""
        found = Fraction(1)
        for y, s in zip(noisy, true, strict=True):
            scale = 1 if y in (self.low, self.high) else 1 - self.q
            found *= scale / (1 + self.q) * self.q ** abs(y - s)
        return found

    @functools.cached_property
    def ratio(self):
        return 1 + Fraction(ratio_minus_one(self.measured.epsilon))

    def pairs(self):
        return [(table, other) for table in self.tables for other in self.measured.world.neighbours(table)]

    def delta(self):
        """Return the true δ of everything over zones."""
        return max(excess(self.fine[one], self.fine[other], self.ratio) for one, other in self.pairs())

    def failures(self):
        """Return for all sums the worst chance of a bad table given these, over cells; and that before anything."""
        given, every = dict.fromkeys(self.stated, Fraction(0)), Fraction(0)
        for table, law in self.coarse.items():
            others = [self.coarse[other] for other in self.measured.world.neighbours(table)]
            after = {}
            for outcome, p in law.items():
                after.setdefault(outcome[0], {})[outcome] = p
            bad = {noisy: failure(part, others, self.ratio) for noisy, part in after.items()}
            every = max(every, sum(bad.values()))
            for noisy, p in bad.items():
                given[noisy] = max(given[noisy], p / self.weight(noisy, self.sums[table]))
        return given, every

    def holds(self):
        """Return whether every promise is kept."""
        promised = Fraction(self.measured.world.promised_delta)
        if self.delta() > promised:
            return False
        if not any(self.coarse.values()):
            return True
        given, every = self.failures()
        return every <= max(self.stated.values()) and all(given[noisy] <= self.stated[noisy] for noisy in given)


TWO, FOUR = two_zones(), four_zones()
LOOSE = replace(SETTINGS, epsilon=2.0, delta=0.25)
WORLDS = {
    "pdp, 2 workers": Measured(World("", FOUR, (0,), (2,), replace(SETTINGS, cells=3)), 0.5),
    "pdp, 3 workers": Measured(World("", TWO, (0,), (3,), replace(LOOSE, cells=2)), 0.8),
    "pdp, cells by the planner": Measured(World("", FOUR, (1,), (2,), replace(LOOSE, cells=0, epsilon=3.0)), 0.5),
    "adp, 3 workers": Measured(World("", TWO, (0,), (3,), replace(SETTINGS, cells=2, rule=Rule.ADP)), 0.8),
    "pure, 1 worker": Measured(World("", FOUR, (0,), (1,), replace(SETTINGS, rule=Rule.PURE)), 0.5),
    "noisy counts": Measured(World("", TWO, (0,), (1,), replace(SETTINGS, mechanism="histogram")), 0.5),
    "two classes": Measured(World("", FOUR, (0, 2), (1, 1), replace(SETTINGS, rule=Rule.PURE, cells=2)), 0.5),
}
BROKEN = {"sensitivity understated": {"understated": 4}, "table planned with all of ε": {"whole": True}}


@functools.cache
def joint(name, *, understated=1, whole=False):
    return Joint(replace(WORLDS[name], understated=understated, whole=whole))


@pytest.mark.parametrize("name", WORLDS)
def test_sums_and_table_together_keep_the_promise(name):
    found = joint(name)
    assert all(sum(law.values()) == 1 for law in found.fine.values())
    assert found.holds()


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("name", list(WORLDS)[:5])  # reading noisy counts hides what is broken; two classes take long
def test_what_is_broken_is_found(name, broken):
    assert not joint(name, **BROKEN[broken]).holds()


@pytest.mark.parametrize("name", WORLDS)
def test_the_plan_and_the_table_depend_on_the_sums(name):
    """Else nothing adaptive would have been looked at; and beyond the sums that are told apart nothing changes."""
    found = joint(name)
    classes = len(next(iter(found.stated)))
    assert classes == (2 if name == "two classes" else 1)
    scales = {noisy: tuple(found.fit(noisy).scales_km) for noisy in found.stated}
    assert len(set(scales.values())) > 2
    for end, step in ((found.low, -1), (found.high, 1)):
        for further in (1, 100, 10**6):
            assert tuple(found.fit((end + step * further,) * classes).scales_km) == scales[(end,) * classes]
    (table, *_), given = found.tables, {}
    for (noisy, x), p in found.fine[table].items():
        given.setdefault(noisy, {})[x] = p / found.weight(noisy, found.sums[table])
    assert len({tuple(sorted(law.items())) for law in given.values()}) > 2


def test_cells_and_noise_are_planned_from_the_sums():
    assert len(joint("pdp, cells by the planner").plans) > 1


@pytest.mark.parametrize("name", ["pdp, 3 workers", "adp, 3 workers"])
def test_failures_are_certified_and_not_only_excluded(name):
    found = joint(name)
    assert found.delta() > 0
    assert ratio_at(*(found.fine[one] for one in found.pairs()[0]), Fraction(0)) > 1


def test_the_chance_of_a_bad_table_is_what_is_stated_for_these_sums():
    given, every = joint("pdp, 3 workers").failures()
    assert 0 < every <= max(joint("pdp, 3 workers").stated.values())
    assert max(given.values()) > 0


def test_the_sums_alone_use_their_share_up():
    """Lengths of none and of the whole cap: no less noise would do."""
    found = joint("pure, 1 worker")
    sums = sorted({true for (true,) in found.sums.values()})
    assert sums[-1] - sums[0] == PARTS
    laws_of_sums = [
        {y: found.weight((y,), (s,)) for y in range(found.low, found.high + 1)} for s in (sums[0], sums[-1])
    ]
    ratio = ratio_at(*laws_of_sums, Fraction(0))
    assert ratio == lengths_epsilon(found.units, PARTS).ratio
    assert ratio <= 1 + Fraction(ratio_minus_one(0.5)) < lengths_epsilon(found.units - 1, PARTS).ratio


class OpenError(Exception):
    """Digits are still open after all bits."""


@pytest.mark.parametrize("units", [1, 2**26, 2**30, 2**31 - 2**28, 2**31 - 1])
def test_the_noise_of_the_code_has_the_law_that_is_held_against_the_promise(units):
    """With two digits of each variable, looking at two bits of each fraction first, then four, and so on to 64.

    All fractions are gone through, as intervals that only the code's own comparisons divide. What is still open then is
    all by which an outcome's probability may differ.
    """
    digits, most, choices = 2, 64, Choices()
    bounds = rebuilt(geometric.digit_bounds, DIGITS=digits)

    def run():
        spans = [[0, 2**most] for _ in range(2 * digits)]

        def first_bits(stream, number, bits):
            if bits > most:
                raise OpenError
            return [Unit(choices, span, divisor=2 ** (most - bits)) for span in spans]

        driven = rebuilt(geometric.noise_of_sum, DIGITS=digits, first_bits=first_bits, digit_bounds=bounds)
        try:
            return driven(units, None, 0, 2)
        except OpenError:
            return None

    found = choices.law(run)
    q, values = Fraction(units, UNITS - units), 2**digits
    geometric_law = [(1 - q) * q**g / (1 - q**values) for g in range(values)]  # given that no higher digit is 1
    still_open = found.pop(None)
    assert 0 < still_open < Fraction(1, 2 ** (most - 8))
    for z in range(1 - values, values):
        exact = sum(geometric_law[g] * geometric_law[g - z] for g in range(values) if 0 <= g - z < values)
        assert 0 <= exact - found.get(z, 0) <= still_open
