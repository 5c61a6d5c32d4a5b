"""The noise of the histogram: the least that meets ε, exact ratios, and refusals."""

import math
from fractions import Fraction

import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import Epsilon, ratio_minus_one
from synthmap.privacy.histogram import UNITS, histogram_epsilon, level_ratio, minimum_units


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 4.0, 8.6, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.9])
def test_the_least_units_that_meet_epsilon(epsilon, share):
    cells, groups = minimum_units(epsilon, share)
    allowed = 1 + Fraction(ratio_minus_one(epsilon))
    assert level_ratio(cells) * level_ratio(groups) <= allowed
    assert level_ratio(cells - 1) * level_ratio(groups) > allowed
    assert histogram_epsilon(cells, groups) <= epsilon
    assert (groups > 0) == (share > 0)
    if groups:
        assert 2 * math.log((UNITS - groups) / groups) == pytest.approx(share * epsilon, rel=1e-2)


def test_a_chosen_ratio_is_met_exactly():
    assert minimum_units(Epsilon.from_ratio(9)) == (2**30, 0)
    assert histogram_epsilon(2**30).ratio == 9
    assert histogram_epsilon(2**30, 2**30).ratio == 81


def test_half_the_scale_costs_twice_the_epsilon():
    """A mechanism with noise of scale 1/ε (sensitivity 1 where it is 2) is told by its own units."""
    cells, _ = minimum_units(2.0)
    assert histogram_epsilon(cells) == pytest.approx(2.0)
    assert histogram_epsilon(minimum_units(4.0)[0]) > 3.9


def test_a_large_epsilon_still_has_some_noise():
    assert minimum_units(700.0) == (1, 0)
    assert histogram_epsilon(1) < 45


@pytest.mark.parametrize(
    ("epsilon", "share", "words"),
    [
        (0.0, 0.0, "epsilon (0) must be above 0"),
        (1e-9, 0.0, "epsilon (1e-09) must be larger"),
        (1.0, 1.0, "group share (1) must be"),
        (1.0, -0.1, "group share (-0.1) must be"),
    ],
)
def test_refusals(epsilon, share, words):
    with pytest.raises(PrivacyParameterError, match=words.replace("(", r"\(").replace(")", r"\)")):
        minimum_units(epsilon, share)


def test_units_beyond_half_are_no_noise_that_bounds_anything():
    for units in (-1, 2**31):
        with pytest.raises(PrivacyParameterError, match="noise units"):
            level_ratio(units)
