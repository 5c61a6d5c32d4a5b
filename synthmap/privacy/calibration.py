"""The least noise that a certificate accepts: α as a rational, with what it was certified for.

Proof that any returned α is safe: it is re-certified after rounding, see proofs/calibration.md. The search
only decides how small it is.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import index

from synthmap.compiled import compiled
from synthmap.errors import PrivacyParameterError
from synthmap.privacy.certificate import KeptCells, certified, kept_cells
from synthmap.privacy.dropping import dropping_factors
from synthmap.privacy.epsilon import check_delta, check_epsilon, check_size, ratio_minus_one
from synthmap.privacy.rule import Rule
from synthmap.privacy.tails import threshold

MANTISSA_BITS = 16
MAX_SHIFT = 40
LARGEST_URN = 2**62


@dataclass(frozen=True)
class Calibration:
    """Noise for one destination and what it was certified for.

    Attributes
    ----------
    alpha : Fraction
        Pseudo-count of every cell, in workers; the denominator is a power of two.
    j : int
        floor((R − 1)·alpha): synthetic workers in an empty cell up to which nobody is distinguished.
    certified_delta : float
        Upper bound on δ at this alpha (probabilistic δ for ``pdp``, plain δ for ``adp``, 0 for ``pure``).
    epsilon_total, epsilon_dropping, epsilon_resampling : float
        Natural-log ε: the ceiling that was asked for (0 for a single cell), the share that dropping
        may take (rounded up) and what that leaves.
    """

    alpha: Fraction
    j: int
    certified_delta: float
    epsilon_total: float
    epsilon_dropping: float
    epsilon_resampling: float


@compiled
def _round_up(alpha: float, workers: int) -> tuple[float, int]:
    """Return (numerator, shift) of the next rational numerator/2^shift: 16 significant bits where the urn has room.

    The urn counts each of the n + m `workers` as 2^shift units, which stay below 2^60.
    """
    shift = 0
    while alpha * 2.0**shift < 2.0 ** (MANTISSA_BITS - 1) and shift < MAX_SHIFT and workers * 2.0**shift < 2.0**59:
        shift += 1
    return max(1.0, math.ceil(alpha * 2.0**shift)), shift


@compiled
def _accepts(
    alpha: float,
    n: int,
    m: int,
    k: int,
    excess: float,
    keep: float,
    kept: KeptCells,
    adp: bool,
    delta: float,
    keep_most: float = 0.0,
) -> tuple[float, float, int]:
    """Return (certified δ or 2, numerator, shift) of `alpha` rounded up."""
    numerator, shift = _round_up(alpha, n + m)
    value = certified(
        n, m, k, numerator / 2.0**shift, excess, keep, kept.number, kept.probability, adp, delta, keep_most
    )
    return (value if value <= delta else 2.0), numerator, shift


@compiled
def _between(
    low: float,
    high: float,
    n: int,
    m: int,
    k: int,
    excess: float,
    keep: float,
    kept: KeptCells,
    adp: bool,
    delta: float,
    keep_most: float = 0.0,
) -> tuple[float, float, int]:
    """Return the smallest accepted α that bisection finds, given that `low` fails and `high` passes."""
    best = _accepts(high, n, m, k, excess, keep, kept, adp, delta, keep_most)
    for _ in range(12):
        if high - low <= high * 2.0**-12:
            break
        middle = 0.5 * (low + high)
        found = _accepts(middle, n, m, k, excess, keep, kept, adp, delta, keep_most)
        if found[0] <= 1.0:
            best, high = found, middle
        else:
            low = middle
    return best


@compiled
def _search_lattice(
    n: int, m: int, k: int, excess: float, kept: KeptCells, adp: bool, delta: float
) -> tuple[float, float, int]:
    """Return (certified δ, numerator, shift) without dropping, α searched in [j, j + 1)/(R − 1) for each j.

    The certified set is a union of intervals, one within each of these, so every j is tried up to 128;
    beyond, j grows by 1 % and the gap before the first success is bisected.
    """
    j = 1
    while j < m:
        left = j / excess
        before = left
        for step in range(5):
            alpha = left * (1.0 + 2.0**-46) + step * 0.2475 / excess
            found = _accepts(alpha, n, m, k, excess, 1.0, kept, adp, delta)
            if found[0] <= 1.0:
                if step == 0 and j <= 128:
                    return found
                if step == 0:
                    before = (j - max(1, j // 100)) / excess
                return _between(before, alpha, n, m, k, excess, 1.0, kept, adp, delta)
            before = alpha
            if step == 0 and j > 128:
                break
        j += 1 if j <= 128 else max(1, j // 100)
    found = _accepts(m / excess * (1.0 + 2.0**-46), n, m, k, excess, 1.0, kept, adp, delta)
    if j == m or found[0] > 1.0 or m <= 129:
        return found
    return _between(
        (j - max(1, j // 100)) / excess, m / excess * (1.0 + 2.0**-46), n, m, k, excess, 1.0, kept, adp, delta
    )


@compiled
def _search_dropping(
    n: int,
    m: int,
    k: int,
    excess: float,
    keep: float,
    kept: KeptCells,
    adp: bool,
    delta: float,
    keep_most: float,
) -> tuple[float, float, int]:
    """Return (certified δ or 2, numerator, shift) with dropping, whose cost grows with α."""
    alpha = 2.0**-20 / excess
    before = 0.0
    ceiling = 1.0 + excess
    while alpha <= m * ceiling:
        factor = dropping_factors(n, m, k, alpha, keep)
        if max(factor[2], factor[0] if n > 1 else 0.0) >= ceiling:
            break
        found = _accepts(alpha, n, m, k, excess, keep, kept, adp, delta, keep_most)
        if found[0] <= 1.0:
            return _between(before, alpha, n, m, k, excess, keep, kept, adp, delta, keep_most)
        before = alpha
        alpha *= 1.02
    return 2.0, 0.0, 0


def minimum_alpha(
    *,
    epsilon: float,
    delta: float,
    headcount: int,
    cells: int,
    synthetic_size: int | None = None,
    keep: float = 1.0,
    keep_most: float | None = None,
    rule: Rule = Rule.PDP,
) -> Calibration:
    """Return the least noise found for which one destination is private at (ε, δ), dropping included.

    **Guarantee** (adjacency: one worker of the destination has another origin; headcount fixed):
    ``pdp``: (ε, δ)-probabilistic DP of the table at cell level; ``adp``: (ε, δ)-DP; ``pure``: ε-DP. Safe
    for every confidential histogram; by enumeration ``pdp`` is tight in nearly all small worlds of three cells and
    more, ``adp`` nearly so.

    Parameters
    ----------
    epsilon : float
        Natural-log ε in total: resampling and dropping together. In (0, 700].
    delta : float
        Failure probability per destination, in [0, 1).
    headcount, synthetic_size, cells : int
        Public n(d), m(d) (default: n) and k(d), each at least 1.
    keep, keep_most : float
        The smallest and the largest keep probability of an empty cell, in (0, 1]; 1 means no dropping. The
        largest defaults to the smallest.
    rule : Rule
        Certificate to pass.

    Returns
    -------
    Calibration
        α is rounded up, δ as re-evaluated at the rounded α.

    Raises
    ------
    PrivacyParameterError
        If a parameter is out of range, or dropping alone costs more than ε.

    References
    ----------
    Machanavajjhala, Kifer, Abowd, Gehrke, Vilhuber, "Privacy: Theory meets Practice on the Map", ICDE
    2008, theorem 2 and section V; THEORY.md sections 2 and 3; proofs/certificate.md.

    Examples
    --------
    >>> found = minimum_alpha(epsilon=4, delta=1e-5, headcount=1000, cells=250)
    >>> found.j, found.certified_delta <= 1e-5
    (24, True)
    """
    check_epsilon(epsilon)
    check_delta(delta)
    rule = Rule(rule)
    headcount, cells = index(headcount), index(cells)
    size = headcount if synthetic_size is None else index(synthetic_size)
    for name, value in (("headcount", headcount), ("synthetic_size", size), ("cells", cells)):
        check_size(name, value)
    if not 0 < keep <= 1:
        raise PrivacyParameterError(f"keep ({keep:g}) must be above 0 and at most 1")
    most = keep if keep_most is None else keep_most
    if not keep <= most <= 1:
        raise PrivacyParameterError(f"keep_most ({most:g}) must be at least keep and at most 1")
    excess = ratio_minus_one(epsilon)
    if cells == 1:  # one cell has no neighbours: the draw does not depend on any secret
        numerator, shift = _round_up(min(float(size), 1.0 / excess), headcount + size)
        alpha = Fraction(int(numerator), 2**shift)
        return Calibration(alpha, math.floor(excess * float(alpha)), 0.0, 0.0, 0.0, 0.0)
    bound = 0.0 if rule is Rule.PURE else delta
    adp = rule is Rule.ADP
    kept = kept_cells(cells, keep)
    arguments = (headcount, size, cells, excess)
    if keep >= 1.0:
        found = _search_lattice(*arguments, kept, adp, bound)
    else:
        found = _search_dropping(*arguments, keep, kept, adp, bound, most)
    if found[0] > 1.0:
        raise PrivacyParameterError(
            f"keep ({keep:g}) must be nearer to 1, or epsilon ({epsilon:g}) larger: no noise level covers "
            f"what dropping costs at headcount {headcount} with {cells} cells"
        )
    alpha = Fraction(int(found[1]), 2 ** found[2])
    if alpha.numerator * cells + (headcount + size) * alpha.denominator >= LARGEST_URN:
        raise PrivacyParameterError(
            f"epsilon ({epsilon:g}) must be larger: the noise it needs at headcount {headcount} with {cells} "
            "cells does not fit an urn of 2^62 units"
        )
    factor = dropping_factors(headcount, size, cells, float(alpha), keep)
    dearest = max(factor[2], factor[0] if headcount > 1 else 0.0, factor[1] if headcount > 2 else 0.0)
    dropping = math.nextafter(math.log(dearest), math.inf) if dearest > 1.0 else 0.0
    left = excess if keep >= 1 else (1 + excess) / dearest - 1
    j = min(size, int(threshold(left, 0.0, float(alpha))))
    return Calibration(alpha, j, found[0], float(epsilon), dropping, float(epsilon) - dropping)
