"""Noisy counts on two levels through every choice of the code, and the law of the noise itself in fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from synthmap.audit.choices import Choices, rebuilt
from synthmap.audit.exact import audit_exactly
from synthmap.audit.mechanism import Mechanism
from synthmap.audit.worlds import SETTINGS, World, two_zones
from synthmap.kernels import noise
from synthmap.kernels.histogram import noisy_levels
from synthmap.kernels.noise import GEOMETRIC
from synthmap.mechanism.histogram_plan import plan_destinations
from synthmap.privacy.histogram import UNITS, histogram_epsilon, minimum_units


def with_noisy_groups(share):
    """Return a plan as the planner makes it for large workplaces: groups of cells have noisy counts too."""

    def planned(region, destination, headcount, settings):
        plan = plan_destinations(region, destination, headcount, settings)
        units, groups = minimum_units(settings.epsilon, share)
        size = len(plan)
        return replace(
            plan,
            groups_asked=np.full(size, 2),
            groups=np.full(size, 2),
            noise_units=np.full(size, units),
            group_noise_units=np.full(size, groups),
            epsilon=np.full(size, float(histogram_epsilon(units, groups))),
        )

    return Mechanism("noisy groups", planned)


@pytest.mark.parametrize("agreement", [False, True])
def test_noisy_groups_keep_the_promise_together(agreement):
    settings = replace(SETTINGS, mechanism="histogram", cells=3, agreement=agreement)
    found = audit_exactly(World("groups", two_zones(), (0,), (1,), settings), with_noisy_groups(0.4))
    assert found.holds
    assert found.worst_epsilon <= settings.epsilon
    assert found.worst_delta == 0


def law_of_counts(truth, units):
    """Return the exact law of what `add_noise` makes of a histogram."""
    homes = np.repeat(np.arange(len(truth)), truth)
    choices = Choices()
    signed = rebuilt(noise.two_sided, uniform_below=choices.uniform_below, geometric=choices.geometric)
    driven = rebuilt(
        noise.add_noise,
        binomial=choices.binomial,
        free_cell=choices.free_cell,
        geometric=choices.geometric,
        two_sided=signed,
    )
    return choices.law(
        lambda: tuple(driven(homes, len(truth), units, GEOMETRIC.tails, None, np.zeros(1, np.int64)).tolist())
    )


def held_law(n, count, q):
    """Return the law of min(max(count + Z, 0), n), Z two-sided geometric, in fractions."""
    law = {y: (1 - q) / (1 + q) * q ** abs(y - count) for y in range(1, n)}
    law[0] = q**count / (1 + q)
    law[n] = q ** (n - count) / (1 + q)
    return law


@pytest.mark.parametrize("truth", [(2, 0), (0, 1, 0), (1, 1), (0, 3, 0)])
def test_counts_are_independent_with_the_law_that_is_proved(truth):
    """The sparse draw of the kernel against noise on every cell, written out."""
    units, n = 2**30, sum(truth)
    q = Fraction(units, UNITS - units)
    wanted = {(): Fraction(1)}
    for count in truth:
        wanted = {(*y, v): p * w for y, p in wanted.items() for v, w in held_law(n, count, q).items()}
    found = law_of_counts(truth, units)
    assert sum(wanted.values()) == 1
    assert found == {y: p for y, p in wanted.items() if p}


def test_the_counts_themselves_use_the_promise_up():
    units = 2**30
    ratio = histogram_epsilon(units).ratio
    one, other = law_of_counts((2, 0), units), law_of_counts((1, 1), units)
    assert max(p / other[y] for y, p in one.items()) == ratio
    assert max(p / one[y] for y, p in other.items()) == ratio


def joint_law(homes, units, groups):
    """Return the exact law of all noisy counts of three cells in two groups."""
    choices = Choices()
    signed = rebuilt(noise.two_sided, uniform_below=choices.uniform_below, geometric=choices.geometric)
    adding = rebuilt(
        noise.add_noise,
        binomial=choices.binomial,
        free_cell=choices.free_cell,
        geometric=choices.geometric,
        two_sided=signed,
    )
    driven = rebuilt(noisy_levels, add_noise=adding)

    def run():
        reader = np.zeros(1, np.int64)
        cells, grouped = driven(np.array(homes), np.array([0, 0, 1]), 2, (units, groups), GEOMETRIC, None, reader)
        return (*cells.tolist(), *grouped.tolist())

    return choices.law(run)


def worst_ratio(units, groups):
    one, other = joint_law([0], units, groups), joint_law([2], units, groups)
    return max(max(p / other[y], other[y] / p) for y, p in one.items())


def test_both_levels_together_cost_what_is_stated_and_not_less():
    """Cells 0 and 2 lie in different groups: four counts change."""
    units, groups = 2**30, 2**31 - 2**29
    assert worst_ratio(units, groups) == histogram_epsilon(units, groups).ratio


@pytest.mark.parametrize("less", [(1, 2**31 - 2**29), (2**30, 1)])
def test_a_level_with_next_to_no_noise_would_be_found(less):
    assert worst_ratio(*less) > histogram_epsilon(2**30, 2**31 - 2**29).ratio
