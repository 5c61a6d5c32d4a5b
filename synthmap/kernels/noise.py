"""Two-sided geometric noise on whole histograms, in integers; empty cells are not visited one by one.

The noise Z of a cell has P(Z = z) = (1 − q)/(1 + q)·q^|z| with q = c/(2^32 − c), so that P(Z ≥ 1) = q/(1 + q) is c/2^32
and every probability is rational. Proof that the sparse draw has the dense law: synthmap/privacy/proofs/histogram.md.
"""

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.kernels.bounded import binomial, uniform_below

NOISE_BITS = 32
NOISE_UNITS = 2**NOISE_BITS


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
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return n_i + Z_i, held between 0 and n, for every cell of one destination's histogram.

    **Guarantee** (adjacency: one entry of `homes` changes): 2·ln(1/q)-DP, pure, tight.

    Parameters
    ----------
    homes : ndarray of int64, shape (n,)
        Confidential: the cell of each worker, ascending.
    cells : int
        Public k.
    units : int
        Public: the noise, c in 1/2^32.
    words, reader
        The random stream, see `kernels.bounded`.

    Returns
    -------
    ndarray of int64, shape (k,)
        Meaningless when `reader` is negative.

    Notes
    -----
    How many empty cells turn positive is binomial(empty cells, c/2^32), where they are is uniform, and by how much is
    one and a geometric number more: that is all that is drawn for them. Counts above the public headcount tell no more
    than the headcount itself, so holding them loses nothing; those below 0 are not told apart.
    """
    noisy = np.zeros(cells, np.int64)
    taken = np.zeros(cells, np.bool_)
    occupied = 0
    first = 0
    while first < homes.size:
        last = first + 1
        while last < homes.size and homes[last] == homes[first]:
            last += 1
        noisy[homes[first]] = _held(last - first + two_sided(words, reader, units, homes.size), homes.size)
        taken[homes[first]] = True
        occupied += 1
        first = last
    for _ in range(binomial(words, reader, cells - occupied, units, NOISE_BITS)):
        if reader[0] < 0:
            break
        cell = free_cell(words, reader, taken)
        taken[cell] = True
        noisy[cell] = _held(1 + geometric(words, reader, units, homes.size), homes.size)
    return noisy
