"""How far sums of discrete Laplace noise reach: exact for small scales, never too small for any."""

import math

import numpy as np
import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.noise import half_width


def law(scale, terms, reach):
    """Return the probabilities of a sum from −reach to reach, by convolution."""
    q = math.exp(-1.0 / scale)
    z = np.arange(-reach, reach + 1)
    one = (1 - q) / (1 + q) * q ** np.abs(z)
    found = one
    for _ in range(terms - 1):
        found = np.convolve(found, one)
    middle = found.size // 2
    return found, middle


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 20.0])
@pytest.mark.parametrize("terms", [1, 2, 3, 7])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.999])
def test_it_is_the_smallest_width_that_covers(scale, terms, coverage):
    found, middle = law(scale, terms, int(40 * scale) + 10)
    t = half_width(scale, terms, coverage)
    assert found[middle - t : middle + t + 1].sum() >= coverage - 1e-12
    if t:
        assert found[middle - t + 1 : middle + t].sum() < coverage + 2e-9


@pytest.mark.parametrize("terms", [1, 3, 20])
@pytest.mark.parametrize("scale", [1500.0, 80_000.0, 3.3e8])
def test_large_scales_reach_little_farther_than_laplace_and_never_less(scale, terms):
    """One: −b·ln(1 − coverage). Several: as in small, where the law is the same but for its scale."""
    coverage = 0.95
    t = half_width(scale, terms, coverage)
    small = 400.0
    expected = -math.log(1 - coverage) if terms == 1 else half_width(small, terms, coverage) / small
    assert t >= scale * expected * (1 - 2 / small)
    assert t <= scale * (expected * (1 + 2 / small) + 2 * terms / 512)


def test_more_terms_and_more_coverage_reach_farther():
    assert half_width(9.0, 1, 0.9) < half_width(9.0, 2, 0.9) < half_width(9.0, 2, 0.99)


@pytest.mark.parametrize(
    ("scale", "terms", "coverage"),
    [
        (0.0, 1, 0.9),
        (-1.0, 1, 0.9),
        (math.inf, 1, 0.9),
        (math.nan, 1, 0.9),
        (1.0, 0, 0.9),
        (1.0, 1, 0.0),
        (1.0, 1, 1.0),
    ],
)
def test_values_out_of_range_are_refused(scale, terms, coverage):
    with pytest.raises(PrivacyParameterError, match="must be above 0, at least 1, and between 0 and 1"):
        half_width(scale, terms, coverage)
