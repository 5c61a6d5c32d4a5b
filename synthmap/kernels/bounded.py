"""Exact random integers from a stream of uniform 64-bit words: no float anywhere.

Results are np.int64 on purpose: compiled, ``int`` of an unsigned word stays unsigned, and comparing that with a signed
integer goes through floats.

A reader is an int64 array of one element, the position of the next word. When the words run out it turns
negative and every draw returns 0; the caller then throws the result away and calls again with more words.
"""

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled

KEEP_BITS = 16
KEEP_UNITS = 2**KEEP_BITS  # keep probabilities are multiples of 1/KEEP_UNITS


@compiled
def next_word(words: NDArray[np.uint64], reader: NDArray[np.int64]) -> np.uint64:
    """Return the next word, or 0 with `reader` negative when none is left."""
    at = reader[0]
    if at < 0 or at >= words.size:
        reader[0] = -1
        return np.uint64(0)
    reader[0] = at + 1
    return np.uint64(words[at])


@compiled
def _high_word(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a·b, from products of halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    upper, lower = a_high * b_low, a_low * b_high
    carried = ((a_low * b_low) >> half) + (upper & low) + (lower & low)
    return np.uint64(a_high * b_high + (upper >> half) + (lower >> half) + (carried >> half))


@compiled
def uniform_below(words: NDArray[np.uint64], reader: NDArray[np.int64], bound: int) -> np.int64:
    """Return a uniform integer in [0, bound), 1 ≤ bound < 2^63, by rejection.

    Lemire (ACM TOMACS 29, 2019): the upper word of word × bound, unless the lower one is below 2^64 mod bound. That
    division is needed where the lower word is below the bound only. Proof: proofs/urn.md.
    """
    wide = np.uint64(bound)
    at = reader[0]
    while True:  # reads words itself: a call for each costs several times as much as all else here
        if at < 0 or at >= words.size:
            reader[0] = -1
            return np.int64(0)
        word = words[at]
        at += 1
        lower = np.uint64(word * wide)
        if lower >= wide or lower >= (np.uint64(0) - wide) % wide:
            reader[0] = at
            return np.int64(_high_word(word, wide))


@compiled
def _bit_count(word: np.uint64) -> np.int64:
    """Return the number of ones in `word`."""
    m1 = np.uint64(0x5555555555555555)
    m2 = np.uint64(0x3333333333333333)
    m4 = np.uint64(0x0F0F0F0F0F0F0F0F)
    word = word - ((word >> np.uint64(1)) & m1)
    word = (word & m2) + ((word >> np.uint64(2)) & m2)
    word = (word + (word >> np.uint64(4))) & m4
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _fair_binomial(words: NDArray[np.uint64], reader: NDArray[np.int64], trials: int | np.int64) -> np.int64:
    """Return a Binomial(trials, 1/2) variate: the ones among as many random bits."""
    count = np.int64(0)
    left = trials
    while left > 0 and reader[0] >= 0:
        word = next_word(words, reader)
        if left < 64:
            word &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        count += _bit_count(word)
        left -= 64
    return count


@compiled
def binomial(
    words: NDArray[np.uint64], reader: NDArray[np.int64], trials: int | np.int64, units: int, bits: int
) -> np.int64:
    """Return an exact Binomial(trials, units/2^bits) variate.

    Each trial compares a uniform binary fraction with units/2^bits digit by digit; all trials that are still equal
    are advanced together, which takes two random bits a trial on average.
    """
    if units >> bits:
        return np.int64(trials)
    successes = np.int64(0)
    equal = np.int64(trials)
    for digit in range(bits - 1, -1, -1):
        if equal == 0:
            break
        ones = _fair_binomial(words, reader, equal)
        if (units >> digit) & 1:
            successes += equal - ones
            equal = ones
        else:
            equal -= ones
    return successes
