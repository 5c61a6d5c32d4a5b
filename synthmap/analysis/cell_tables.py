"""Errors of parts of a cell, of whole cells and of unions, if the prior is the truth: tables. Public."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.absolute import mean_absolute
from synthmap.analysis.urns import dropped, urn_of
from synthmap.compiled import compiled

STEPS = 16  # points per unit of √t
_POINTS = 4 * STEPS + 1
END = 16.0  # workers at the last point
LONG_SPREAD = 1.0 / 6.0  # mean of φ(1 − φ) over all fractions φ
_LITTLE = 1e-6  # workers, for none at all
_MOST = 200  # values of a count that are summed over; of more, every second, third …


class CellTables(NamedTuple):
    """Functions of t, the workers expected in a unit of a destination; a row for each kind of destination.

    Entry i stands for t = (i/STEPS)². Up to n/k workers a unit is a part of one cell, from there on a union of cells,
    all alike; the second function is that of a part of a larger cell. The last three functions are those of one whole
    cell of pseudo-count α in which t *true* workers are expected, the others being alike.

    Attributes
    ----------
    case : ndarray of int64, shape (destinations,)
        Row of each destination.
    cells : ndarray of float64, shape (cases,)
        Their number k.
    value : ndarray of float64, shape (cases, points, 7)
        E|D| over `mean_absolute` of mean and variance of D, the error of the unit; the variance of the synthetic
        workers of a part, those of the cell given, over t; the chance of synthetic workers, over t; the chance of both
        true and synthetic ones, over what it were if they were independent. Of a whole cell: the first of these, the
        chance of synthetic workers itself, the last.
    """

    case: NDArray[np.int64]
    cells: NDArray[np.float64]
    value: NDArray[np.float64]


def cell_tables(
    headcount: NDArray[np.int64],
    cells: NDArray[np.int64],
    alpha: NDArray[np.float64],
    keep: NDArray[np.float64],
    stop: NDArray[np.int64] | None = None,
) -> CellTables:
    """Return the tables of destinations with n workers in k cells of pseudo-count α, as many synthetic ones drawn.

    An empty cell is kept with the chance `keep`.
    Another thread stops it by making `stop`, shape (1,), other than 0; tables that were still to be made are ones.

    Notes
    -----
    A unit of cells with the share q of the prior has x ~ Binomial(n, q) true workers and y ~ BetaBinomial(n; x + kαq,
    n − x + kα(1 − q)) synthetic ones; one whole cell has α for kαq. A part that has the share r of a cell's mass gets
    Binomial(x, r) true ones. Synthetic ones are spread systematically: ⌊yr⌋ or one more, yr on average, so with the
    variance φ(1 − φ), φ the fraction of yr, and none with the chance 1 − min(1, yr). Sums leave out chances of about
    1e-9. Where empty cells are dropped, y of a cell with x = 0 is 0 where it is; the rest of the urn is an average one,
    and a union of cells is taken to have its mean pseudo-count.
    """
    kinds = np.stack([headcount, cells, alpha, keep]).astype(float)
    cases, case = np.unique(kinds, axis=1, return_inverse=True)
    n, k, pseudo, kept = np.ascontiguousarray(cases)
    value = _tables(n, k, pseudo, kept, np.zeros(1, np.int64) if stop is None else stop)
    return CellTables(case.ravel().astype(np.int64), k, value)


@compiled
def place_of(tables: CellTables, t: float) -> tuple[int, float]:
    """Return the entry before t and how far t lies from it to the next, in [0, 1]; past the end, its very end."""
    where = STEPS * math.sqrt(max(0.0, t))
    last = tables.value.shape[1] - 2
    return (int(where), where - int(where)) if where < last + 1 else (last, 1.0)


@compiled
def read(tables: CellTables, case: int, place: tuple[int, float], function: int) -> float:
    """Return one of the functions at a place."""
    low = tables.value[case, place[0], function]
    return float(low + place[1] * (tables.value[case, place[0] + 1, function] - low))


@compiled
def _tables(
    headcount: NDArray[np.float64],
    cells: NDArray[np.float64],
    alpha: NDArray[np.float64],
    keep: NDArray[np.float64],
    stop: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the functions of each case; whole cells are worked out at every second point."""
    out = np.ones((headcount.size, _POINTS, 7))
    for case in range(headcount.size):
        if stop[0]:
            break
        n, k = int(headcount[case]), int(cells[case])
        gone, varies, together = dropped(n, 1.0 / k, keep[case])
        urn = urn_of(n, alpha[case], keep[case], k * (1.0 - gone), k * varies, k * together)
        total = urn.total + urn.alpha * gone  # with one of the cells kept for sure
        x, y, chance = joint_counts(n, 1.0 / k, urn.alpha, total, keep[case])
        together = 0.0
        for i in range(x.size):
            together += x[i] * (chance[i] * y).sum()
        out[case, 0, 3] = together * k * k / (n * n)
        for point in range(1, _POINTS):
            t = (point / STEPS) ** 2
            if t * k <= n:
                out[case, point, :4] = _part(x, y, chance, t * k / n, t)
            elif 2.0 * t <= n:
                absolute, drawn, both = _cells(n, t / n, (urn.total - n) * t / n, urn.total, 1.0)
                out[case, point, :4] = absolute, 1.0, drawn / t, both
            else:
                out[case, point, :4] = out[case, point - 1, :4]
            if t * k > n:
                out[case, point, 1] = min(out[case, point - 1, 1], LONG_SPREAD / t)
        for point in range(0, _POINTS if k > 1 else 0, 2):
            t = max(_LITTLE, (point / STEPS) ** 2)
            if t < n:
                out[case, point, 4:] = _cells(n, t / n, urn.alpha, total, keep[case])
            else:
                out[case, point, 4:] = out[case, point - 2, 4:]
            if point:
                out[case, point - 1, 4:] = 0.5 * (out[case, point - 2, 4:] + out[case, point, 4:])
    return out


