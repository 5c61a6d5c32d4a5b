"""Noisy counts read through the public prior: the posterior of every count, and a table from it. All post-processing.

Nothing here sees a confidential count: the noisy counts are private already, so floats do no harm.

A destination's cells lie in groups, the coarser level of the hierarchy. With n workers, a group's prior share Π and a
cell's π, in words: groups differ from the prior as if they were drawn from a Dirichlet distribution worth `between`
workers, cells within their group from one worth `within`·Π workers. Given its group's expected workers θ, a cell is
negative binomial with shape r = within·π and odds p = θ/(within·Π + θ); its noisy count y turns that into weights
q^|y − n|, and y ≤ 0 (not told apart) into q^n, which is negative binomial again, with p·q. With Gaussian noise the
weights are P(Z = y − n), P(Z ≤ −n) for y ≤ 0 and P(Z ≥ y − n) where y was held at the headcount.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled

_STEPS = 10
_SETTLED = 1e-3  # of the headcount
_NEGLIGIBLE = 1e-12
_UNLIKELY = 1e-4  # units of a count that are less likely than this are not looked at
_HUGE = 1e200
INTERVAL = 0.9
_WITHIN = 1.6448536269514722  # standard deviations: as much of a normal distribution


class Levels(NamedTuple):
    """The public frame of a destination's noisy counts.

    Attributes
    ----------
    share : ndarray of float64, shape (k,)
        Prior share of each cell, π; they add up to 1.
    group : ndarray of int64, shape (k,)
        The group of each cell.
    group_share : ndarray of float64, shape (g,)
        Prior share of each group, Π.
    fades : ndarray of float64, shape (3, T + 1)
        By how much the weight of a true count falls from one to the next, see `noise.Law`; q for geometric noise.
    group_ratio : float
        q of the noise on groups; ≥ 1 stands for no noisy counts of groups.
    between, within : float
        How well the prior fits, in workers.
    """

    share: NDArray[np.float64]
    group: NDArray[np.int64]
    group_share: NDArray[np.float64]
    fades: NDArray[np.float64]
    group_ratio: float
    between: float
    within: float


class Reading(NamedTuple):
    """Posterior of every cell's count.

    Attributes
    ----------
    mean, variance : ndarray of float64, shape (k,)
        The means add up to the public headcount.
    theta : ndarray of float64, shape (g,)
        Expected workers of each group.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    theta: NDArray[np.float64]


@compiled
def noise_variance(ratio: float) -> float:
    """Return the variance of two-sided geometric noise, 2q/(1 − q)²."""
    return float(2.0 * ratio / (1.0 - ratio) ** 2)


@compiled
def interval(mean: float, variance: float) -> tuple[int, int]:
    """Return whole (low, high) that hold about `INTERVAL` of a count of that mean and variance.

    By a gamma distribution of the same moments (Wilson and Hilferty, PNAS 17, 1931), rounded outwards.
    """
    if mean <= 0.0 or variance <= 0.0:
        return int(np.floor(mean)), int(np.ceil(mean))
    ninth = variance / (9.0 * mean * mean)
    low = mean * max(0.0, 1.0 - ninth - _WITHIN * np.sqrt(ninth)) ** 3
    high = mean * max(0.0, 1.0 - ninth + _WITHIN * np.sqrt(ninth)) ** 3
    return int(np.floor(low)), int(np.ceil(high))


@compiled
def odds_of(levels: Levels, group: int, theta: float) -> float:
    """Return p of the cells of a group whose expected workers are `theta`."""
    worth = levels.within * levels.group_share[group]
    return float(theta / (worth + theta)) if worth > 0.0 else 0.0


@compiled
def fades_at(noisy: int, headcount: int) -> tuple[int, int]:
    """Return the rows of `Levels.fades` for true counts above and below a noisy one."""
    if noisy == 0:
        return 1, 1
    return (2, 1) if noisy == headcount else (0, 0)


