"""The privacy parameter ε and the ratio R = exp(ε) it bounds, rounded so that the promise is never less."""

import math
from fractions import Fraction
from typing import Self

from synthmap.errors import PrivacyParameterError


class Epsilon(float):
    """Natural-log ε that remembers the exact ratio it came from.

    A plain ``float`` works wherever ε is asked for; this class exists because a ratio such as 2 has no
    exact float logarithm. `from_ratio` keeps both.

    Examples
    --------
    >>> Epsilon.from_ratio(2).ratio
    Fraction(2, 1)
    >>> round(Epsilon.from_ratio(2), 6)
    0.693147
    """

    ratio: Fraction | None = None

    @classmethod
    def from_ratio(cls, ratio: float | Fraction) -> Self:
        """Return ε = ln(ratio), rounded up as a float, with the exact ratio kept.

        Parameters
        ----------
        ratio : float or Fraction
            The bound R on the ratio of two probabilities, above 1.

        Raises
        ------
        PrivacyParameterError
            If `ratio` is not a finite number above 1.
        """
        if not 1 < ratio < 1e304:
            raise PrivacyParameterError(f"ratio ({ratio}) must be a number above 1 and below 1e304")
        exact = Fraction(ratio)
        logarithm = math.log1p(math.nextafter(float(exact - 1), math.inf))
        value = cls(logarithm + 4 * math.ulp(logarithm))
        value.ratio = exact
        return value


def ratio_minus_one(epsilon: float) -> float:
    """Return a float at most exp(ε) − 1, within a few units in the last place.

    Parameters
    ----------
    epsilon : float
        Natural-log ε, above 0 and at most 700.

    Raises
    ------
    PrivacyParameterError
        If ε is out of range.

    Examples
    --------
    >>> ratio_minus_one(Epsilon.from_ratio(5))
    4.0
    >>> 0.9999999 < ratio_minus_one(0.6931471805599453) < 1.0
    True
    """
    check_epsilon(epsilon)
    if isinstance(epsilon, Epsilon) and epsilon.ratio is not None:
        excess = epsilon.ratio - 1
        value = float(excess)
        return value if Fraction(value) <= excess else math.nextafter(value, 0.0)
    value = math.expm1(epsilon)
    return value - 4 * math.ulp(value)


def check_epsilon(epsilon: float) -> None:
    """Raise PrivacyParameterError unless 10⁻⁹ ≤ ε ≤ 700: below, noise fits no urn; above, exp overflows."""
    if not 0 < epsilon <= 700:
        raise PrivacyParameterError(f"epsilon ({epsilon:g}) must be above 0 and at most 700")
    if epsilon < 1e-9:
        raise PrivacyParameterError(f"epsilon ({epsilon:g}) must be at least 1e-9")


def check_size(name: str, value: int) -> None:
    """Raise PrivacyParameterError unless 1 ≤ value ≤ 2^31 − 1: workers and cells, as the urn counts them."""
    if not 1 <= value < 2**31:
        raise PrivacyParameterError(f"{name} ({value}) must be at least 1 and at most 2147483647")


def check_delta(delta: float) -> None:
    """Raise PrivacyParameterError unless 0 ≤ δ < 1."""
    if not 0 <= delta < 1:
        raise PrivacyParameterError(f"delta ({delta:g}) must be at least 0 and below 1")
