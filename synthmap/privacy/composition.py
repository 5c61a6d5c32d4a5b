"""How losses add up: over the destinations of a table and over the jobs of a person.

Proof: proofs/composition.md. Every result is rounded up.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthmap.errors import PrivacyParameterError

_UP = 1.0 + 2.0**-48  # log1p, the exact sum and expm1 are off by less than 8 units in the last place


def round_up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`.

    Examples
    --------
    >>> round_up(Fraction(1, 10)) == 0.1, round_up(Fraction(1, 3)) > Fraction(1, 3)
    (True, True)
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _checked(name: str, values: ArrayLike, ceiling: float) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise PrivacyParameterError(
            f"{name} ({array.ndim} dimensions) must be one-dimensional: one value per destination"
        )
    wrong = array[~((array >= 0.0) & (array <= ceiling))]
    if wrong.size:
        raise PrivacyParameterError(
            f"{name} ({float(wrong[0]):g}) must be at least 0 and at most {ceiling:g}: "
            "correct the loss of that destination"
        )
    return array


def table_pdp_delta(deltas: ArrayLike) -> float:
    """Return the probability that the table fails: that some destination tells some neighbour apart.

    **Guarantee** (adjacency: one worker of one destination has another origin): the table at cell level
    is (max ε, returned δ)-probabilistically DP. Tight when each δ is.

    Parameters
    ----------
    deltas : ndarray of float64, shape (destinations,)
        Probabilistic δ of each destination, in [0, 1]; public. Destinations draw independently.

    Returns
    -------
    float
        1 − Π(1 − δ_d) rounded up, relative error below 1e-14, at most 1; 0 for no destinations.

    Raises
    ------
    PrivacyParameterError
        If a δ is not in [0, 1] or the array is not one-dimensional.

    Notes
    -----
    Computed as −expm1(Σ log1p(−δ_d)) with an exact sum, so that tiny δ lose no digits.
    Proof: proofs/composition.md.

    Examples
    --------
    >>> table_pdp_delta([0.5, 0.5]) >= 0.75, f"{table_pdp_delta([1e-20] * 3):.6g}"
    (True, '3e-20')
    """
    array = _checked("deltas", deltas, 1.0)
    if not array.any():
        return 0.0
    if array.max() >= 1.0:
        return 1.0
    failure = -math.expm1(math.fsum(np.log1p(-array)))
    return min(1.0, math.nextafter(failure * _UP, math.inf))


def table_dp(epsilons: ArrayLike, deltas: ArrayLike) -> tuple[float, float]:
    """Return (ε, δ) of a table from those of its destinations: the largest of each.

    **Guarantee** (adjacency: one worker of one destination has another origin): (ε, δ)-DP of the table and
    of everything computed from it, by parallel composition. Not for the δ of *probabilistic* DP, which
    adds up: `table_pdp_delta`.

    Parameters
    ----------
    epsilons : ndarray of float64, shape (destinations,)
        Natural-log ε of each destination, finite and at least 0; public.
    deltas : ndarray of float64, shape (destinations,)
        δ of each destination, in [0, 1]; public.

    Returns
    -------
    tuple of float
        (ε, δ), exact; (0, 0) for no destinations.

    Raises
    ------
    PrivacyParameterError
        If a value is out of range or the lengths differ.

    Examples
    --------
    >>> table_dp([1.0, 4.0], [1e-5, 1e-6])
    (4.0, 1e-05)
    """
    loss = _checked("epsilons", epsilons, np.finfo(np.float64).max)
    failure = _checked("deltas", deltas, 1.0)
    if loss.size != failure.size:
        raise PrivacyParameterError(
            f"deltas ({failure.size} values) must be as many as epsilons ({loss.size}): give both for every destination"
        )
    if not loss.size:
        return 0.0, 0.0
    return float(loss.max()), float(failure.max())


def jobs(epsilon: float, delta: float, max_jobs_per_worker: int) -> tuple[float, float]:
    """Return (ε, δ) of a person who holds up to that many jobs, at distinct destinations.

    **Guarantee** (adjacency: one person has another origin in each of up to J rows, at J different
    destinations; headcounts fixed): (J·ε, J·δ)-DP by sequential composition of independent draws. Two jobs
    at one destination are two rows of one histogram and are **not** covered.

    Parameters
    ----------
    epsilon : float
        Natural-log ε for one job, finite and at least 0; public.
    delta : float
        δ for one job, in [0, 1]; public.
    max_jobs_per_worker : int
        J, at least 1; public.

    Returns
    -------
    tuple of float
        (J·ε, min(1, J·δ)), each rounded up.

    Raises
    ------
    PrivacyParameterError
        If a value is out of range.

    Examples
    --------
    >>> jobs(4.0, 1e-5, 2)
    (8.0, 2e-05)
    """
    if max_jobs_per_worker < 1 or int(max_jobs_per_worker) != max_jobs_per_worker:
        raise PrivacyParameterError(
            f"max_jobs_per_worker ({max_jobs_per_worker}) must be a whole number of at least 1: "
            "bound the jobs of a person when reading the records"
        )
    times = int(max_jobs_per_worker)
    _checked("epsilon", [epsilon], np.finfo(np.float64).max / times)
    _checked("delta", [delta], 1.0)
    total = round_up(times * Fraction(float(epsilon)))
    return total, min(1.0, round_up(times * Fraction(float(delta))))


def group(epsilon: Fraction, delta: Fraction, size: int) -> tuple[Fraction, Fraction]:
    """Return (ε, δ) of a person whose `size` rows may all be in one answer.

    **Guarantee** (adjacency: up to `size` rows change): (size·ε, δ·Σ e^(iε), i < size)-DP by group privacy of an answer
    that is (ε, δ)-DP for one row; δ rounded up, at most 1. The change is one loss, not several: no rule for
    compositions makes it less.

    Examples
    --------
    >>> group(Fraction(1, 2), Fraction(0), 3)
    (Fraction(3, 2), Fraction(0, 1))
    """
    total = Fraction(0)
    for row in range(size if delta else 0):
        if row * epsilon > 700:  # e^(row·ε) passes every float, and δ has long been 1
            return size * epsilon, Fraction(1)
        power = 1.0 if row == 0 else math.exp(round_up(row * epsilon)) * _UP
        total += delta * Fraction(power)
    return size * epsilon, min(Fraction(1), total)
