"""A tighter sum is never below the exact optimum, only given where it may be, and named."""

import sys
from fractions import Fraction
from math import comb, exp

import pytest

from synthmap.privacy.gaussian import gaussian_delta, minimum_gaussian
from synthmap.privacy.tighter import tighter_epsilon

LIBRARY = "dp-accounting is not installed: pip install 'synthmap[accounting]'"
MANY = [(Fraction(1, 10), Fraction(0), 100)]
DELTA = Fraction(1, 10**6)


def exact_delta(epsilon, times, total):
    """δ of `times` pure losses at ε = `total` (Kairouz, Oh and Viswanath 2015, theorem 3.3): randomised response."""
    yes = 1 / (1 + exp(-epsilon))
    losses = ((times - 2 * no) * epsilon for no in range(times + 1))
    chances = (comb(times, no) * yes ** (times - no) * (1 - yes) ** no for no in range(times + 1))
    return sum(chance * max(0.0, 1 - exp(total - loss)) for loss, chance in zip(losses, chances, strict=True))


def test_it_agrees_with_the_exact_optimum_for_equal_losses():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    found, rule = tighter_epsilon(MANY, DELTA)
    assert 0.999e-6 * 0.99 < exact_delta(0.1, 100, found) < 1e-6
    assert "optimal composition" in rule and "dp-accounting" in rule


def test_it_is_one_sum_whether_losses_are_told_together_or_one_by_one():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    unlike = [(Fraction(1, 10), Fraction(1, 10**9), 60), (Fraction(1, 4), Fraction(0), 4)]
    apart = [(epsilon, delta, 1) for epsilon, delta, times in unlike for _ in range(times)]
    found, _ = tighter_epsilon(unlike, DELTA)
    assert found == pytest.approx(tighter_epsilon(apart[::-1], DELTA)[0], rel=1e-9)
    assert found < 7


NONE = {
    "no loss": ([], DELTA),
    "one loss": ([(Fraction(1), Fraction(0), 1)], DELTA),
    "δ of the losses is all of δ": ([(Fraction(1, 10), DELTA / 100, 100)], DELTA),
    "no δ": (MANY, Fraction(0)),
    "a δ too small for floats": (MANY, Fraction(1, 10**11)),
    "a huge ε": ([*MANY, (Fraction(60), Fraction(0), 1)], DELTA),
    "no ε": ([(Fraction(0), Fraction(0), 5)], DELTA),
}


@pytest.mark.parametrize("losses, delta", NONE.values(), ids=NONE)
def test_where_it_cannot_be_had_there_is_none(losses, delta):
    assert tighter_epsilon(losses, delta) is None


def test_without_the_library_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    assert tighter_epsilon(MANY, DELTA) is None


@pytest.mark.parametrize(("jobs", "epsilon", "delta", "total"), [(50, 0.02, 1e-7, 1e-4), (30, 0.05, 1e-6, 1e-3)])
def test_gaussian_noise_for_all_jobs_together_is_one_loss_a_release_and_not_one_a_job(jobs, epsilon, delta, total):
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    units = minimum_gaussian(epsilon, delta, jobs).units
    one = Fraction(epsilon), Fraction(delta)
    for parts, holds in (((jobs * one[0], jobs * one[1], 10), True), ((*one, 10 * jobs), False)):
        found = tighter_epsilon([parts], Fraction(total))
        at = 10 * jobs * epsilon if found is None else found[0]
        assert (gaussian_delta(units, at, jobs=10 * jobs) <= total) is holds
