"""What resampling does to whole cells, if the prior is the truth: true and synthetic workers of one urn. Public."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled

_FEW = 0.01  # expected workers up to which the chance of any is a series of three terms, right to 1e-6 of it


class Urn(NamedTuple):
    """What a destination draws from.

    Attributes
    ----------
    headcount : int
        n.
    total : float
        N: n and the pseudo-counts of as many cells as make the mean of one over the urn's total what it is.
    alpha : float
        ``(N − n)/Σ κ_c``, κ_c the chance that a cell is kept: α where all are.
    keep : float
        f.
    varies, together : float
        Sums of `Domain.varies` and `Domain.together`.
    """

    headcount: int
    total: float
    alpha: float
    keep: float
    varies: float
    together: float


@compiled
def some(headcount: int, share: float) -> float:
    """Return the chance ``1 − (1 − q)^n`` that any of n workers comes from the share q of the prior."""
    few = headcount * share
    if few < _FEW:
        return few * (1.0 - 0.5 * (few - share) * (1.0 - (few - 2.0 * share) / 3.0))
    return 1.0 - math.exp(headcount * math.log1p(-share)) if share < 1.0 else 1.0


@compiled
def dropped(headcount: int, share: float, keep: float) -> tuple[float, float, float]:
    """Return the chance that a cell with this share of the prior is dropped, `Domain.varies` and `Domain.together`.

    Notes
    -----
    A cell is dropped with the chance ``(1 − f)·(1 − q)^n``, two with ``(1 − f)²·(1 − q − q')^n``, which is the product
    of either's times about ``1 − n·q·q'/((1 − q)·(1 − q'))``.
    """
    if share >= 1.0:
        return 0.0, 0.0, 0.0
    gone = (1.0 - keep) * (1.0 - some(headcount, share))
    together = gone * share / (1.0 - share)
    return gone, gone * (1.0 - gone) + headcount * together**2, together


@compiled
def urn_of(headcount: int, alpha: float, keep: float, kept: float, varies: float, together: float) -> Urn:
    """Return an urn with `kept` cells on average; `varies` and `together` are those of all of them.

    Notes
    -----
    Their number has the variance v, and the mean of one over the total is about ``(1 + α²·v/N²)/N``.
    """
    total = headcount + alpha * kept
    total /= 1.0 + alpha**2 * max(0.0, varies - headcount * together**2) / total**2
    return Urn(headcount, total, (total - headcount) / kept, keep, varies, together)


@compiled
def between(urn: Urn, linear: NDArray[np.float64]) -> float:
    """Return the variance, workers², of Σ r_c·(y_c − x_c), or the covariance of two such sums.

    Parameters
    ----------
    linear : ndarray of float64, shape (4, 3)
        Σ a·q, Σ b·q, Σ a·b·q over cells, and the same with `drawn`, `varies`, `together` of `Domain` for q; a and b are
        the r of either sum.

    Notes
    -----
    Let θ = (x + α)/N, x ~ Multinomial(n, q), y ~ DirichletMultinomial(n; Nθ), and W(p) = Σ a·b·p − Σ a·p·Σ b·p. Given
    x, y has the mean nθ and Σ a·y, Σ b·y have the covariance n·(n + N)/(1 + N)·W(θ). Over x the mean of W(θ) is
    W(p) − n·W(q)/N², p the mean of θ, and nθ − x = n·α/N − (A/N)·x adds (A/N)²·n·W(q). Exact.

    Where empty cells are dropped θ = (x + α·K)/N, K 1 for a cell that is kept, and N varies with their number: to first
    order Σ a·θ varies as ``Σ a·x + α·Σ (a − ā)·K`` over N does, ā = Σ a·p. A cell with workers is kept, so K and x
    have a covariance, too: n times `together` in the same cell, −n·q·(`together`) in another.
    """
    n, total = urn.headcount, urn.total
    prior = n * (linear[0, 2] - linear[0, 0] * linear[0, 1])
    drawn = linear[1, 2] - linear[1, 0] * linear[1, 1]
    moved, pull = (total - n) / total, urn.alpha / total
    drawing = n * (n + total) / (1.0 + total)
    kept, both = 0.0, 0.0
    if urn.varies > 0.0:
        a, b = linear[1, 0], linear[1, 1]
        first, second = linear[3, 0] - a * urn.together, linear[3, 1] - b * urn.together
        kept = linear[2, 2] - a * linear[2, 1] - b * linear[2, 0] + a * b * urn.varies - n * first * second
        both = 2.0 * linear[3, 2] - a * linear[3, 1] - b * linear[3, 0]
        both = n * (both - linear[0, 0] * second - linear[0, 1] * first)
    known = moved * moved * prior + n * n * pull * pull * kept - moved * n * pull * both
    return float(known + drawing * (drawn - prior / (total * total) - pull * pull * kept - pull / total * both))


@compiled
def nobody(urn: Urn, share: float, cells: float) -> tuple[float, float, float]:
    """Return the chances that a union of cells has no true workers, no synthetic ones, and neither.

    Parameters
    ----------
    share, cells : the union's share q of the prior, and number of cells: one, where empty ones are dropped.

    Notes
    -----
    With x true workers none is drawn with the chance ``G(x) = Γ(c + n)·Γ(N)/(Γ(c)·Γ(N + n))``, c = N − a − x, a the
    union's pseudo-count, so that ``G(x)/G(x − 1) = c/(c + n)``; x is binomial.
    """
    headcount, total = urn.headcount, urn.total
    if urn.keep < 1.0:  # one cell that is kept, among others of which some are
        total += urn.alpha * dropped(headcount, share, urn.keep)[0]
    rest = total - urn.alpha * cells
    if share >= 1.0 or rest <= 0.0:
        return 0.0, 0.0, 0.0
    true = 1.0 - some(headcount, share)
    drawn = math.lgamma(rest + headcount) - math.lgamma(rest) + math.lgamma(total) - math.lgamma(total + headcount)
    term = true * math.exp(drawn)
    neither = urn.keep * term + (1.0 - urn.keep) * true
    odds, found = share / (1.0 - share), neither
    for x in range(1, headcount + 1):
        rest -= 1.0
        term *= (headcount - x + 1.0) / x * odds * max(0.0, rest) / (max(0.0, rest) + headcount)
        found += term
        if term < 1e-12 * found:
            break
    return true, found, neither
