"""The noise of summed lengths: the least that meets ε, exact ratios, and refusals."""

import math
from fractions import Fraction

import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import Epsilon, ratio_minus_one
from synthmap.privacy.histogram import UNITS
from synthmap.privacy.lengths import least_lengths_units, lengths_epsilon


def ratio(units, sensitivity):
    return Fraction(UNITS - units, units) ** sensitivity


@pytest.mark.parametrize("epsilon", [1e-3, 0.0123, 0.1, math.log(2), 1.0, 4.0, 10.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 7, 1000])
def test_the_least_units_meet_epsilon_and_one_less_does_not(epsilon, sensitivity):
    units = least_lengths_units(epsilon, sensitivity)
    allowed = 1 + Fraction(ratio_minus_one(epsilon))
    assert ratio(units, sensitivity) <= allowed < ratio(units - 1, sensitivity)
    assert lengths_epsilon(units, sensitivity) <= epsilon
    assert lengths_epsilon(units, sensitivity) == pytest.approx(epsilon, rel=1e-2)


@pytest.mark.parametrize("sensitivity", [1, 2, 1000])
def test_stated_costs_are_exact_and_rounded_up(sensitivity):
    units = 2**31 - 2**20
    stated = lengths_epsilon(units, sensitivity)
    assert stated.ratio == ratio(units, sensitivity)
    assert 1 + Fraction(math.expm1(stated)) > stated.ratio * (1 - Fraction(1, 10**12))
    assert stated >= sensitivity * math.log(float(Fraction(UNITS - units, units))) * (1 - 1e-12)


def test_a_chosen_ratio_is_met_exactly():
    assert least_lengths_units(Epsilon.from_ratio(9), 2) == 2**30
    assert least_lengths_units(Epsilon.from_ratio(3), 1) == 2**30
    assert lengths_epsilon(2**30, 1).ratio == 3


def test_noise_for_half_the_sensitivity_costs_twice_the_epsilon():
    assert lengths_epsilon(least_lengths_units(0.5, 500), 1000) == pytest.approx(1.0, rel=1e-6)


def test_the_largest_epsilon_still_has_some_noise():
    assert least_lengths_units(700.0, 1) == 1
    assert lengths_epsilon(1, 1) < 23


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.0, r"epsilon \(0\) must be above 0"),
        (-1.0, r"epsilon \(-1\) must be above 0"),
        (math.nan, r"epsilon \(nan\) must be above 0"),
        (700.1, "at most 700"),
        (1e-10, "at least 1e-9"),
        (9e-7, r"epsilon \(9e-07\) must be larger"),
    ],
)
def test_an_epsilon_that_no_noise_meets_is_refused(epsilon, words):
    with pytest.raises(PrivacyParameterError, match=words):
        least_lengths_units(epsilon, 1000)


@pytest.mark.parametrize("units", [-1, 0, 2**31, 2**32])
def test_units_that_are_no_noise_of_this_kind_are_refused(units):
    with pytest.raises(PrivacyParameterError, match=f"noise units \\({units}\\) must be above 0 and below"):
        lengths_epsilon(units, 1000)


@pytest.mark.parametrize(("units", "sensitivity"), [(1, 1000), (2, 40), (2**30, 700)])
def test_so_little_noise_that_no_epsilon_covers_it_is_refused_in_few_words(units, sensitivity):
    """Its exact ratio has thousands of digits."""
    with pytest.raises(PrivacyParameterError, match=f"^noise units \\({units}\\) must be more: their ε is above 700$"):
        lengths_epsilon(units, sensitivity)
