"""Noise of sums: bounds of its digits against exact fractions, its law, and that drawing it does not tell it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from synthmap.audit.choices import rebuilt
from synthmap.kernels.geometric import DIGITS, digit_bounds, first_bits, noise_of_sum
from synthmap.kernels.noise import NOISE_UNITS
from synthmap.kernels.stream import seeded_stream
from synthmap.privacy.lengths import least_lengths_units

FALSE_ALARM = 1e-9
LEAST = least_lengths_units(0.001, 1000)  # what large releases have
EVERY = [1, 2**26, 2**30, 2**31 - 2**27, LEAST, 2**31 - 1]


def ratio(units):
    return Fraction(units, NOISE_UNITS - units)


@pytest.mark.parametrize("units", EVERY)
@pytest.mark.parametrize("bits", [1, 5, 64, 256])
def test_bounds_hold_the_exact_probability_of_a_digit(units, bits):
    for j, (low, high) in enumerate(zip(*digit_bounds(units, bits), strict=True)):
        if j < 11:  # an exact power has 2^16 bits by then
            power = ratio(units) ** 2**j
            assert low <= 2**bits * power / (1 + power) <= high


@pytest.mark.parametrize("units", EVERY)
def test_bounds_hold_every_digit_and_are_next_to_each_other(units):
    """By logarithms to 150 places; more than 256 bits are needed less than once in 2^200 noises."""
    least, most = digit_bounds(units, 256)
    assert len(least) == len(most) == DIGITS == 62
    with localcontext(prec=150, Emin=-(10**17)):
        logarithm = (Decimal(units) / (NOISE_UNITS - units)).ln()
        for j, (low, high) in enumerate(zip(least, most, strict=True)):
            power = (logarithm * 2**j).exp()
            assert low <= 2**256 * power / (1 + power) <= high
    assert 2 * (sum(most) - sum(least)) < 2**56


def test_what_is_left_out_is_as_unlikely_as_the_proof_says():
    assert 2**DIGITS * math.log((NOISE_UNITS - LEAST) / LEAST) > 10**12


def noise(units, number, seed):
    return np.array([noise_of_sum(units, seeded_stream(seed), one) for one in range(number)])


def agrees(found, q):
    """Whether draws agree with two-sided geometric noise of ratio q; outcomes are joined until 20 are expected."""
    ends = np.arange(1, found.size // 40)
    above = np.ceil(np.log(ends * 20 / found.size * (1 + q)) / np.log(q)).astype(np.int64)  # P(Z ≥ z) = q^z/(1 + q)
    above = np.unique(np.maximum(above, 1))
    tail = q ** above.astype(float) / (1 + q)
    middle = 1 - 2 * tail[0]
    steps = tail - np.append(tail[1:], 0)
    wanted = np.concatenate([steps[::-1], [middle], steps]) * found.size
    places = np.sign(found) * np.searchsorted(above, np.abs(found), side="right")
    seen = np.bincount(places + above.size, minlength=wanted.size)
    return stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("units", [2**26, 2**30, 2**31 - 2**27, LEAST, 2**31 - 1])
def test_the_noise_of_a_sum_has_the_law_that_is_charged(units):
    drawn = noise(units, 10_000, units)
    q = float(ratio(units))
    assert agrees(drawn, q)
    assert not agrees(drawn, q**1.5)  # what would cost half as much again
    assert not agrees(np.abs(drawn), q)


def test_the_least_noise_is_almost_always_none():
    assert not noise(1, 1000, 4).any()


def test_sums_have_noise_of_their_own():
    drawn = noise(2**31 - 2**27, 5_000, 2).reshape(-1, 2)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.13
    assert len(np.unique(drawn)) > 50


class Words:
    """Words for any stream, and which were asked for."""

    def __init__(self, words):
        self.given, self.asked = words, []

    def words(self, number, count):
        self.asked.append((number, count))
        return self.given(number, count)


def test_as_much_is_read_and_compared_whatever_the_noise():
    """Else how long a task takes would tell it."""
    seen, compared = [], []

    class Counted(int):
        def __lt__(self, other):
            compared.append(other)
            return int(self) < other

    counting = rebuilt(noise_of_sum, first_bits=lambda *of: [Counted(one) for one in first_bits(*of)])
    for units in (1, 2**26, 2**30, LEAST, 2**31 - 1):
        stream, order = (
            Words(seeded_stream(units).words),
            [bound for each in digit_bounds(units, 256) for bound in 2 * each],
        )
        for number in range(100):
            seen.append(counting(units, stream, number))
            assert compared == order
            compared.clear()
        assert stream.asked == [(number, 2 * DIGITS * 4) for number in range(100)]
    assert min(seen) < -(10**6) < 0 in seen
    assert max(seen) > 10**6


def test_fractions_have_words_of_their_own_and_more_bits_go_on_from_fewer():
    """Else what was looked at would choose which noise is kept."""
    stream = seeded_stream(5)
    words = stream.words(9, 2 * DIGITS * 3).tolist()
    assert len(set(words)) == 2 * DIGITS * 3
    found = first_bits(stream, 9, 192)
    assert found == [words[i] << 128 | words[i + 2 * DIGITS] << 64 | words[i + 4 * DIGITS] for i in range(2 * DIGITS)]
    assert first_bits(stream, 9, 64) == [fraction >> 128 for fraction in found]
    units = 2**31 - 2**10
    drawn = [[noise_of_sum(units, stream, number, bits) for number in range(200)] for bits in (64, 256, 1024)]
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("j", [0, 7, 25])
@pytest.mark.parametrize("above", [False, True])
def test_a_digit_that_its_bits_leave_open_is_decided_by_more(j, above, negative):
    """All fractions are next to one, except that of one digit: it lies between the bounds, and then just beside."""
    least, most = (bounds[j] for bounds in digit_bounds(LEAST, 512))
    fraction = most if above else least - 1
    low, high = (bounds[j] for bounds in digit_bounds(LEAST, 256))
    assert low <= fraction >> 256 < high
    all_bits = np.full((8, 2 * DIGITS), 2**64 - 1, np.uint64)
    all_bits[:, j + DIGITS * negative] = [fraction >> 64 * (7 - one) & (2**64 - 1) for one in range(8)]
    stream = Words(lambda number, count: all_bits.ravel()[:count])
    assert noise_of_sum(LEAST, stream, 7) == (0 if above else -(2**j) if negative else 2**j)
    assert stream.asked == [(7, 2 * DIGITS * 4), (7, 2 * DIGITS * 8)]
