"""What measures are expected to be, in closed form from public parameters alone: no ε is spent.

Arguments are functions of headcounts, plan and prior, never of an origin.
"""

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import betaln, gammaln
from scipy.stats import binom, norm

HEADCOUNT_EDGES = (1.0, 2.0, 5.0, 20.0, 100.0, 1_000.0, 10_000.0, np.inf)  # classes of destinations, workers
LENGTH_EDGES_KM = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, np.inf)  # classes of commutes
_EXACT = 200  # workers up to which the common part is summed exactly
_HALF_NORMAL = math.sqrt(2.0 / math.pi)


def expected_mae_km(rmse_km: NDArray[np.float64], bias_km: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
    """Return the expected absolute error of average commutes, km, from their root mean square errors.

    Parameters
    ----------
    rmse_km : ndarray of float64
        For instance `predicted_km` of a plan.
    bias_km : ndarray of float64
        Expected signed error, which is part of it.

    Notes
    -----
    Of a normal error with that mean b and mean square: ``σ·√(2/π)·e^(−b²/2σ²) + b·(1 − 2Φ(−b/σ))``, σ² = rmse² − b²;
    ``√(2/π)·rmse`` without one. It is a little high for heavier tails.
    """
    bias = np.minimum(np.abs(bias_km), rmse_km)
    spread = np.sqrt(rmse_km**2 - bias**2)
    ratio = np.divide(bias, spread, out=np.full_like(rmse_km, np.inf), where=spread > 0)
    return np.asarray(_HALF_NORMAL * spread * np.exp(-0.5 * ratio**2) + bias * (1.0 - 2.0 * norm.cdf(-ratio)))


def expected_wasserstein_km(
    rmse_km: NDArray[np.float64], variance_km2: NDArray[np.float64], width_km: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the expected Wasserstein distance of each destination's commute lengths, km.

    Parameters
    ----------
    rmse_km : ndarray of float64
        Root mean square error of the average commute, `predicted_km` of a plan.
    variance_km2, width_km : ndarray of float64
        Variance of a commute length under the prior, and ``∫ √(F·(1 − F)) dt`` of its distribution F.

    Notes
    -----
    The distance is ``∫ |error of F(t)| dt``. Shares are taken to err as `share_variance` has it, √(F·(1 − F)·v), which
    gives an average commute the error √(σ²·v): so v = (rmse/σ)², and normal errors make it ``√(2/π)·rmse·width/σ``.
    It is at least `expected_mae_km`, and high for few workers.
    """
    spread = np.sqrt(variance_km2)
    ratio = np.divide(width_km, spread, out=np.ones_like(spread), where=spread > 0)
    return np.asarray(_HALF_NORMAL * rmse_km * ratio)


def expected_prior_share(
    headcount: NDArray[np.int64], mass: NDArray[np.float64], cells: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return A/(n + A), the expected share of synthetic workers that come from the prior; 1 with one cell.

    Parameters
    ----------
    headcount : ndarray of int64
        n.
    mass : ndarray of float64
        A = Σα, workers.
    cells : ndarray of int64
        k.
    """
    return np.where(cells == 1, 1.0, mass / (headcount + mass))


def share_variance(
    headcount: NDArray[np.int64],
    size: NDArray[np.int64],
    prior_share: NDArray[np.float64],
    strength: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return v, where √(q·(1 − q)·v) is the expected error of a share q of a destination's workers.

    Parameters
    ----------
    headcount, size : ndarray of int64
        n and m, workers.
    prior_share : ndarray of float64
        s = A/(n + A); 1 where all is drawn from the prior.
    strength : ndarray of float64
        How well the prior is believed to fit a destination, in workers: ``prior_strength`` of a plan.

    Notes
    -----
    Root mean square over true shares that scatter around the prior's share q, and over draws; for origins that
    make up whole cells: inside a cell all is the prior's. As in the planner's error of an average commute,

        v = s²·h + (1 − (1 − s)²·h)·(m + N)/(m·(1 + N)),   h = (n + S)/(n·(1 + S)),   N = n + A,   S = strength.

    Under a Dirichlet distribution around q the true share varies by q·(1 − q)·h, and so does the urn's mean, by
    (1 − s)²·h; what is left of q·(1 − q) is the variance of one worker drawn.
    """
    data = 1.0 - prior_share  # n/N
    apart = (headcount + strength) / (headcount * (1.0 + strength))
    drawing = (size * data + headcount) / (data + headcount) / size
    return np.asarray(prior_share**2 * apart + (1.0 - data**2 * apart) * drawing)


def planned_variance(plan: pl.DataFrame) -> NDArray[np.float64]:
    """Return v of each destination of a plan: what its mechanism planned, or `share_variance` of Dirichlet resampling.

    Parameters
    ----------
    plan : polars.DataFrame
        Columns ``headcount``, ``synthetic_size``, ``prior_share``, ``prior_strength`` and ``share_variance``; the last
        is null where the mechanism tells none.
    """
    names = ("headcount", "synthetic_size", "prior_share", "prior_strength")
    resampled = share_variance(*(plan[name].to_numpy() for name in names))
    return np.where(plan["share_variance"].is_null().to_numpy(), resampled, plan["share_variance"].to_numpy())


def noise_floor(variance: NDArray[np.float64], size: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the workers from which on a destination's figure is expected to be off by at most half of itself.

    Infinite where that holds for no figure up to half of the total.

    Notes
    -----
    The smallest figure m·q with √(q·(1 − q)·v) ≤ q/2 is m·v/(v + 1/4), v as in `share_variance`; rounded up.
    """
    return np.where(variance > 0.25, np.inf, np.ceil(size * variance / (variance + 0.25)))


def sampling_sd_km(
    variance_km2: NDArray[np.float64],
    headcount: NDArray[np.int64],
    size: NDArray[np.int64],
    mass: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the standard deviation of a destination's synthetic average commute, km, its true origins given.

    Parameters
    ----------
    variance_km2 : ndarray of float64
        Variance of the commute length of one synthetic worker; from public data, that of the prior.
    headcount, size : ndarray of int64
        n and m, workers.
    mass : ndarray of float64
        A = Σα, workers.

    Notes
    -----
    ``σ²/m · (m + n + A)/(1 + n + A)``, the variance of the mean of m draws from a Pólya urn: with m = n about twice
    that of independent draws. It is exact where cells are single zones, an upper bound where they are larger.

    References
    ----------
    Johnson, Kotz, Balakrishnan, "Discrete Multivariate Distributions", section 35.13.1.
    """
    total = headcount + mass
    return np.asarray(np.sqrt(variance_km2 / size * (size + total) / (1.0 + total)))


def expected_common_part(
    headcount: NDArray[np.int64],
    size: NDArray[np.int64],
    cells: NDArray[np.int64],
    alpha: NDArray[np.float64],
    keep: NDArray[np.float64] | float = 1.0,
) -> NDArray[np.float64]:
    """Return the expected common part of each destination's table of cells, if the prior were the truth.

    Parameters
    ----------
    headcount, size : ndarray of int64, shape (destinations,)
        n and m, workers, at least 1.
    cells : ndarray of int64
        k; cells are taken to have equal prior mass, as prior-mass coarsening makes them.
    alpha : ndarray of float64
        α of a cell, segments summed, workers; ignored where k = 1.
    keep : ndarray of float64
        Chance f, the same in all cells, that an empty cell is kept; of less than 1 all segments are taken for one.

    Returns
    -------
    ndarray of float64
        Expectation of ``2 Σ min(n_i, x_i)/(n + m)``, in [0, 1]; for m = n it is 1 − (expected total variation).

    Notes
    -----
    ``n_i ~ Binomial(n, 1/k)`` and, given n_i, ``x_i ~ BetaBinomial(m; n_i + α, n − n_i + (k − 1)α)``; the
    expectation is linear, so it is ``2k·E min(n_1, x_1)/(n + m)``. Up to 200 workers the sums are exact. Above,
    ``E min(v, X)`` is that of a normal X with the same mean and variance, ``v + (μ − v)·Φ(z) − σ·φ(z)`` at
    ``z = (v − μ)/σ``, held between 0 and min(v, μ). Where empty cells are dropped, the pseudo-counts of the others are
    those of as many as make the mean of one over the urn's total what it is: off by 0.005 from 3 workers on, of one
    worker by up to 0.02.
    Where the prior is the truth, workers drawn from it are nearly as good as data, so this tells above all what drawing
    costs; where the prior is wrong, the real common part falls with A/(n + A).
    """
    columns = np.broadcast_arrays(headcount, size, cells, alpha, keep)
    cases, inverse = np.unique(np.stack(columns).astype(float), axis=1, return_inverse=True)
    values = np.array([_common_part(int(n), int(m), int(k), a, f) for n, m, k, a, f in cases.T.tolist()])
    return np.asarray(values[inverse.ravel()])


def expected_pairs(
    headcount: NDArray[np.int64],
    size: NDArray[np.int64],
    cells: NDArray[np.int64],
    alpha: NDArray[np.float64],
    keep: NDArray[np.float64] | float = 1.0,
) -> tuple[float, float]:
    """Return the shares of occupied cells that are spurious and missing, if the prior were the truth.

    Parameters
    ----------
    headcount, size, cells, alpha, keep
        As `expected_common_part`.

    Returns
    -------
    (spurious, missing) : float
        Of the cells occupied in the synthetic table, those empty in the true one; of those occupied there, those empty
        in the synthetic one. Expected numbers over all destinations, divided.

    Notes
    -----
    The model is that of `expected_common_part`; given n_i = v, a cell stays empty with the chance
    ``B(v + α, n − v + (k − 1)α + m)/B(v + α, n − v + (k − 1)α)``, B the beta function, and where it is empty with
    the chance 1 − f anyway. Sums over v leave out 1e-12.
    """
    columns = np.broadcast_arrays(headcount, size, cells, alpha, keep)
    cases, times = np.unique(np.stack(columns).astype(float), axis=1, return_counts=True)
    each = np.array([_pairs(int(n), int(m), int(k), a, f) for n, m, k, a, f in cases.T.tolist()])
    true, drawn, both = times @ each
    return float(1.0 - both / drawn), float(1.0 - both / true)


def _pairs(n: int, m: int, k: int, alpha: float, keep: float) -> tuple[float, float, float]:
    """Return the expected numbers of cells occupied in the true table, in the synthetic one, and in both."""
    if k == 1:
        return 1.0, 1.0, 1.0
    v = np.arange(max(0, int(binom.ppf(1e-12, n, 1.0 / k)) - 1), int(min(n, binom.isf(1e-12, n, 1.0 / k) + 1)) + 1)
    weight = binom.pmf(v, n, 1.0 / k)
    ours, rest, occupied = v + alpha, _rest(v, n, k, alpha, keep), v > 0
    some = np.where(occupied, 1.0, keep) * (1.0 - np.exp(betaln(ours, rest + m) - betaln(ours, rest)))
    return float(k * weight[occupied].sum()), float(k * (weight @ some)), float(k * (weight @ (some * occupied)))


def _rest(v: NDArray[np.int64], n: int, k: int, alpha: float, keep: float) -> NDArray[np.float64]:
    """Return what the other cells hold in the urn, if v of n workers are in one of k cells and it is kept.

    Notes
    -----
    Of K = k − 1 others ``D = K·(1 − f)·(1 − 1/K)^(n − v)`` are dropped, on average; they vary, and the mean of one over
    a total N is about ``(1 + α²·var D/N²)/N``.
    """
    others, left = k - 1, n - v
    dropped = others * (1.0 - keep) * (1.0 - 1.0 / others) ** left
    two = others * (others - 1) * (1.0 - keep) ** 2 * (1.0 - 2.0 / others) ** left
    total = n + alpha * (k - dropped)
    spread = alpha**2 * (dropped + two - dropped**2) / total**2
    return np.asarray(total / (1.0 + spread) - v - alpha, np.float64)


def _common_part(n: int, m: int, k: int, alpha: float, keep: float) -> float:
    """Return the expectation for one destination."""
    if k == 1:
        return 2.0 * min(n, m) / (n + m)
    high = int(min(n, binom.isf(1e-12, n, 1.0 / k) + 1))
    low = int(max(1, binom.ppf(1e-12, n, 1.0 / k)))
    v = np.arange(low, high + 1)
    weight = binom.pmf(v, n, 1.0 / k)
    ours = np.asarray(v + alpha, np.float64)
    rest = _rest(v, n, k, alpha, keep)
    smaller = _exact_minimum(v, m, ours, rest) if max(n, m) <= _EXACT else _normal_minimum(v, m, ours, rest)
    return float(2.0 * k * (weight @ smaller) / (n + m))


def _exact_minimum(
    v: NDArray[np.int64], m: int, ours: NDArray[np.float64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E min(v, X), X ~ BetaBinomial(m; ours, rest)."""
    x = np.arange(m + 1)
    ways = gammaln(m + 1) - gammaln(x + 1) - gammaln(m - x + 1)
    a, b = ours[:, None], rest[:, None]
    pmf = np.exp(ways + betaln(x + a, m - x + b) - betaln(a, b))
    return np.asarray((pmf * np.minimum(v[:, None], x)).sum(axis=1))


def _normal_minimum(
    v: NDArray[np.int64], m: int, ours: NDArray[np.float64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E min(v, X) for a normal X with the moments of BetaBinomial(m; ours, rest)."""
    total = ours + rest
    mean = m * ours / total
    sd = np.sqrt(m * ours * rest / total**2 * (total + m) / (total + 1.0))
    z = (v - mean) / sd
    return np.asarray(np.clip(v + (mean - v) * norm.cdf(z) - sd * norm.pdf(z), 0.0, np.minimum(v, mean)))