@compiled
def posterior(
    noisy: int, shape: float, odds: float, up: NDArray[np.float64], down: NDArray[np.float64]
) -> tuple[float, float]:
    """Return mean and variance of a negative binomial count (`shape`, `odds`) given its noisy count.

    The weight of n is Γ(n + r)/n!·p^n times a likelihood that falls by `up`[d] or `down`[d] from |y − n| = d to d + 1;
    sums run from n = y both ways until what is left is negligible.
    """
    total, first, second = 1.0, 0.0, 0.0  # moments about y
    here, weight, n = 1.0, 1.0, noisy
    while weight > _NEGLIGIBLE * total:
        weight *= odds * up[min(n - noisy, up.size - 1)] * (n + shape) / (n + 1.0)
        n += 1
        total += weight
        first += weight * (n - noisy)
        second += weight * (n - noisy) ** 2
        if total > _HUGE:
            total, first, second, weight = total / _HUGE, first / _HUGE, second / _HUGE, weight / _HUGE
            here /= _HUGE
    weight, n = here, noisy
    while n > 0:
        step = down[min(noisy - n, down.size - 1)] * n / (odds * (n - 1 + shape))
        weight *= step
        n -= 1
        total += weight
        first += weight * (n - noisy)
        second += weight * (n - noisy) ** 2
        if step < 0.9 and weight * n < _NEGLIGIBLE * total * min(1.0, shape):
            break  # smaller n weigh at most n/r times as much together
        if total > _HUGE:
            total, first, second, weight = total / _HUGE, first / _HUGE, second / _HUGE, weight / _HUGE
    mean = first / total
    return noisy + mean, max(0.0, second / total - mean * mean)


