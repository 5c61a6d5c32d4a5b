"""Calibration of Gaussian noise: the least that is enough, what one job costs, where it wins, and refusals."""

import math

import numpy as np
import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.gaussian import (
    VARIANCE_UNITS,
    gaussian_delta,
    gaussian_tails,
    gaussian_variance,
    minimum_gaussian,
)
from synthmap.privacy.histogram import UNITS, minimum_units


@pytest.mark.parametrize("jobs", [1, 2, 8, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-6), (1.0, 1e-9), (4.0, 1e-5), (1.5, 0.005)])
def test_the_least_noise_that_is_enough_for_all_jobs_together(epsilon, delta, jobs):
    found = minimum_gaussian(epsilon, delta, jobs)
    whole = jobs * epsilon, jobs * delta
    assert gaussian_delta(found.units, whole[0], jobs) <= whole[1]
    assert gaussian_delta(found.units * 255 // 256, whole[0], jobs) > whole[1]
    assert gaussian_delta(found.units, found.epsilon) == found.delta <= delta
    assert found.epsilon == epsilon or gaussian_delta(found.units, found.epsilon * 0.998) > delta
    assert (found.epsilon == epsilon) == (jobs == 1)


def geometric_variance(epsilon):
    ratio = minimum_units(epsilon)[0] / (UNITS - minimum_units(epsilon)[0])
    return 2 * ratio / (1 - ratio) ** 2


def test_with_eight_jobs_it_needs_less_noise_than_geometric_and_with_one_more():
    """The same promise in all, 8·ε and 8·δ; at large ε geometric noise stays better."""
    for epsilon in (0.1, 0.5, 1.0):
        assert gaussian_variance(minimum_gaussian(epsilon, 1e-6, 8).units) < 0.76 * geometric_variance(epsilon)
        assert gaussian_variance(minimum_gaussian(epsilon, 1e-6).units) > 3 * geometric_variance(epsilon)
    assert gaussian_variance(minimum_gaussian(4.0, 1e-6, 8).units) > geometric_variance(4.0)


def test_the_variance_is_that_of_the_continuous_law_or_less():
    for variance in (0.2, 1.0, 50.0):
        found = gaussian_variance(round(variance * VARIANCE_UNITS))
        assert found <= variance * (1 + 1e-9)
        if variance >= 1:
            assert found == pytest.approx(variance, rel=1e-4)


def test_large_noise_is_near_the_continuous_law():
    """δ of the continuous Gaussian mechanism in closed form (Balle and Wang 2018), sensitivity √2."""
    units, epsilon = 400 * VARIANCE_UNITS, 0.2
    a, b = math.sqrt(2) / 40, epsilon * 20 / math.sqrt(2)
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    wanted = normal(a - b) - math.exp(epsilon) * normal(-a - b)
    assert gaussian_delta(units, epsilon) == pytest.approx(wanted, rel=1e-2)


def test_without_noise_nothing_is_private():
    assert gaussian_tails(1).size == 0
    assert gaussian_delta(1, 5.0) == 1.0
    assert gaussian_delta(VARIANCE_UNITS, 5.0, moves=1000) == 1.0


def test_the_table_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        gaussian_tails(VARIANCE_UNITS)[0] = np.int64(1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (0.0, 1e-6, "epsilon (0) must be above 0"),
        (1e-4, 1e-6, "epsilon (0.0001) must be larger"),
        (1.0, 0.0, "delta (0) must be at least 1e-11"),
        (1.0, 1.0, "delta (1) must be at least 1e-11 and below 1"),
    ],
)
def test_refusals(epsilon, delta, words):
    with pytest.raises(PrivacyParameterError, match=words.replace("(", r"\(").replace(")", r"\)")):
        minimum_gaussian(epsilon, delta)


def test_units_out_of_range_are_refused():
    for units in (0, 2**34 + 1):
        with pytest.raises(PrivacyParameterError, match="gaussian units"):
            gaussian_tails(units)
