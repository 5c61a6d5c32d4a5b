"""The noise of the histogram mechanism: how many units meet an ε, and which ε given units cost. Pure ε-DP.

Two-sided geometric noise of ratio q = c/(2^32 − c) on every count. When one worker has another origin at most two
counts of a level change, by one each, and the probability of any outcome by at most 1/q² (proofs/histogram.md).
"""

from fractions import Fraction
from math import isqrt

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import Epsilon, check_epsilon, ratio_minus_one

UNITS = 2**32
_HALF = UNITS // 2  # q = 1: no bound on the noise


def level_ratio(units: int) -> Fraction:
    """Return 1/q², by which one level of noise lets probabilities change, exactly; 1 for a level without counts.

    Parameters
    ----------
    units : int
        c in 1/2^32; 0 where the level publishes nothing.

    Examples
    --------
    >>> level_ratio(2**30), level_ratio(0)
    (Fraction(9, 1), Fraction(1, 1))
    """
    if not 0 <= units < _HALF:
        raise PrivacyParameterError(f"noise units ({units}) must be at least 0 and below 2147483648")
    return Fraction(UNITS - units, units) ** 2 if units else Fraction(1)


def histogram_epsilon(units: int, group_units: int = 0) -> Epsilon:
    """Return the ε of noisy counts on two levels, rounded up, with its exact ratio.

    **Guarantee** (adjacency: one worker of one destination has another origin): ε-DP of all noisy counts of the
    destination, tight where the two origins differ on both levels.

    Parameters
    ----------
    units, group_units : int
        Noise of cells and of groups in 1/2^32; 0 where there are none.

    Examples
    --------
    >>> histogram_epsilon(2**30).ratio
    Fraction(9, 1)
    """
    return Epsilon.from_ratio(level_ratio(units) * level_ratio(group_units))


def minimum_units(epsilon: float, group_share: float = 0.0) -> tuple[int, int]:
    """Return the least noise (cells, groups), in 1/2^32, that costs at most ε together.

    Parameters
    ----------
    epsilon : float
        For one job; natural logarithm.
    group_share : float
        Share of ε that the groups get, in [0, 1); 0 for no noisy counts of groups. Cells get what is left, exactly.

    Raises
    ------
    PrivacyParameterError
        If ε is out of range, or so small that no noise below q = 1 meets it.

    Notes
    -----
    Rounded up: the ratio that is spent is at most a lower bound of exp(ε).

    Examples
    --------
    >>> minimum_units(Epsilon.from_ratio(9)) == (2**30, 0)
    True
    """
    check_epsilon(epsilon)
    if not 0.0 <= group_share < 1.0:
        raise PrivacyParameterError(f"group share ({group_share:g}) must be at least 0 and below 1")
    whole = 1 + Fraction(ratio_minus_one(epsilon))
    groups = 0
    if group_share > 0:
        check_epsilon(epsilon * group_share)
        groups = _least(1 + Fraction(ratio_minus_one(epsilon * group_share)), epsilon)
    return _least(whole / level_ratio(groups), epsilon), groups


def _least(ratio: Fraction, epsilon: float) -> int:
    """Return the least c with ((2^32 − c)/c)² at most `ratio`."""
    low = 1 + int(
        UNITS * Fraction(10**9) / (10**9 + isqrt(int(ratio * 10**18)) + 1)
    )  # at or below the answer, by little
    units = max(1, low - 8)
    while units < _HALF and Fraction(UNITS - units, units) ** 2 > ratio:
        units += 1
    if units >= _HALF:
        raise PrivacyParameterError(f"epsilon ({epsilon:g}) must be larger: no noise of this kind is enough")
    return units
