"""Every α that calibration returns is private by exact enumeration; what is wrong on purpose is caught."""

import math
from fractions import Fraction

import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy import certificate, dropping
from synthmap.privacy.calibration import Rule, minimum_alpha
from synthmap.privacy.epsilon import Epsilon, ratio_minus_one
from synthmap.privacy.reference_zero_sample import reference_zero_sample_alpha


def truth(world, epsilon, rule):
    """The exact δ at the ratio R that calibration used, which is at most exp(ε)."""
    ratio = 1 + Fraction(ratio_minus_one(epsilon))
    return world.adp(ratio) if rule is Rule.ADP else world.failure(ratio)


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("keep", [1.0, 0.9, 0.5])
def test_every_alpha_is_private(small_worlds, keep, rule):
    checked = 0
    for n in (1, 2, 3, 4):
        for k in (2, 3, 4):
            for m in sorted({n, 2, 4}):
                for epsilon in (0.5, 1.0, Epsilon.from_ratio(4), 3.0):
                    for delta in (0.2, 0.03, 1e-3):
                        at = {"headcount": n, "synthetic_size": m, "cells": k, "keep": keep}
                        try:
                            found = minimum_alpha(epsilon=epsilon, delta=delta, rule=rule, **at)
                        except PrivacyParameterError:
                            assert keep < 1
                            continue
                        world = small_worlds.World(n, k, m, found.alpha, Fraction(keep))
                        exact = truth(world, epsilon, rule)
                        assert exact <= Fraction(found.certified_delta), (world, epsilon, delta)
                        assert found.certified_delta <= (0 if rule is Rule.PURE else delta)
                        checked += 1
    assert checked > 100


@pytest.mark.parametrize("rule", [Rule.PDP, Rule.ADP])
def test_keep_probabilities_that_differ(small_worlds, rule):
    for n, m, keeps in [(1, 3, "1/2 3/4 1"), (2, 2, "3/4 1 1"), (3, 3, "7/8 1 15/16"), (2, 4, "1/2 1")]:
        keep = tuple(Fraction(f) for f in keeps.split())
        for epsilon in (2.5, 4.0):
            for delta in (0.1, 0.01):
                found = minimum_alpha(
                    epsilon=epsilon,
                    delta=delta,
                    headcount=n,
                    synthetic_size=m,
                    cells=len(keep),
                    keep=float(min(keep)),
                    keep_most=float(max(keep)),
                    rule=rule,
                )
                world = small_worlds.World(n, len(keep), m, found.alpha, keep)
                assert truth(world, epsilon, rule) <= Fraction(found.certified_delta)


def test_control_alpha_times_seven_tenths_is_caught(small_worlds):
    caught = 0
    cases = [(n, k, rule) for n in (2, 3, 4) for k in (3, 4) for rule in (Rule.PDP, Rule.ADP)]
    for n, k, rule in cases:
        found = minimum_alpha(epsilon=1.0, delta=0.01, headcount=n, cells=k, rule=rule)
        world = small_worlds.World(n, k, n, found.alpha * Fraction(7, 10))
        caught += truth(world, 1.0, rule) > Fraction(1, 100)
    assert caught == len(cases)


def test_control_threshold_off_by_one_is_caught(small_worlds):
    """Counting x = t + 1 as harmless accepts an α one step of the lattice too small."""
    for n, k in [(2, 3), (3, 3), (4, 3), (3, 4)]:
        found = minimum_alpha(epsilon=1.0, delta=0.0, headcount=n, cells=k)
        excess = Fraction(ratio_minus_one(1.0))
        wrong = Fraction(n - 1) / excess * (1 + Fraction(1, 2**46))
        assert math.floor(excess * wrong) + 1 >= n  # what an off-by-one would call pure DP
        assert truth(small_worlds.World(n, k, n, found.alpha), 1.0, Rule.PURE) == 0
        assert truth(small_worlds.World(n, k, n, wrong), 1.0, Rule.PURE) > 0


