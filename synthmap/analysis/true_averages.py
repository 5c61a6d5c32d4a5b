"""A destination's true average commute as far as public data tell it, and the error expected given where it lies."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from synthmap.analysis.prior_distances import PriorCommutes
from synthmap.analysis.prior_world import Setting
from synthmap.analysis.read import PublishedPlan

_SMALLEST_KM = 1e-9
_SMALLEST_SPREAD = 1e-4  # standard deviation over mean
_NEGLIGIBLE = 1e-12  # a chance that rounding may have made


class TrueAverages(NamedTuple):
    """What is known of true average commutes; arrays of float64, shape (destinations,).

    Attributes
    ----------
    mean_km, variance_km2 : ndarray
    slope : ndarray
        By how much the expected error falls, km, where the true average is 1 km longer.
    """

    mean_km: NDArray[np.float64]
    variance_km2: NDArray[np.float64]
    slope: NDArray[np.float64]


class ClassErrors(NamedTuple):
    """Errors of average commutes given that the true one lies in [low, high); arrays of shape (destinations,).

    Attributes
    ----------
    low, high : float
        In km; infinite without an upper end.
    chance : ndarray of float64
        That it does.
    rmse_km, bias_km : ndarray of float64
        Root mean square and mean error; without meaning where the chance is 0.
    """

    low: float
    high: float
    chance: NDArray[np.float64]
    rmse_km: NDArray[np.float64]
    bias_km: NDArray[np.float64]


def true_averages(setting: Setting, plan: PublishedPlan, commutes: PriorCommutes) -> TrueAverages:
    """Return what is known of each destination's true average commute.

    Notes
    -----
    As the planner takes it (`predicted_errors`, `predict_one`), with n workers, k cells on the map and S the strength:
    true origins scatter around the prior, so a true average ℓ has the prior's mean μ and the variance V = B + I. What
    cells make of it is ``B = β²·h``, h = 1/n + (1 − 1/n)/(1 + S), β² the prior's variance of the mean length of a cell;
    what is inside them ``I = ω²·h_k``, h_k the same of k + S. Of noisy counts h is of groups; cells of one group vary
    by 1/n + 1/(strength inside).

    Of a cell's deviation from the prior resampling undoes the share s = A/(n + A), of what is inside cells all. So the
    error has the covariance −(s·B + I) with ℓ, and falls by ``(s·B + I)/V`` per km. Noisy counts are read by Bayes'
    rule, and the error of a posterior mean has the covariance −(its mean square) with the truth: that is what was
    planned without rounding, β²/n², and spreading inside cells, ω²/n/max(1, n/k).

    All n workers are taken to live on the map. With a tenth of the prior elsewhere that is seen nowhere; with a half,
    true averages scatter more than is told, and errors of short and long ones are told up to a third too small.
    """
    n, parts, strength = plan.headcount.astype(float), commutes.parts, commutes.strength
    apart, apart_inside = (1.0 / n + (1.0 - 1.0 / n) / (k + strength) for k in (1.0, parts))
    inside = commutes.inside_km2 * apart_inside
    if plan.resampled:
        between = (commutes.groups_km2 + commutes.cells_km2) * apart
        undone = plan.prior_share * between + inside
    else:
        within = 1.0 / n + 1.0 / np.maximum(setting.strength_inside, strength)
        between = commutes.groups_km2 * apart + commutes.cells_km2 * within
        drawing = (commutes.groups_km2 + commutes.cells_km2) / n**2 + commutes.inside_km2 / np.maximum(n, n**2 / parts)
        undone = np.maximum(0.0, plan.predicted_km**2 - drawing)
    mean = np.maximum(commutes.mean_km, _SMALLEST_KM)
    variance = np.maximum(between + inside, (_SMALLEST_SPREAD * mean) ** 2)
    return TrueAverages(mean, variance, np.minimum(1.0, undone / variance))


def errors_by_true_average(
    averages: TrueAverages, rmse_km: NDArray[np.float64], bias_km: NDArray[np.float64], edges_km: Sequence[float]
) -> Iterator[ClassErrors]:
    """Yield the errors expected in each class of true average commutes.

    Parameters
    ----------
    averages : TrueAverages
    rmse_km, bias_km : ndarray of float64, shape (destinations,)
        Root mean square and mean error, whatever the true average is. NaN where unknown, and so in every class; an
        unknown mean error counts as 0 in the root mean square of a class.
    edges_km : sequence of float
        Ascending from 0 to infinity.

    Notes
    -----
    Given ℓ the error has the mean ``e = bias − slope·(ℓ − μ)`` and the mean square e² + rmse² − bias² − slope²·V: over
    all classes together that is what it was. ℓ is taken to have a gamma distribution, of shape a = μ²/V. With G(a, z)
    its chance to lie below z·V/μ and D = G(a, z) − G(a + 1, z), the sums of ℓ − μ and of (ℓ − μ)² below are −μ·D and
    V·(G(a, z) − (z − a + 1)·D). In worlds drawn as planned for Rhode Island (ε = 1 and 4) signed errors of classes from
    5 to 40 km are met to 0.2 km, of noisy counts to 0.6 km; of shorter and longer ones, which one worker in three
    hundred has, they are told up to a third too small.
    """
    mean, variance, slope = averages
    shape = mean**2 / variance
    known = np.nan_to_num(bias_km)
    rest = np.maximum(0.0, rmse_km**2 - known**2 - slope**2 * variance)
    below = np.zeros((3, mean.size))
    for low, high in pairwise(edges_km):
        if np.isinf(high):
            upper = np.stack([np.ones(mean.size), np.zeros(mean.size), variance])
        else:
            z = high * mean / variance
            chance = gammainc(shape, z)
            less = chance - gammainc(shape + 1.0, z)
            upper = np.stack([chance, -mean * less, variance * (chance - (z - shape + 1.0) * less)])
        chance, first, second = upper - below
        below = upper
        divisor = np.maximum(chance, _NEGLIGIBLE)
        bias = known - slope * first / divisor
        square = known**2 + rest + (slope**2 * second - 2.0 * known * slope * first) / divisor
        rmse = np.sqrt(np.maximum(square, bias**2))
        chance = np.where(chance > _NEGLIGIBLE, chance, 0.0)
        yield ClassErrors(low, high, chance, rmse, np.where(np.isnan(bias_km), np.nan, bias))
