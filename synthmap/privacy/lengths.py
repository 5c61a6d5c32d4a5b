"""The noise of summed commute lengths: how many units meet an ε, and which ε given units cost. Pure ε-DP.

Two-sided geometric noise of ratio q = c/(2^32 − c) on whole numbers. When one worker has another origin, one sum
changes by at most its sensitivity S, and the probability of any outcome by at most 1/q^S (proofs/lengths.md).
"""

import math
from fractions import Fraction

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import Epsilon, check_epsilon, ratio_minus_one
from synthmap.privacy.histogram import UNITS

_BELOW = 16  # where the search begins: floats are off by less
_LARGEST = 700.0  # of ε: exp of more is no float


def lengths_epsilon(units: int, sensitivity: int) -> Epsilon:
    """Return the ε of sums with noise, rounded up, with its exact ratio.

    **Guarantee** (adjacency: one worker of one destination has another origin): ε-DP of all noisy sums together, tight
    where a sum changes by the whole sensitivity.

    Parameters
    ----------
    units : int
        c in 1/2^32, above 0 and below 2^31.
    sensitivity : int
        S, at least 1.

    Raises
    ------
    PrivacyParameterError
        If the units are out of range, or so few that they cost more than any ε that can be spent.

    Examples
    --------
    >>> lengths_epsilon(2**30, 2).ratio
    Fraction(9, 1)
    """
    if not 0 < units < UNITS // 2:
        raise PrivacyParameterError(f"noise units ({units}) must be above 0 and below 2147483648")
    if sensitivity * math.log((UNITS - units) / units) > _LARGEST:
        raise PrivacyParameterError(f"noise units ({units}) must be more: their ε is above {_LARGEST:g}")
    return Epsilon.from_ratio(Fraction(UNITS - units, units) ** sensitivity)


def least_lengths_units(epsilon: float, sensitivity: int) -> int:
    """Return the least noise, in 1/2^32, that costs at most ε.

    Parameters
    ----------
    epsilon : float
        Natural-log ε for one job.
    sensitivity : int
        S, at least 1.

    Raises
    ------
    PrivacyParameterError
        If ε is out of range, or so small that no noise below q = 1 meets it.

    Notes
    -----
    Rounded up: the ratio that is spent is at most a lower bound of exp(ε).

    Examples
    --------
    >>> least_lengths_units(Epsilon.from_ratio(9), 2) == 2**30
    True
    """
    check_epsilon(epsilon)
    ratio = 1 + Fraction(ratio_minus_one(epsilon))
    units = max(1, int(UNITS / (1.0 + math.exp(epsilon / sensitivity))) - _BELOW)
    while units < UNITS // 2 and Fraction(UNITS - units, units) ** sensitivity > ratio:
        units += 1
    if units >= UNITS // 2:
        raise PrivacyParameterError(f"epsilon ({epsilon:g}) must be larger: no noise of this kind is enough")
    return units
