"""The guarantee of a Dirichlet-multinomial draw with given noise. Proof: proofs/certificate.md.

Both rules look at one cell at a time: v confidential workers, X synthetic ones, X a beta-binomial. The
numbers of *other* cells that were kept, when cells are dropped, is averaged over (`KeptCells`).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.privacy.dropping import dropping_factors
from synthmap.privacy.tails import tail_expectation, threshold

EXACT_KNAPSACK = 64  # headcounts up to this are maximised over all histograms, larger ones by the dual
_BLOCKS = 20_000


class KeptCells(NamedTuple):
    """A distribution below that of the number of other kept cells, in blocks: (`number`, `probability`)."""

    number: NDArray[np.float64]
    probability: NDArray[np.float64]


def kept_cells(cells: int, keep: float) -> KeptCells:
    """Return a distribution that is stochastically below Binomial(cells − 1, keep), on at most 24 values.

    Fewer kept cells mean less noise, so every bound computed with it is on the safe side. Up to 24 cells
    it is the binomial itself.
    """
    others = cells - 1
    if keep >= 1.0 or others == 0:
        return KeptCells(np.array([float(others)]), np.array([1.0]))
    from scipy.stats import binom  # takes longer to load than a small release to make, and few are made with dropping

    if others < 24:
        number = np.arange(others + 1, dtype=np.float64)
        return KeptCells(number, binom.pmf(number, others, keep) * (1 + 1e-12))
    spread = np.array([-12, -9, -7.5, -6.5, -6, -5.5, -5, -4.5, -4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5])
    edges = others * keep + np.append(spread, [0.0, 0.5, 1, 2]) * math.sqrt(others * keep * (1 - keep))
    edges = np.unique(np.clip(np.floor(edges), 0, others))
    number = np.append(0.0, edges).astype(np.float64)
    below = np.append(0.0, binom.cdf(edges - 1, others, keep))
    probability = np.diff(np.append(below, 1.0))
    return KeptCells(number, probability * (1 + 1e-9) + 1e-300)


@compiled
def _cell(
    v: float,
    v_law: float,
    headcount: int,
    synthetic_size: int,
    alpha: float,
    excess: tuple[float, float, float],
    number: NDArray[np.float64],
    probability: NDArray[np.float64],
    adp: bool,
    cap: float,
) -> float:
    """Return an upper bound for every cell whose worker count lies between `v` and `v_law`.

    The threshold is that of `v`, the law of X that of `v_law`: X grows with the count. `excess` is R/factor − 1
    for v = 1, 1 < v < n, v = n.
    """
    n = float(headcount)
    gain = excess[2] if v >= n else (excess[0] if v == 1.0 else excess[1])
    t = math.inf
    if v >= 1.0:
        t = threshold(gain, v - 1.0, alpha)
    if not adp and v < n:  # the same cell seen from the neighbour that has one worker more in it
        after = excess[2] if v + 1.0 >= n else (excess[0] if v == 0.0 else excess[1])
        t = min(t, threshold(after, v, alpha))
    if t >= synthetic_size:
        return 0.0
    ratio = 1.0 + gain if adp else 0.0
    total = 0.0
    for i in range(number.size):
        total += probability[i] * tail_expectation(
            t,
            synthetic_size,
            v_law + alpha,
            n - v_law + alpha * number[i],
            ratio,
            v - 1.0 + alpha,
            cap / probability[i] if probability[i] > cap else 1.0,
        )
        if total > cap:
            return 1.0
    return total


@compiled
def _blocks(
    headcount: int,
    synthetic_size: int,
    alpha: float,
    excess: tuple[float, float, float],
    number: NDArray[np.float64],
    probability: NDArray[np.float64],
    adp: bool,
    cap: float,
) -> tuple[int, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return (blocks, first v, last v, bound): bounds for all worker counts from 1 to n that matter.

    Counts are grouped in blocks that grow where the bound is negligible. A bound of 1 ends the search.
    """
    first = np.empty(_BLOCKS)
    last = np.empty(_BLOCKS)
    bound = np.empty(_BLOCKS)
    n = float(headcount)
    count = 0
    v = 1.0
    width = 1.0
    while v <= n:
        top = min(v + width - 1.0, n - 2.0) if v < n - 1.0 else v
        value = _cell(v, top, headcount, synthetic_size, alpha, excess, number, probability, adp, cap)
        negligible = 1e-6 * cap * (1.0 if adp else v / n)
        if top > v and value > negligible and top - v > v / 128.0:
            width = max(1.0, math.floor((top - v + 1.0) / 2.0))
            continue
        first[count] = v
        last[count] = top
        bound[count] = value
        count += 1
        if value >= 1.0 or count == _BLOCKS - 1:
            break
        if value == 0.0 and v > 1.0 and v < n - 1.0:
            # thresholds grow with v between 2 and n − 2: nothing can fail until v = n − 1
            v = n - 1.0
            continue
        v = top + 1.0
        width = width * 2.0 if value <= negligible else max(1.0, math.floor(v / 256.0))
    if v < n and (count == 0 or bound[count - 1] < 1.0) and count == _BLOCKS - 1:
        first[count], last[count], bound[count] = v, n, 1.0
        count += 1
    return count, first, last, bound


