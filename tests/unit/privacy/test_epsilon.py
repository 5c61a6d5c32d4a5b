import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import Epsilon, check_delta, check_epsilon, ratio_minus_one


def exponential_minus_one(epsilon, terms=60):
    """exp(ε) − 1 from below, by its series, for 0 < ε ≤ 4."""
    term, total = Fraction(1), Fraction(0)
    for i in range(1, terms):
        term *= Fraction(epsilon) / i
        total += term
    return total


@given(st.floats(1e-9, 4.0))
def test_never_above_and_within_ten_units(epsilon):
    found, true = ratio_minus_one(epsilon), exponential_minus_one(epsilon)
    assert found <= true
    assert true - Fraction(found) <= 10 * Fraction(math.ulp(found))


@pytest.mark.parametrize("ratio", [2, 5, 10, Fraction(3, 2), 50.0])
def test_an_exact_ratio_is_kept(ratio):
    epsilon = Epsilon.from_ratio(ratio)
    assert ratio_minus_one(epsilon) == float(ratio) - 1
    assert epsilon >= math.log(ratio)
    assert epsilon.ratio == ratio


def test_a_ratio_that_is_no_float_is_rounded_down():
    for ratio in (Fraction(4, 3), Fraction(10, 7), Fraction(11, 10)):
        found = ratio_minus_one(Epsilon.from_ratio(ratio))
        assert Fraction(found) <= ratio - 1 <= Fraction(math.nextafter(found, math.inf))


@pytest.mark.parametrize("ratio", [1, 0.5, -3, math.inf, math.nan])
def test_ratios_that_promise_nothing(ratio):
    with pytest.raises(PrivacyParameterError, match=r"ratio \(.*\) must be"):
        Epsilon.from_ratio(ratio)


def test_a_ratio_near_one_is_not_understated():
    # ln(1 + y) ≥ y − y²/2
    y = Fraction(1, 10**17)
    assert Epsilon.from_ratio(1 + y) >= y - y * y / 2


@pytest.mark.parametrize("epsilon", [0, -1, 700.1, math.inf, math.nan])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(PrivacyParameterError, match=r"epsilon \(.*\) must be above 0"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("delta", [-1e-300, 1, math.nan])
def test_delta_out_of_range(delta):
    with pytest.raises(PrivacyParameterError, match=r"delta \(.*\) must be at least 0"):
        check_delta(delta)
