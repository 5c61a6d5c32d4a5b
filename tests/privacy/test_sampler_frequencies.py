"""The compiled sampler with its real stream against the exact law, and samplers that are broken on purpose.

Each test compares frequencies of whole outcomes by a chi-square at a false-alarm rate of 1e-6; seeds are
fixed, so a right sampler passes always.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from synthmap.kernels import urn
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.stream import seeded_stream

FALSE_ALARM = 1e-6
REPEATS = 40_000
COUNTS = (2, 1, 0)
ALPHA = Fraction(3, 4)


def draws(m, *, keep=KEEP_UNITS, alpha=ALPHA, counts=COUNTS, seed=1, stream_of=lambda i: i):
    """Return REPEATS draws as histograms, one stream each."""
    k = len(counts)
    homes = np.repeat(np.arange(k), counts)
    stream = seeded_stream(seed)
    empty, start, keeps = np.empty(0, np.int64), np.array([0, k]), np.array([keep])
    found = np.empty((REPEATS, k), np.int64)
    for i in range(REPEATS):
        reader = np.zeros(1, np.int64)
        words = stream.words(stream_of(i), 64)
        cells = urn.draw(homes, m, k, alpha.numerator, alpha.denominator, empty, start, keeps, words, reader)
        assert reader[0] > 0
        found[i] = np.bincount(cells, minlength=k)
    return found


def p_value(world, found, counts=COUNTS):
    """Return the chi-square p-value of histograms against the exact law."""
    expected = np.array([float(world.probability(counts, x)) for x in world.outputs]) * len(found)
    number = {x: i for i, x in enumerate(world.outputs)}
    seen = np.bincount([number[tuple(x)] for x in found.tolist()], minlength=len(number))
    assert (expected > 20).all()
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.parametrize("keep", [KEEP_UNITS, KEEP_UNITS // 2, KEEP_UNITS // 5])
def test_frequencies_are_those_of_the_exact_law(small_worlds, keep):
    world = small_worlds.World(3, 3, 3, ALPHA, Fraction(keep, KEEP_UNITS))
    assert p_value(world, draws(3, keep=keep)) > FALSE_ALARM


def test_destinations_are_independent():
    found = draws(1)[:, 0]
    table = np.zeros((2, 2))
    np.add.at(table, (found[::2], found[1::2]), 1)
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_one_stream_used_twice_is_caught():
    found = draws(1, stream_of=lambda i: i // 2)[:, 0]
    table = np.zeros((2, 2))
    np.add.at(table, (found[::2], found[1::2]), 1)
    assert stats.chi2_contingency(table).pvalue < FALSE_ALARM


def test_too_small_alpha_is_caught(small_worlds):
    world = small_worlds.World(3, 3, 3, ALPHA)
    assert p_value(world, draws(3, alpha=ALPHA * Fraction(7, 10))) < FALSE_ALARM


def test_duplicated_draws_are_caught(small_worlds):
    world = small_worlds.World(3, 3, 4, ALPHA)
    assert p_value(world, 2 * draws(2)) < FALSE_ALARM


def test_a_wrong_keep_probability_is_caught(small_worlds):
    world = small_worlds.World(3, 3, 3, ALPHA, Fraction(1, 2))
    assert p_value(world, draws(3, keep=KEEP_UNITS * 7 // 10)) < FALSE_ALARM


def test_a_draw_without_replacement_is_caught(small_worlds):
    """A multinomial from the posterior mean (no Pólya reinforcement) is not the Dirichlet-multinomial."""
    world = small_worlds.World(3, 3, 3, ALPHA)
    mean = (np.array(COUNTS) + float(ALPHA)) / (3 + 3 * float(ALPHA))
    found = np.random.default_rng(1).multinomial(3, mean, size=REPEATS)
    assert p_value(world, found) < FALSE_ALARM
