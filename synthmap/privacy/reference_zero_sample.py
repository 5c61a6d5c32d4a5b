"""The "reference 0-sample" rule of ICDE 2008, kept for comparison and never for certifying."""

import math

from synthmap.compiled import compiled
from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import check_delta, check_size, ratio_minus_one

_EXHAUSTIVE = 256  # every worker count up to here is searched, larger ones on a grid
_GRID = 1.02
_STEP = 1.01  # ratio of neighbouring α in the scan for the first that is accepted


@compiled
def _log_mass(v: float, n: float, m: float, k: float, alpha: float, excess: float) -> float:
    """Return ln of the beta-binomial mass, continued by lgamma, at f(v) = min(m, (R−1)(α + max(v−1,0)))."""
    a = v + alpha
    b = n - v + (k - 1.0) * alpha
    x = min(m, excess * (alpha + max(v - 1.0, 0.0)))
    return (
        math.lgamma(m + 1.0)
        - math.lgamma(x + 1.0)
        - math.lgamma(m - x + 1.0)
        + math.lgamma(x + a)
        + math.lgamma(m - x + b)
        - math.lgamma(m + a + b)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )


@compiled
def _accepts(n: float, m: float, k: float, alpha: float, excess: float, bound: float) -> bool:
    """Return whether no worker count that is searched has a log mass above `bound`."""
    if _log_mass(n, n, m, k, alpha, excess) > bound:
        return False
    v = 0.0
    while v <= n:
        if _log_mass(v, n, m, k, alpha, excess) > bound:
            return False
        v = v + 1.0 if v < _EXHAUSTIVE else math.ceil(v * _GRID)
    corner = math.floor(m / excess - alpha) + 1.0  # from here on f(v) = m
    for offset in range(-2, 3):
        v = corner + offset
        if 0.0 <= v <= n and _log_mass(v, n, m, k, alpha, excess) > bound:
            return False
    return True


@compiled
def _smallest(n: float, m: float, k: float, excess: float, bound: float) -> float:
    """Return the first accepted α, bisected against the refused one before it; infinity if none is."""
    low = 2.0**-40 / excess
    if _accepts(n, m, k, low, excess, bound):
        return low
    high = low
    while not _accepts(n, m, k, high, excess, bound):
        low = high
        high *= _STEP
        if high > 4.0 * (m + 1.0) * (n + 1.0):
            return math.inf
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if _accepts(n, m, k, middle, excess, bound):
            high = middle
        else:
            low = middle
    return high


def reference_zero_sample_alpha(
    *, epsilon: float, delta: float, headcount: int, cells: int, synthetic_size: int | None = None
) -> float:
    """Return the pseudo-count per cell, in workers, that the rule of ICDE 2008 would have chosen.

    **Guarantee**: none. The rule bounds one value of a probability mass, continued between the integers,
    where a tail is needed. It is unsound for one-worker destinations, the commonest kind in block data:
    with n = m = 1, k = 2, ε = 8.889, δ = 5.52e-4 it accepts α = 1.576e-5 while the true failure
    probability is 0.99998. Use it to compare with what was published, never to certify;
    `synthmap.privacy.calibration.minimum_alpha` certifies.

    Parameters
    ----------
    epsilon : float
        Natural-log ε with exp(ε) above 2; public.
    delta : float
        Failure probability per destination, above 0 and below 1; public.
    headcount, synthetic_size, cells : int
        Public n(d), m(d) (default: n) and k(d); n and m at least 1, k at least 2.

    Returns
    -------
    float
        α in workers, within a relative 1e-12 of where the rule's answer changes from no to yes, on the
        side of yes; 2^-40/(R − 1) where the rule accepts every α however small.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or the rule accepts nothing.

    Notes
    -----
    Accepted when ρ ≤ δ(R − 2)/(2kR), with ρ the maximum over v of the mass of
    BetaBinomial(m; v + α, n − v + (k − 1)α) at f(v) = min(m, (R − 1)(α + max(v − 1, 0))), continued by
    lgamma. The counts v searched are all up to 256, then a grid of ratio 1.02, those around the corner
    where f reaches m, and n. α is scanned upwards at ratio 1.01: the accepted set need not be an interval.
    See proofs/reference_zero_sample.md.

    References
    ----------
    Machanavajjhala, Kifer, Abowd, Gehrke, Vilhuber, "Privacy: Theory meets Practice on the Map", ICDE
    2008, section V.

    Examples
    --------
    >>> from synthmap.privacy.epsilon import Epsilon
    >>> alpha = reference_zero_sample_alpha(
    ...     epsilon=Epsilon.from_ratio(5), delta=1e-6, headcount=10**6, cells=10**4
    ... )
    >>> round(alpha, 3)
    17.491
    """
    excess = ratio_minus_one(epsilon)
    check_delta(delta)
    size = headcount if synthetic_size is None else synthetic_size
    for name, value in (("headcount", headcount), ("synthetic_size", size), ("cells", cells)):
        check_size(name, value)
    if cells < 2:
        raise PrivacyParameterError(f"cells ({cells}) must be at least 2: below that the rule says nothing")
    if delta <= 0:
        raise PrivacyParameterError(
            f"delta ({delta:g}) must be above 0: for δ = 0 use minimum_alpha with the pure rule"
        )
    if excess <= 1:
        raise PrivacyParameterError(
            f"epsilon ({epsilon:g}) must be above ln 2 = 0.6931...: the rule is defined for ratios "
            "above 2 only; raise epsilon or use minimum_alpha"
        )
    bound = math.log(delta) + math.log((excess - 1.0) / (2.0 * cells * (1.0 + excess)))
    alpha = _smallest(float(headcount), float(size), float(cells), excess, bound)
    if math.isinf(alpha):
        raise PrivacyParameterError(
            f"delta ({delta:g}) must be larger: the rule accepts no alpha at headcount {headcount} with "
            f"{cells} cells; use minimum_alpha"
        )
    return float(alpha)
