"""Upper bounds on beta-binomial tails, rounded up. Proof: proofs/tails.md."""

import math

import numpy as np

from synthmap.compiled import compiled

# One lgamma is taken to be off by at most 2^-47 of its size (64 units in the last place; libm stays
# below 8). Each bound is inflated by what nine of them could add up to.
_LGAMMA_ERROR = 2.0**-47
_SMALLEST = 1e-250  # returned instead of an underflow, so that a positive probability never reads as 0


@compiled
def threshold(excess: float, workers: float, alpha: float) -> float:
    """Return floor(excess · (workers + alpha)), never above the exact value.

    The float product rounds monotonically, so its floor is wrong only where it lands on an integer from
    below; the sign of the exact residual (Dekker's product) settles that case. `workers` + `alpha` is
    rounded down first (Knuth's sum).
    """
    total = workers + alpha
    back = total - workers
    if (workers - (total - back)) + (alpha - back) < 0.0:
        total = math.nextafter(total, 0.0)
    product = excess * total
    floor = float(np.floor(product))  # not math.floor: numba makes that an int64
    if product == floor and product < 1e15:
        split = 134217729.0  # 2^27 + 1
        c = split * excess
        a_high = c - (c - excess)
        a_low = excess - a_high
        c = split * total
        b_high = c - (c - total)
        b_low = total - b_high
        residual = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        if residual < 0.0:
            floor -= 1.0
    return floor


@compiled
def tail_expectation(t: float, m: int, a: float, b: float, ratio: float, base: float, cap: float) -> float:
    """Return an upper bound on E[(1 − ratio·base/(base + X)); X > t] for X ~ BetaBinomial(m; a, b).

    With ``ratio = 0`` this is the tail P(X > t). The weight must be in [0, 1] for x > t. The bound is
    tight to about 1e-12 relative (more for arguments near 10^8). As soon as the sum passes `cap` the
    answer is 1, itself an upper bound: callers only ask whether a probability stays below `cap`.

    Parameters
    ----------
    t : float
        Integer threshold; below 0 means that every outcome counts.
    m : int
        Number of draws, at least 1.
    a, b : float
        Pseudo-counts of success (> 0) and failure (≥ 0; 0 means X = m surely).
    ratio, base : float
        Of the weight, see above.
    cap : float
        Values above it may be reported as 1.
    """
    if t >= m:
        return 0.0
    if t < 0.0 or b <= 0.0:
        return 1.0
    x = t + 1.0
    positive = math.lgamma(m + 1.0) + math.lgamma(x + a) + math.lgamma(m - x + b) + math.lgamma(a + b)
    negative = (
        math.lgamma(x + 1.0) + math.lgamma(m - x + 1.0) + math.lgamma(m + a + b) + math.lgamma(a) + math.lgamma(b)
    )
    size = math.fabs(positive) + math.fabs(negative) + 9.0
    log_term = positive - negative + _LGAMMA_ERROR * size
    rising = (m - x) * (x + a) > (x + 1.0) * (m - x - 1.0 + b)
    if log_term < -600.0:
        if rising or b < 1.0:
            return 1.0
        fall = (m - x) / (m - x - 1.0 + b) * max(1.0, (x + a) / (x + 1.0))
        return _SMALLEST if fall < 1.0 - 1e-9 else 1.0
    term = math.exp(log_term)
    slack = 2.0**-50 if ratio > 0.0 else 0.0  # the weight's absolute rounding error
    total = 0.0
    while True:
        total += term * (1.0 - ratio * base / (base + x) + slack)
        if total > cap:
            return 1.0
        if x >= m:
            break
        first = (m - x) / (m - x - 1.0 + b)
        second = (x + a) / (x + 1.0)
        if b >= 1.0:
            fall = first * max(1.0, second)  # bounds every later ratio of neighbouring terms
            if fall < 1.0:
                rest = term * fall / (1.0 - fall)
                if rest < 1e-13 * total or rest < _SMALLEST:
                    total += rest
                    break
        term *= first * second
        x += 1.0
    return min(1.0, max(total * (1.0 + 1e-12 + 1e-15 * (x - t)), _SMALLEST))
