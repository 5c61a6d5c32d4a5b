"""Gaussian noise in fractions: the code's law is the table's, and no neighbour is told apart by more than is stated."""

import itertools
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from synthmap.audit.choices import Choices, rebuilt
from synthmap.audit.pairs import excess
from synthmap.kernels import noise
from synthmap.privacy.gaussian import VARIANCE_UNITS, gaussian_delta, gaussian_tails, gaussian_weights

SMALL = VARIANCE_UNITS * 3 // 10
MIDDLE = 2 * VARIANCE_UNITS


def law_of_counts(truth, units):
    """Return the exact law of what `add_noise` makes of a histogram."""
    homes, choices = np.repeat(np.arange(len(truth)), truth), Choices()
    reach = rebuilt(noise.reach)
    below = {"uniform_below": choices.uniform_below}
    driven = rebuilt(
        noise.add_noise,
        binomial=choices.binomial,
        free_cell=choices.free_cell,
        reach=reach,
        gaussian=rebuilt(noise.gaussian, reach=reach, **below),
        two_sided=rebuilt(noise.two_sided, geometric=choices.geometric, **below),
        geometric=choices.geometric,
        **below,
    )
    tails = np.array(gaussian_tails(units))
    return choices.law(lambda: tuple(driven(homes, len(truth), 0, tails, None, np.zeros(1, np.int64)).tolist()))


def table(units):
    """Return the law of the noise as its weights say."""
    weights = gaussian_weights(units).tolist()
    return {z: Fraction(weights[abs(z)], 2**62) for z in range(1 - len(weights), len(weights))}


def dense_law(truth, units):
    """Return the law of noise on every cell, held between 0 and the headcount."""
    found, n = {(): Fraction(1)}, sum(truth)
    for count in truth:
        longer = {}
        for (y, p), (z, w) in itertools.product(found.items(), table(units).items()):
            held = (*y, min(max(count + z, 0), n))
            longer[held] = longer.get(held, Fraction(0)) + p * w
        found = longer
    return found


@pytest.mark.parametrize("truth", [(2, 0), (0, 1, 0), (1, 1), (0, 3, 0)])
def test_the_sparse_draw_has_the_law_of_the_table_in_every_cell(truth):
    assert law_of_counts(truth, MIDDLE) == dense_law(truth, MIDDLE)


def test_the_table_is_symmetric_whole_and_falls():
    for units in (1, SMALL, MIDDLE, 900 * VARIANCE_UNITS):
        weights, tails = gaussian_weights(units), gaussian_tails(units)
        assert weights[0] + 2 * sum(weights[1:].tolist()) == 2**62
        assert tails.size == weights.size - 1
        assert (np.diff(weights) < 0).all()
        assert not tails.size or weights[-1] >= 2**20


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 3.0])
def test_delta_of_neighbouring_histograms_through_the_code_is_what_is_stated(epsilon):
    """All moves of one worker among three cells; the headcount is so large that holding hardly hides anything."""
    ratio, stated = Fraction(exp(epsilon)), gaussian_delta(SMALL, epsilon)
    tables = [t for t in itertools.product(range(10), repeat=2) if sum(t) == 9]
    laws = {t: law_of_counts(t, SMALL) for t in tables}
    worst = max(
        excess(laws[one], laws[other], ratio) for one in tables for other in tables if abs(one[0] - other[0]) == 1
    )
    assert worst <= stated
    assert float(worst) == pytest.approx(stated, rel=1e-4)


def moved(units, changes):
    """Return the law of noise on as many counts, and that of the same counts after so large changes."""
    one = table(units)
    laws = [{(): Fraction(1)}, {(): Fraction(1)}]
    for change in changes:
        laws = [
            {(*y, z + by): p * w for y, p in law.items() for z, w in one.items()}
            for law, by in zip(laws, (0, change), strict=True)
        ]
    return laws


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
def test_two_jobs_at_two_destinations_together_cost_what_is_stated(epsilon):
    laws = moved(SMALL, (1, -1, 1, -1))
    for one, other in (laws, laws[::-1]):
        exact = excess(one, other, Fraction(exp(epsilon)))
        stated = gaussian_delta(SMALL, epsilon, jobs=2)
        assert exact <= stated
        assert float(exact) == pytest.approx(stated, rel=1e-4)


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_jobs_at_one_destination_cost_most_where_they_move_alike(epsilon):
    """Two and three jobs of one person at one destination: all other changes of up to four counts."""
    for jobs in (2, 3):
        stated = gaussian_delta(SMALL, epsilon, moves=jobs)
        alike = excess(*moved(SMALL, (jobs, -jobs)), Fraction(exp(epsilon)))
        assert alike <= stated
        assert float(alike) == pytest.approx(stated, rel=1e-3)  # ends of the table are added up
        for changes in {2: [(2, -1, -1), (1, 1, -1, -1)], 3: [(3, -2, -1), (3, -1, -1, -1), (2, 1, -2, -1)]}[jobs]:
            assert excess(*moved(SMALL, changes), Fraction(exp(epsilon))) < alike


def test_fewer_jobs_cost_less_at_the_same_epsilon():
    found = [gaussian_delta(MIDDLE, 4.0, jobs) for jobs in (1, 2, 4, 8, 16, 100)]
    assert found == sorted(found)


def test_seven_tenths_of_the_variance_would_be_found():
    stated = gaussian_delta(SMALL, 2.0)
    assert excess(*moved(SMALL * 7 // 10, (1, -1)), Fraction(exp(2.0))) > 1.2 * stated
