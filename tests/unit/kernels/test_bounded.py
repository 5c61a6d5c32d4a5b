"""Bounded integers and binomials are exact: driven by chosen words, and by all words of a small stream."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from synthmap.kernels.bounded import KEEP_BITS, KEEP_UNITS, binomial, uniform_below
from synthmap.kernels.stream import seeded_stream

FALSE_ALARM = 1e-9  # chance that a right sampler fails one of these tests, had the seed not been fixed


def below(words, bound):
    reader = np.zeros(1, np.int64)
    return uniform_below(np.array(words, np.uint64), reader, bound), int(reader[0])


def test_words_that_would_favour_small_residues_are_rejected():
    bound = 10
    reject = 2**64 % bound
    assert below([reject - 1, 12345], bound) == (5, 2)
    assert below([reject, 12345], bound) == (reject % bound, 1)
    assert (2**64 - reject) % bound == 0


@pytest.mark.parametrize("bound", [1, 2, 2**20, 2**62])
def test_powers_of_two_take_the_low_bits(bound):
    assert below([2**64 - 3], bound) == ((2**64 - 3) % bound, 1)


@pytest.mark.parametrize("bound", [3, 2**62 - 1, 2**62 + 1, 2**63 - 1])
def test_the_largest_word_is_in_range(bound):
    value, _ = below([2**64 - 1, 2**64 - 1], bound)
    assert value == (2**64 - 1) % bound


def test_running_out_of_words_is_told_and_stays_told():
    reader = np.zeros(1, np.int64)
    words = np.array([5], np.uint64)
    assert uniform_below(words, reader, 8) == 5
    assert uniform_below(words, reader, 8) == 0
    assert reader[0] < 0
    uniform_below(words, reader, 7)
    assert reader[0] < 0


@pytest.mark.parametrize("keep", [1, 21845, KEEP_UNITS // 2, 3 * KEEP_UNITS // 4, KEEP_UNITS - 1])
@pytest.mark.parametrize("trials", [1, 5, 63, 64, 65, 200])
def test_binomial_frequencies(trials, keep):
    repeats = 20_000
    words = seeded_stream(trials * 70_000 + keep).words(0, repeats * (17 + trials // 8))
    reader = np.zeros(1, np.int64)
    found = np.array([binomial(words, reader, trials, keep, KEEP_BITS) for _ in range(repeats)])
    assert reader[0] > 0
    p = keep / KEEP_UNITS
    edges = np.unique(stats.binom.ppf([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98], trials, p))
    expected = np.diff(np.concatenate([[0.0], stats.binom.cdf(edges, trials, p), [1.0]])) * repeats
    seen = np.bincount(np.searchsorted(edges, found), minlength=edges.size + 1)
    big = expected > 5
    statistic = ((seen[big] - expected[big]) ** 2 / expected[big]).sum()
    assert stats.chi2.sf(statistic, max(1, big.sum() - 1)) > FALSE_ALARM
    assert abs(seen[~big].sum() - expected[~big].sum()) < 30


def test_binomial_is_exact_on_few_bits():
    """With keep = 1/2, 1/4, 3/4 only two digits are looked at: all four patterns of two trials, exactly."""
    for keep, p in [
        (KEEP_UNITS // 2, Fraction(1, 2)),
        (KEEP_UNITS // 4, Fraction(1, 4)),
        (KEEP_UNITS * 3 // 4, Fraction(3, 4)),
    ]:
        law = dict.fromkeys(range(3), Fraction(0))
        for first in range(4):
            for second in range(4):
                reader = np.zeros(1, np.int64)
                # further digits are zeros of keep: an undecided trial is then decided by any bit that is 1
                words = np.array([first, second, *[3] * 20], np.uint64)
                law[binomial(words, reader, 2, keep, KEEP_BITS)] += Fraction(1, 16)
        # a trial undecided after two digits has the value keep itself, which is not below keep
        assert law == {v: comb(2, v) * p**v * (1 - p) ** (2 - v) for v in range(3)}


def test_keeping_all_takes_no_bits():
    reader = np.zeros(1, np.int64)
    assert binomial(np.empty(0, np.uint64), reader, 9, KEEP_UNITS, KEEP_BITS) == 9
    assert reader[0] == 0
