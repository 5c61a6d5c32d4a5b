"""Noise on whole histograms, in integers: two-sided geometric or Gaussian; empty cells are not visited one by one.

The noise Z of a cell has P(Z = z) = (1 − q)/(1 + q)·q^|z| with q = c/(2^32 − c), so that P(Z ≥ 1) = q/(1 + q) is c/2^32
and every probability is rational. Gaussian noise is a public table of whole weights in 1/2^62 (`Law`). Proof that the
sparse draw has the dense law: synthmap/privacy/proofs/histogram.md and gaussian.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.kernels.bounded import binomial, uniform_below

NOISE_BITS = 32
NOISE_UNITS = 2**NOISE_BITS
TABLE_BITS = 62
TABLE_UNITS = 2**TABLE_BITS


class Law(NamedTuple):
    """Gaussian noise as a table, see `synthmap.privacy.gaussian`; an empty one stands for geometric noise.

    Attributes
    ----------
    tails : ndarray of int64, shape (T,)
        Weights of Z > 0, Z > 1, … in 1/2^62; the law is symmetric.
    fades : ndarray of float64, shape (3, T + 1)
        How much less likely a noisy count is when the true one is d + 1 instead of d away: where it was not held, where
        it was held at 0 or the headcount, and for true counts above the headcount (impossible).
    """

    tails: NDArray[np.int64]
    fades: NDArray[np.float64]


GEOMETRIC = Law(np.empty(0, np.int64), np.empty((3, 0)))


def law_of(tails: NDArray[np.int64]) -> Law:
    """Return the law of a table of tails."""
    ends = np.append(tails, 0)
    weights = np.append(TABLE_UNITS - 2 * ends[0], ends[:-1] - ends[1:]).astype(np.float64)
    beyond = np.append(TABLE_UNITS - ends[0], tails).astype(np.float64)
    fades = np.zeros((3, ends.size))
    fades[0, :-1], fades[1, :-1] = weights[1:] / weights[:-1], beyond[1:] / beyond[:-1]
    return Law(np.array(tails), fades)


@compiled
def geometric(words: NDArray[np.uint64], reader: NDArray[np.int64], units: int, most: int) -> np.int64:
    """Return min(G, most), P(G = g) = (1 − q)·q^g, q = units/(2^32 − units): nobody looks beyond `most`."""
    found = np.int64(0)
    while found < most and reader[0] >= 0 and uniform_below(words, reader, NOISE_UNITS - units) < units:
        found += 1
    return found


@compiled
def two_sided(words: NDArray[np.uint64], reader: NDArray[np.int64], units: int, most: int) -> np.int64:
    """Return Z with P(Z = z) = (1 − q)/(1 + q)·q^|z|, q = units/(2^32 − units); beyond `most` it stops."""
    unit = uniform_below(words, reader, NOISE_UNITS)
    if unit < units:
        return np.int64(1 + geometric(words, reader, units, most))
    if unit < 2 * units:
        return np.int64(-1 - geometric(words, reader, units, most))
    return np.int64(0)


@compiled
def reach(unit: np.int64, tails: NDArray[np.int64], most: int) -> np.int64:
    """Return the Z ≥ 1 of a uniform `unit` below `tails[0]`, at most `most`: nobody looks beyond."""
    found = 1
    while found < most and found < tails.size and unit < tails[found]:
        found += 1
    return np.int64(found)


@compiled
def gaussian(words: NDArray[np.uint64], reader: NDArray[np.int64], tails: NDArray[np.int64], most: int) -> np.int64:
    """Return Z of the law that has these `tails`, held between −`most` and `most`."""
    unit = uniform_below(words, reader, TABLE_UNITS)
    if tails.size == 0:
        return np.int64(0)
    if unit < tails[0]:
        return reach(unit, tails, most)
    unit = unit - tails[0]
    if unit < tails[0]:
        return np.int64(-reach(unit, tails, most))
    return np.int64(0)


@compiled
def free_cell(words: NDArray[np.uint64], reader: NDArray[np.int64], taken: NDArray[np.bool_]) -> np.int64:
    """Return a uniform cell that is not `taken`; there must be one."""
    cell = uniform_below(words, reader, taken.size)
    while taken[cell] and reader[0] >= 0:
        cell = uniform_below(words, reader, taken.size)
    return np.int64(cell)


@compiled
def _held(count: np.int64, headcount: int) -> int:
    """Return `count` held between 0 and the headcount."""
    return int(max(0, min(int(count), headcount)))


@compiled
def add_noise(
    homes: NDArray[np.int64],
    cells: int,
    units: int,
    tails: NDArray[np.int64],
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return n_i + Z_i, held between 0 and n, for every cell of one destination's histogram.

    **Guarantee** (adjacency: one entry of `homes` changes): 2·ln(1/q)-DP, pure, tight; with Gaussian noise
    `gaussian_delta`.

    Parameters
    ----------
    homes : ndarray of int64, shape (n,)
        Confidential: the cell of each worker, ascending.
    cells : int
        Public k.
    units : int
        Public: geometric noise, c in 1/2^32.
    tails : ndarray of int64
        Public: Gaussian noise instead, where not empty; see `Law`.
    words, reader
        The random stream, see `kernels.bounded`.

    Returns
    -------
    ndarray of int64, shape (k,)
        Meaningless when `reader` is negative.

    Notes
    -----
    How many empty cells turn positive is binomial(empty cells, P(Z ≥ 1)), where they are is uniform, and by how much is
    Z given Z ≥ 1: that is all that is drawn for them. With geometric noise counts above the public headcount tell no
    more than the headcount itself, so holding them loses nothing; those below 0 are not told apart.
    """
    noisy = np.zeros(cells, np.int64)
    taken = np.zeros(cells, np.bool_)
    occupied = 0
    first = 0
    while first < homes.size:
        last = first + 1
        while last < homes.size and homes[last] == homes[first]:
            last += 1
        if tails.size:
            noise = gaussian(words, reader, tails, homes.size)
        else:
            noise = two_sided(words, reader, units, homes.size)
        noisy[homes[first]] = _held(last - first + noise, homes.size)
        taken[homes[first]] = True
        occupied += 1
        first = last
    if tails.size:
        positive = binomial(words, reader, cells - occupied, tails[0], TABLE_BITS)
    else:
        positive = binomial(words, reader, cells - occupied, units, NOISE_BITS)
    for _ in range(positive):
        if reader[0] < 0:
            break
        cell = free_cell(words, reader, taken)
        taken[cell] = True
        if tails.size:
            noise = reach(uniform_below(words, reader, tails[0]), tails, homes.size)
        else:
            noise = np.int64(1 + geometric(words, reader, units, homes.size))
        noisy[cell] = _held(noise, homes.size)
    return noisy