@compiled
def _knapsack(headcount: int, cells: int, empty: float, bound: NDArray[np.float64]) -> float:
    """Return max over histograms of Σ T(n_i), exactly; bound[v] = T(v) for v ≥ 1, `empty` = T(0)."""
    n = headcount
    parts = min(n, cells)
    best = np.full(n + 1, -math.inf)
    best[0] = 0.0
    result = -math.inf
    for _ in range(parts):
        following = np.full(n + 1, -math.inf)
        for used in range(n):
            if best[used] > -math.inf:
                for v in range(1, n - used + 1):
                    value = best[used] + bound[v] - empty
                    following[used + v] = max(following[used + v], value)
        best = following
        result = max(result, best[n])
    return float(cells * empty + result)


@compiled
def _dual(
    headcount: int,
    cells: int,
    empty: float,
    count: int,
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    bound: NDArray[np.float64],
) -> float:
    """Return cells × the concave majorant of T at n/k: the dual of the knapsack, never below it."""
    x = np.empty(2 * count + 2)
    y = np.empty(2 * count + 2)
    size = 0
    at = headcount / cells
    for i in range(-1, 2 * count + 1):
        if i < 0:
            px, py = 0.0, empty
        elif i == 2 * count:
            px, py = float(headcount), 0.0
        else:
            px, py = (first[i // 2] if i % 2 == 0 else last[i // 2]), bound[i // 2]
        if size and px == x[size - 1]:
            if py <= y[size - 1]:
                continue
            size -= 1
        while size >= 2 and (y[size - 1] - y[size - 2]) * (px - x[size - 2]) <= (py - y[size - 2]) * (
            x[size - 1] - x[size - 2]
        ):
            size -= 1
        x[size] = px
        y[size] = py
        size += 1
    value = 0.0
    for i in range(size - 1):
        if x[i] <= at <= x[i + 1]:
            share = (at - x[i]) / (x[i + 1] - x[i])
            value = max(value, y[i] + share * (y[i + 1] - y[i]))
    return float(cells * value)


@compiled
def certified(
    headcount: int,
    synthetic_size: int,
    cells: int,
    alpha: float,
    ratio_minus_one: float,
    keep: float,
    number: NDArray[np.float64],
    probability: NDArray[np.float64],
    adp: bool,
    delta: float,
    keep_most: float = 0.0,
) -> float:
    """Return an upper bound on the δ of the mechanism, or 1 as soon as it is known to pass `delta`.

    Parameters
    ----------
    headcount, synthetic_size, cells : int
        n ≥ 1, m ≥ 1, k ≥ 1.
    alpha : float
        Pseudo-count of each cell, in workers.
    ratio_minus_one : float
        At most exp(ε) − 1, ε in total.
    keep, keep_most : float
        Smallest and largest keep probability of an empty cell (`keep_most` defaults to `keep`).
    number, probability : ndarray of float64
        Of `kept_cells(cells, keep)`.
    adp : bool
        Bound the δ of (ε, δ)-DP; otherwise that of probabilistic DP.
    delta : float
        The δ that is asked for.
    """
    if cells == 1:
        return 0.0
    factor = dropping_factors(headcount, synthetic_size, cells, alpha, keep)
    down = 1.0 if keep >= 1.0 else 1.0 - 1e-14
    excess = (
        ratio_minus_one if factor[0] == 1.0 else (1.0 + ratio_minus_one) / factor[0] * down - 1.0,
        ratio_minus_one if factor[1] == 1.0 else (1.0 + ratio_minus_one) / factor[1] * down - 1.0,
        ratio_minus_one if factor[2] == 1.0 else (1.0 + ratio_minus_one) / factor[2] * down - 1.0,
    )
    if excess[2] <= 0.0 or (headcount > 1 and excess[0] <= 0.0) or (headcount > 2 and excess[1] <= 0.0):
        return 1.0
    empty = 0.0
    if not adp:
        # two histograms that settle most refusals at once: as many lone workers as fit, the rest empty
        lone = _cell(1.0, 1.0, headcount, synthetic_size, alpha, excess, number, probability, adp, delta)
        if lone > delta:
            return 1.0
        empty = max(keep, keep_most) * _cell(
            0.0, 0.0, headcount, synthetic_size, alpha, excess, number, probability, adp, delta
        )
        spread = min(headcount - 1, cells - 1)
        if headcount > 1 and spread * lone + max(cells - headcount, 0) * empty > delta:
            return 1.0
    count, first, last, bound = _blocks(headcount, synthetic_size, alpha, excess, number, probability, adp, delta)
    worst = 0.0
    for i in range(count):
        worst = max(worst, bound[i])
    if adp or worst > delta:
        return worst if worst <= delta else 1.0
    if headcount <= EXACT_KNAPSACK:
        each = np.zeros(headcount + 1)
        for i in range(count):
            for v in range(int(first[i]), int(last[i]) + 1):
                each[v] = bound[i]
        total = _knapsack(headcount, cells, empty, each)
    else:
        total = _dual(headcount, cells, empty, count, first, last, bound)
    total *= 1.0 + 1e-12
    return total if total <= delta else 1.0