def test_control_dropping_charged_by_the_maximum_is_caught(small_worlds):
    """Theorem 3 of the slides: max(ln(1 + m/α), …) + ln(1/f), without what the entered cell adds."""
    keep, alpha = Fraction(3, 10), Fraction(3, 4)
    world = small_worlds.World(3, 3, 3, alpha, keep)
    claimed = (1 + 3 / alpha) / keep
    assert world.failure(claimed) > 0
    factor = Fraction(dropping.dropping_factors(3, 3, 3, 0.75, 0.3)[0])
    assert world.failure((1 + 3 / alpha) * factor) == 0


def test_control_dropping_charged_with_three_cells_only_is_caught(small_worlds):
    """All workers in one cell, all other cells dropped: the domain has two cells, not three."""
    keep, alpha = Fraction(9, 10), Fraction(50)
    for k in (2, 3):
        world = small_worlds.World(2, k, 6, alpha, keep)
        gain = Fraction(dropping.vanishing_gain(2, 6, 50.0, 3))
        three = keep + (1 - keep) * gain
        claimed = max((1 + 6 / alpha) * three / keep, (1 + 6 / (1 + alpha)) * three)
        assert world.failure(claimed) > 0
        two = Fraction(dropping.dropping_factors(2, 6, k, 50.0, 0.9)[2])
        first = Fraction(dropping.dropping_factors(2, 6, k, 50.0, 0.9)[0])
        assert world.failure(max((1 + 6 / alpha) * first, (1 + 6 / (1 + alpha)) * two)) == 0


def test_control_reference_rule_is_caught_at_one_worker(small_worlds):
    alpha = reference_zero_sample_alpha(epsilon=8.889, delta=5.52e-4, headcount=1, cells=2)
    assert truth(small_worlds.World(1, 2, 1, Fraction(alpha)), 8.889, Rule.PDP) > 0.9999
    found = minimum_alpha(epsilon=8.889, delta=5.52e-4, headcount=1, cells=2)
    assert truth(small_worlds.World(1, 2, 1, found.alpha), 8.889, Rule.PDP) <= Fraction(5.52e-4)


def test_one_cell_needs_no_privacy(small_worlds):
    found = minimum_alpha(epsilon=0.1, delta=0, headcount=7, cells=1)
    assert found.alpha > 0
    assert (found.certified_delta, found.epsilon_total, found.epsilon_dropping) == (0, 0, 0)


def test_pure_is_never_less_than_the_theorem():
    for epsilon in (0.01, 0.5, 2.0, 9.0):
        for m in (1, 7, 200):
            found = minimum_alpha(epsilon=epsilon, delta=0, headcount=5, cells=9, synthetic_size=m, rule=Rule.PURE)
            exact = m / Fraction(ratio_minus_one(epsilon))
            assert exact <= found.alpha <= exact * (1 + Fraction(1, 2**14))


def test_certified_set_is_a_union_of_intervals():
    """More α is not always more private, so bisection alone would be wrong."""
    number, probability = certificate.kept_cells(2, 1.0)
    excess = 2.637
    at = [
        certificate.certified(10, 13, 2, j / excess, excess, 1.0, number, probability, False, 0.99)
        for j in (5.001, 5.999, 6.001)
    ]
    assert at[0] < at[1] > at[2]


def test_alpha_is_a_dyadic_rational_and_is_what_was_certified():
    for epsilon in (0.3, 2.0, 5.0):
        found = minimum_alpha(epsilon=epsilon, delta=1e-4, headcount=200, cells=40)
        assert found.alpha.denominator & (found.alpha.denominator - 1) == 0
        assert Fraction(float(found.alpha)) == found.alpha
        number, probability = certificate.kept_cells(40, 1.0)
        again = certificate.certified(
            200,
            200,
            40,
            float(found.alpha),
            ratio_minus_one(epsilon),
            1.0,
            number,
            probability,
            False,
            1e-4,
        )
        assert again == found.certified_delta


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": 701.0},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"headcount": 0},
        {"cells": 0},
        {"synthetic_size": 0},
        {"keep": 0.0},
        {"keep": 1.1},
    ],
)
def test_parameters_out_of_range(wrong):
    good = {"epsilon": 1.0, "delta": 1e-5, "headcount": 10, "cells": 5}
    with pytest.raises(PrivacyParameterError, match=r"must be"):
        minimum_alpha(**(good | wrong))
