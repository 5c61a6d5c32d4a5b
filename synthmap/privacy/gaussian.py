"""Discrete Gaussian noise as a public table of whole weights: what it costs, and the least that meets (ε, δ).

The noise is that of the table, in 1/2^62, not an approximation to it; so is the loss. Worked out for all jobs of a
person together (proofs/gaussian.md).
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.epsilon import check_epsilon

VARIANCE_UNITS = 2**16
TABLE_BITS = 62
_LARGEST = 2**18 * VARIANCE_UNITS
_LEAST_WEIGHT = 2**20  # smaller weights would be rounded by more than a millionth
_LEAST_DELTA = 1e-11  # where the table ends outcomes tell all: some 1e-12 of them
_NEGLIGIBLE = 2.0**-66
_ROUNDING = 2.0**-40  # of losses; floats are off by less than 2^-45 of theirs
_PRECISION = 2**10


@dataclass(frozen=True)
class GaussianNoise:
    """Noise for every count of a release, and what it costs a person with one job.

    Attributes
    ----------
    units : int
        σ² in 1/2^16.
    epsilon, delta : float
        (ε, δ)-DP of one job alone; of several together see `gaussian_delta`.
    """

    units: int
    epsilon: float
    delta: float


@lru_cache(maxsize=64)
def gaussian_tails(units: int) -> NDArray[np.int64]:
    """Return the table: the weights, in 1/2^62, of Z > 0, Z > 1, … up to the last that is not 0. Read only.

    P(Z = z) is about exp(−z²/(2σ²)) of the whole, rounded down for z ≠ 0, the rest at 0; the same on every machine,
    because decimals are rounded correctly. Empty where σ² is so small that there is no noise.

    Parameters
    ----------
    units : int
        σ² in 1/2^16, at least 1 and at most 2^34.

    Examples
    --------
    >>> tails = gaussian_tails(4 * VARIANCE_UNITS)
    >>> len(tails), round(int(tails[0]) / 2**62, 4)
    (14, 0.4003)
    """
    if not 1 <= units <= _LARGEST:
        raise PrivacyParameterError(f"gaussian units ({units}) must be at least 1 and at most {_LARGEST}")
    reach = 2 + math.isqrt(90 * units // VARIANCE_UNITS)  # beyond, less than 2^-62 is left
    with localcontext() as context:
        context.prec = 50
        halves = Decimal(VARIANCE_UNITS) / (2 * units)
        parts = [(-halves * z * z).exp() for z in range(reach)]
        whole = 2**TABLE_BITS / (2 * sum(parts) - 1)
        weights = [int(part * whole) for part in parts[1:]]
    kept = [weight for weight in weights if weight >= _LEAST_WEIGHT]
    tails = np.cumsum(np.array(kept[::-1], np.int64))[::-1].copy()
    tails.setflags(write=False)
    return tails


def gaussian_weights(units: int) -> NDArray[np.int64]:
    """Return the weights, in 1/2^62, of |Z| = 0, 1, …: those of one sign."""
    tails = gaussian_tails(units)
    ends = np.append(tails, 0)
    return np.append(2**TABLE_BITS - 2 * ends[0], ends[:-1] - ends[1:])


def gaussian_variance(units: int) -> float:
    """Return the variance of the noise, a little less than σ².

    Examples
    --------
    >>> round(gaussian_variance(4 * VARIANCE_UNITS), 6)
    4.0
    """
    weights = gaussian_weights(units) / 2.0**TABLE_BITS
    return float(2.0 * (weights * np.arange(weights.size) ** 2).sum())


@lru_cache(maxsize=256)
def gaussian_delta(units: int, epsilon: float, jobs: int = 1, moves: int = 1) -> float:
    """Return δ at ε of all noisy counts, rounded up.

    **Guarantee** (adjacency: one person has another origin in each of up to `jobs` destinations, with `moves` jobs in
    each of these, all of which move alike): (ε, δ)-DP, tight but for rounding.

    Parameters
    ----------
    units : int
        σ² in 1/2^16.
    epsilon : float
        Of all jobs together; natural logarithm.
    jobs : int
        Destinations.
    moves : int
        Jobs at each; what a release promises is about one.

    Examples
    --------
    >>> one, eight = gaussian_delta(4 * VARIANCE_UNITS, 3.0), gaussian_delta(4 * VARIANCE_UNITS, 24.0, jobs=8)
    >>> eight < 8 * one
    True
    """
    weights, tails = gaussian_weights(units), gaussian_tails(units)
    if moves > tails.size:
        return 1.0
    terms, double = 2 * jobs, 2.0 * units / VARIANCE_UNITS
    logs, odd = np.log(weights.astype(np.float64)), 2 * np.arange(tails.size) + 1
    stray = float(np.abs(logs[:-1] - logs[1:] - odd / double).max()) + _ROUNDING
    one = np.concatenate((weights[:0:-1], weights)) / 2.0**TABLE_BITS
    law, lost = _sum_law(one, terms)
    half = law.size // 2
    loss = (terms * moves**2 - 2.0 * moves * np.arange(-half, half + 1)) / double + terms * moves * stray
    above = loss - epsilon + _ROUNDING * (np.abs(loss) + epsilon)
    worse = above > 0.0
    ends = terms * int(tails[tails.size - moves]) / 2**TABLE_BITS
    total = float((law[worse] * -np.expm1(-above[worse])).sum()) + lost + ends
    return float(min(1.0, total * (1.0 + terms * (law.size + 64) * 2.0**-50)))


def _sum_law(one: NDArray[np.float64], terms: int) -> tuple[NDArray[np.float64], float]:
    """Return the law of the sum of so many, around 0, and how much of it was left out at most."""
    law, lost = np.ones(1), 0.0
    power, power_lost = one, 0.0
    while True:
        if terms & 1:
            law, lost = _trimmed(np.convolve(law, power), lost + power_lost)
        terms >>= 1
        if not terms:
            return law, lost
        power, power_lost = _trimmed(np.convolve(power, power), 2.0 * power_lost)


def _trimmed(law: NDArray[np.float64], lost: float) -> tuple[NDArray[np.float64], float]:
    """Return a symmetric law without ends of less than 2^-66 each, and what is lost in all."""
    cut = int(np.searchsorted(np.cumsum(law), _NEGLIGIBLE))
    return law[cut : law.size - cut], lost + 3.0 * _NEGLIGIBLE


@lru_cache(maxsize=64)
def minimum_gaussian(epsilon: float, delta: float, jobs: int = 1) -> GaussianNoise:
    """Return the least noise by which `jobs` jobs of a person cost at most jobs·ε and jobs·δ together.

    Less noise than each job alone would need for (ε, δ): losses of several jobs rarely are large at once. What one job
    alone costs is part of the result, at a δ of at most `delta`.

    Parameters
    ----------
    epsilon, delta : float
        The share of one job; natural logarithm.
    jobs : int
        At different destinations.

    Raises
    ------
    PrivacyParameterError
        If ε or δ is out of range, or so small that no noise of this kind meets them.

    Notes
    -----
    σ² is found by bisection, to a thousandth of itself; whatever is found was certified.
    """
    check_epsilon(epsilon)
    if not _LEAST_DELTA <= delta < 1:
        raise PrivacyParameterError(f"delta ({delta:g}) must be at least 1e-11 and below 1 for gaussian noise")
    whole = (epsilon, delta) if jobs == 1 else (_below(jobs * epsilon), _below(jobs * delta))
    if whole[1] >= 1:
        raise PrivacyParameterError(f"delta ({delta:g}) must be below 1 in {jobs} for so many jobs")

    def enough(units: int) -> bool:
        return gaussian_delta(units, whole[0], jobs) <= whole[1]

    # ε = ρ + 2√(ρ·ln(1/δ)) with ρ = J/σ²: more than enough in the continuous case (Bun and Steinke 2016)
    root = math.sqrt(math.log(1.0 / whole[1]) + whole[0]) - math.sqrt(math.log(1.0 / whole[1]))
    high = int(min(max(jobs / root**2, 2.0**-8), 2.0**30) * VARIANCE_UNITS)
    while high <= _LARGEST and not enough(high):
        high += high // 4 + 1
    if high > _LARGEST:
        raise PrivacyParameterError(f"epsilon ({epsilon:g}) must be larger: no noise of this kind is enough")
    low = 0
    while high - low > max(1, high // _PRECISION):
        middle = (low + high + 1) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    if jobs == 1:
        return GaussianNoise(high, float(epsilon), gaussian_delta(high, epsilon))
    alone = _epsilon_of_one(high, epsilon, delta)
    return GaussianNoise(high, alone, gaussian_delta(high, alone))


def _epsilon_of_one(units: int, epsilon: float, delta: float) -> float:
    """Return an ε, at least `epsilon` and little more than needed, at which one job costs at most `delta`."""
    low, high = 0.0, epsilon
    while gaussian_delta(units, high) > delta:
        low, high = high, 2.0 * high
    while low and high - low > high / _PRECISION:
        middle = (low + high) / 2.0
        low, high = (low, middle) if gaussian_delta(units, middle) <= delta else (middle, high)
    return high


def _below(value: float) -> float:
    return math.nextafter(value, 0.0)
