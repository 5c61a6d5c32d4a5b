"""The mean absolute value of a difference of counts."""

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import norm, poisson

from synthmap.analysis.absolute import mean_absolute


def test_it_is_that_of_two_poisson_counts_by_another_bessel_function():
    for variance in np.concatenate([np.geomspace(1e-6, 1e6, 400), [0.01, 0.0099999, 3.75, 3.7499999]]):
        exact = variance * (ive(0, variance) + ive(1, variance))
        assert mean_absolute(0.0, variance) == pytest.approx(exact, rel=1e-6)


def test_two_poisson_counts_by_their_sum():
    count = np.arange(60)
    for half in (0.05, 0.7, 6.0):
        chance = poisson.pmf(count, half)
        exact = chance @ np.abs(count[:, None] - count) @ chance
        assert mean_absolute(0.0, 2 * half) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("mean", [0.001, 3.0, -10.0, 500.0])
def test_large_variances_are_nearly_normal(mean):
    folded = 20 * np.sqrt(2 / np.pi) * np.exp(-(mean**2) / 800) + mean * (1 - 2 * norm.cdf(-mean / 20))
    assert mean_absolute(mean, 400.0) == pytest.approx(folded, rel=1e-3)


def test_one_worker_here_or_there():
    """D is 1 with the chance 0.03, −1 with 0.01, else 0: E|D| = 0.04."""
    assert mean_absolute(0.02, 0.04 - 0.02**2) == pytest.approx(0.04, rel=0.03)
    assert mean_absolute(-0.5, 0.0) == 0.5
