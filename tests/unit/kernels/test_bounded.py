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


def exact(word, bound):
    """Return what a word stands for by Lemire's rule, in unbounded integers; None where it is rejected."""
    value, rest = divmod(word * bound, 2**64)
    return None if rest < 2**64 % bound else value


def edge_words(value, bound):
    """Return the words around the first and the last that stand for a value, or would."""
    first, after = -(-value * 2**64 // bound), -(-(value + 1) * 2**64 // bound)
    return [word for end in (first, after) for word in range(end - 3, end + 3) if 0 <= word < 2**64]


BOUNDS = [1, 2, 3, 10, 2**20, 2**32 - 1, 2**32 + 1, 10**12 + 39, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1]


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_word_stands_for_what_the_rule_says_and_rejected_ones_are_passed_over(bound):
    following = next(word for word in (12345, 54321, 2**63 + 1) if exact(word, bound) is not None)
    rejected = 0
    for value in {max(0, min(bound - 1, one)) for one in (0, 1, bound // 3, bound // 2, bound - 2, bound - 1)}:
        for word in edge_words(value, bound):
            found, read = below([word, following], bound)
            expected = exact(word, bound)
            rejected += expected is None
            assert (found, read) == ((exact(following, bound), 2) if expected is None else (expected, 1))
    assert (rejected > 0) == (2**64 % bound > 0)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 100, 127, 128])
def test_the_rule_gives_every_value_as_many_words(bound):
    """All words of 8 bits, by the same rule."""
    kept = [word * bound // 256 for word in range(256) if word * bound % 256 >= 256 % bound]
    assert np.bincount(kept, minlength=bound).tolist() == [256 // bound] * bound


def test_running_out_of_words_is_told_and_stays_told():
    reader = np.zeros(1, np.int64)
    words = np.array([5 << 61], np.uint64)
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