@compiled
def _cells(n: int, share: float, alpha: float, total: float, keep: float) -> NDArray[np.float64]:
    """Return three functions of cells that have a share of the prior and a pseudo-count: those of a whole cell."""
    x, y, chance = joint_counts(n, share, alpha, total, keep)
    absolute, mean, square, true, drawn, both = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        off = y - x[i]
        absolute += (chance[i] * np.abs(off)).sum()
        mean += (chance[i] * off).sum()
        square += (chance[i] * off * off).sum()
        some = (chance[i] * (y > 0.0)).sum()
        drawn += some
        both += some if x[i] > 0.0 else 0.0
        true += chance[i].sum() if x[i] > 0.0 else 0.0
    return np.array([absolute / mean_absolute(mean, square - mean * mean), drawn, both / (drawn * true)])


@compiled
def _part(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    chance: NDArray[np.float64],
    part: float,
    t: float,
) -> NDArray[np.float64]:
    """Return the four functions of a part of a cell in which t workers are expected."""
    most = min(int(x[-1]), int(t + 7.0 * math.sqrt(t) + 5.0))
    lives = np.zeros((most + 1, x.size))  # chance that so many of x true workers live in the part
    for i in range(x.size):
        if part >= 1.0:
            lives[min(most, int(x[i])), i] = 1.0
            continue
        lives[0, i] = (1.0 - part) ** x[i]
        for v in range(min(most, int(x[i]))):
            lives[v + 1, i] = lives[v, i] * (x[i] - v) / (v + 1.0) * part / (1.0 - part)
    here = lives @ chance
    absolute, mean, square, spread, drawn, both = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.size):
        low = math.floor(y[j] * part)
        fraction = y[j] * part - low
        any_drawn = min(1.0, y[j] * part)
        for v in range(most + 1):
            off = low - v
            absolute += here[v, j] * ((1.0 - fraction) * abs(off) + fraction * abs(off + 1.0))
            mean += here[v, j] * (off + fraction)
            square += here[v, j] * ((1.0 - fraction) * off * off + fraction * (off + 1.0) ** 2)
            spread += here[v, j] * fraction * (1.0 - fraction)
            drawn += here[v, j] * any_drawn
            if v > 0:
                both += here[v, j] * any_drawn
    variance = square - mean * mean
    first = absolute / mean_absolute(0.0, variance) if variance > 1e-12 else 1.0
    return np.array([first, spread / t, drawn / t, both / (drawn * (1.0 - here[0].sum()))])


@compiled
def _binomial(n: int, v: int, q: float) -> float:
    """Return the chance of v in Binomial(n, q)."""
    if v > n or q >= 1.0:
        return 1.0 if v == n else 0.0
    ways = math.lgamma(n + 1.0) - math.lgamma(v + 1.0) - math.lgamma(n - v + 1.0)
    return math.exp(ways + v * math.log(q) + (n - v) * math.log1p(-q))


@compiled
def joint_counts(
    n: int, share: float, alpha: float, total: float, keep: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return values of x and of y, and their joint chances, shape (x, y), for cells of that share and pseudo-count.

    `total` is N = n + A; where empty, they are kept with the chance `keep`.
    """
    if share >= 1.0:
        return np.array([float(n)]), np.array([float(n)]), np.ones((1, 1))
    width = 6.0 * math.sqrt(n * share * (1.0 - share)) + 8.0
    first, last = max(0, int(n * share - width)), min(n, int(n * share + width))
    spread = math.sqrt((n + total) / (1.0 + total))
    low, high = n * (first + alpha) / total, n * (last + alpha) / total
    bottom = max(0, int(low - 8.0 * math.sqrt(low) * spread)) if first > 0 or keep == 1.0 else 0
    top = min(n, int(high + 8.0 * math.sqrt(high) * spread + 16.0))
    step = max(1, (top - bottom) // _MOST)
    between = step if first > 0 else 1  # nobody is like no other count; else few sums of the two occur
    times = step // between
    x = np.arange(first, last + 1, between).astype(np.float64)
    y = np.arange(bottom, top + 1, step).astype(np.float64)
    ways, urn = np.empty(y.size), np.empty(x.size + times * (y.size - 1))
    for j in range(y.size):
        ways[j] = math.lgamma(n + 1.0) - math.lgamma(y[j] + 1.0) - math.lgamma(n - y[j] + 1.0)
    for both in range(urn.size):
        ours = first + bottom + between * both + alpha
        urn[both] = math.lgamma(ours) + math.lgamma(n + total - ours) - math.lgamma(total + n)
    chance = np.empty((x.size, y.size))
    for i in range(x.size):
        ours = x[i] + alpha
        whole = math.lgamma(total) - math.lgamma(ours) - math.lgamma(total - ours)
        weight = _binomial(n, int(x[i]), share)
        for j in range(y.size):
            chance[i, j] = weight * math.exp(ways[j] + whole + urn[i + times * j])
        if x[i] == 0.0:
            chance[i] *= keep
            chance[i, 0] += weight * (1.0 - keep) / step  # one value, where each of the others stands for `step`
    return x, y, chance / chance.sum()