@compiled
def _cells(
    noisy: NDArray[np.int64], headcount: int, levels: Levels, found: Reading
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fill mean and variance of every cell given the groups' expected workers; return their sums by group."""
    groups = levels.group_share.size
    first, second = np.zeros(groups), np.zeros(groups)
    for i in range(noisy.size):
        g = levels.group[i]
        r, p = levels.within * levels.share[i], odds_of(levels, g, found.theta[g])
        if r <= 0.0 or p <= 0.0:
            found.mean[i], found.variance[i] = 0.0, 0.0
        elif noisy[i] > 0 or levels.fades.shape[1] > 1:
            up, down = fades_at(noisy[i], headcount)
            found.mean[i], found.variance[i] = posterior(noisy[i], r, p, levels.fades[up], levels.fades[down])
        else:
            quiet = p * levels.fades[0, 0]
            found.mean[i] = r * quiet / (1.0 - quiet)
            found.variance[i] = found.mean[i] / (1.0 - quiet)
        first[g] += found.mean[i]
        second[g] += found.variance[i]
    return first, second


@compiled
def read_counts(noisy: NDArray[np.int64], noisy_groups: NDArray[np.int64], headcount: int, levels: Levels) -> Reading:
    """Return the posterior of every cell's count, held to the public headcount.

    Parameters
    ----------
    noisy : ndarray of int64, shape (k,)
        n_i + Z_i, held between 0 and the headcount.
    noisy_groups : ndarray of int64, shape (g,)
        The same of groups, with noise of their own; empty for one level.
    headcount : int
        Public.
    levels : Levels

    Notes
    -----
    A group's θ is found by repeating: cells given θ; their sum combined with the group's own noisy count (both taken as
    normal); all groups held to the headcount, each giving way by its variance; θ as the mean of a gamma prior worth
    between·Π workers after so many were seen. In the end cells give way to their group's workers the same way.
    """
    groups = levels.group_share.size
    found = Reading(np.empty(noisy.size), np.empty(noisy.size), headcount * levels.group_share)
    wanted = found.theta.copy()
    seen, spread = np.zeros(groups), np.zeros(groups)
    blur = noise_variance(levels.group_ratio) if levels.group_ratio < 1.0 else 0.0
    for _ in range(_STEPS):
        seen, spread = _cells(noisy, headcount, levels, found)
        held = spread.copy()
        for g in range(groups):
            wanted[g] = seen[g]
            if levels.group_ratio < 1.0 and spread[g] > 0.0:
                wanted[g] += spread[g] / (spread[g] + blur) * (noisy_groups[g] - seen[g])
                held[g] = spread[g] * blur / (spread[g] + blur)
        room, left = held.sum(), headcount - wanted.sum()
        change = 0.0
        for g in range(groups):
            wanted[g] = max(0.0, wanted[g] + (left * held[g] / room if room > 0.0 else 0.0))
            if levels.group_share[g] > 0.0:
                before = found.theta[g]
                found.theta[g] = (levels.between * levels.group_share[g] + wanted[g]) / (
                    levels.between / headcount + 1.0
                )
                change += abs(found.theta[g] - before)
        if change < _SETTLED * headcount:
            break
    for i in range(noisy.size):
        g = levels.group[i]
        if spread[g] > 0.0:
            found.mean[i] = max(0.0, found.mean[i] + (wanted[g] - seen[g]) * found.variance[i] / spread[g])
    total = found.mean.sum()
    if total > 0.0:
        found.mean[:] *= headcount / total
    else:
        found.mean[:] = headcount * levels.share
    return found


@compiled
def whole_counts(mean: NDArray[np.float64], headcount: int, offset: int | np.int64, units: int) -> NDArray[np.int64]:
    """Return whole counts that add up to the headcount and, over a uniform `offset` below `units`, have these means.

    Systematic: the workers of any run of neighbouring cells are within one of the sum of their means.
    """
    out = np.zeros(mean.size, np.int64)
    below, placed = 0.0, np.int64(0)
    last = 0
    for i in range(mean.size):
        below += mean[i]
        upto = np.int64(np.floor(below))
        if offset >= np.int64(np.ceil((1.0 - (below - upto)) * units)):
            upto += 1
        upto = min(np.int64(headcount), upto)
        out[i] = max(np.int64(0), upto - placed)
        placed += out[i]
        if mean[i] > 0.0:
            last = i
    out[last] += headcount - placed  # what the sums' last digits left over
    return out


@compiled
def _tails(
    noisy: int, shape: float, odds: float, up: NDArray[np.float64], down: NDArray[np.float64], cap: int
) -> NDArray[np.float64]:
    """Return P(n ≥ 1), P(n ≥ 2), … of a count as far as they are likely, at most `cap`."""
    if shape <= 0.0 or odds <= 0.0:
        return np.empty(0)
    top = min(cap, noisy)
    weight = np.zeros(cap + 1)
    weight[top] = 1.0
    for n in range(top, cap):
        weight[n + 1] = weight[n] * odds * up[min(n - top, up.size - 1)] * (n + shape) / (n + 1.0)
        if weight[n + 1] > _HUGE:
            weight /= _HUGE
    for n in range(top, 0, -1):
        weight[n - 1] = weight[n] * down[min(top - n, down.size - 1)] * n / (odds * (n - 1 + shape))
        if weight[n - 1] > _HUGE:
            weight /= _HUGE
    tail = weight[::-1].cumsum()[::-1] / weight.sum()
    likely = 0
    while likely < cap and tail[likely + 1] > _UNLIKELY:
        likely += 1
    return np.asarray(tail[1 : likely + 1], np.float64)


@compiled
def likely_counts(noisy: NDArray[np.int64], headcount: int, levels: Levels, found: Reading) -> NDArray[np.int64]:
    """Return the whole counts that are expected to agree most with the true ones: the likeliest units.

    The expected common part of x with the truth is Σ_i Σ_{j ≤ x_i} P(n_i ≥ j), so the largest terms are taken.
    """
    cells = np.empty(16 + noisy.size, np.int64)
    likely = np.empty(cells.size)
    size = 0
    for i in range(noisy.size):
        g = levels.group[i]
        r, p = levels.within * levels.share[i], odds_of(levels, g, found.theta[g])
        cap = min(headcount, noisy[i] + 8 + int(2.0 * found.mean[i]))
        up, down = fades_at(noisy[i], headcount)
        tails = _tails(noisy[i], r, p, levels.fades[up], levels.fades[down], cap)
        while size + tails.size > cells.size:
            cells, likely = np.append(cells, np.empty_like(cells)), np.append(likely, np.empty_like(likely))
        cells[size : size + tails.size] = i
        likely[size : size + tails.size] = tails
        size += tails.size
    out = np.zeros(noisy.size, np.int64)
    for place in np.argsort(-likely[:size], kind="mergesort")[:headcount]:
        out[cells[place]] += 1
    short = headcount - out.sum()
    if short:
        out += whole_counts(found.mean * (short / headcount), short, 1, 2)
    return out
