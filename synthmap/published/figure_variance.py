"""The expected squared error of sums of flows, by classes of destinations: plain arithmetic on public numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
ROUNDING = 1.0 / 6.0


class Parts(NamedTuple):
    """What errors are made of, of each destination or summed over some; arrays of one shape.

    Attributes
    ----------
    destinations : 1 for a destination.
    size : m, workers.
    spread : m²·v, so that √(q·(1 − q)·m²·v) is the expected error of a share q of whole cells (`share_variance`).
    believed : m²·(1/(1 + S) + 1/n), the same of the prior alone.
    inside : m²·(1/(1 + W) + 1/n + 1/m), the same of parts of a cell.
    per_cell : m/k.
    pulled : Workers that follow the prior whatever the figure: m·s, or m·s·S/(S + n) of noisy counts.
    doubt : m/√(1 + S), how far the prior is believed to be off.
    precision : 1/ω of the noise on a cell's count, all segments; 0 where none is added.
    by_unit : 1 where the cells are the units of a level.
    """

    destinations: Numbers
    size: Numbers
    spread: Numbers
    believed: Numbers
    inside: Numbers
    per_cell: Numbers
    pulled: Numbers
    doubt: Numbers
    precision: Numbers
    by_unit: Numbers


class Shapes(NamedTuple):
    """How the origins of figures lie among the units of a level, each of shape (figures,) or (1,).

    Attributes
    ----------
    cells : Units that they touch, at least 1.
    whole : Mean share of these units that they take, weighted by how much lies there.
    """

    cells: Numbers
    whole: Numbers


class Drawn(NamedTuple):
    """How a release was drawn: whether noise was added to counts (else they were resampled), and W, in workers."""

    noisy: bool
    within: float


class Expected(NamedTuple):
    """Errors of figures, each of shape (figures, columns).

    Attributes
    ----------
    error : Root mean square error, workers.
    prior : Share of the figure that follows the prior, not data, in [0, 1].
    """

    error: Numbers
    prior: Numbers


def expected_error(
    workers: NDArray[Any], sums: Parts, shapes: Shapes | None, drawn: Drawn, alike: Numbers | None = None
) -> Expected:
    """Return the expected errors of figures; arguments as of `FigureErrors.expected`.

    Notes
    -----
    Destinations are drawn independently, and the prior may fit each differently: those squares add up. The share q of a
    small destination cannot be told from its own draw; in each class it is X/M over all its destinations, and counts as
    at least half a worker and at most half a worker less than all, since 0 is not known to be 0. As every term is
    concave in q, that is never less than with each its own.

    *Whole cells.* Resampled counts: ``Σ_d m²v·q(1 − q)``, and the weight of the prior is its share s of the workers.
    Noisy counts: what the prior leaves open, ``m²(1/(1 + S) + 1/n)·q(1 − q)``, and the noise of the c cells that the
    figure takes, ``c·ω``, as precisions together. The weight of the prior is the share of the former that remains, and
    s·S/(S + n): cells are read with the share that a neighbourhood has, and that with the prior's. What is read is then
    rounded at random: by a part f of a worker with the variance f(1 − f), 1/6 for a part that may be any.

    *Parts of cells* (`unresolved`) are the prior's share of a cell's workers: not less than
    ``Σ_d m²(1/(1 + W) + 1/n + 1/m)·q(1 − q)`` for as much of q(1 − q) as lies inside cells, W the workers that the
    prior is worth there.

    *The figure as a whole.* Where the prior is off for all destinations alike, that does not average out. Taking the
    odds of a figure in the prior to be off by 1/√(1 + S) between cells, in logarithms, the square of
    ``Σ X·weight·(1 − X/M)/√(1 + S)`` is added. Inside cells a figure takes a part r of a cell, which a prior that is
    worth W workers there knows to √(r(1 − r)/(1 + W)): the square of ``Σ X·inside·√((1 − r)/r)/√(1 + W)`` is added, r
    at most a half, as of larger figures only the ends lie inside cells; X is that of all others where these are fewer.
    That the misfit of a single destination and of all of them are taken to be of one size is an assumption: no public
    number tells them apart.

    *By distance*, of which the prior is made, it is off alike: where it falls off too fast, it does so seen from every
    destination. What the share Q that a band has of all bands (`alike`) is expected to be off by at one destination,
    √(Q(1 − Q)/(1 + S)), then holds for all: ``Σ X·weight·√((1 − Q)/Q)/√(1 + S)``.
    """
    parts = Parts(*(one[:, None, :] for one in sums))
    m, there = parts.size, parts.size > 0
    size = np.where(there, m, 1.0)
    every = m.sum(axis=2)
    x = np.minimum(workers, m)
    half = 0.5 / np.where(every > 0, every, 1.0)[:, :, None]
    share = np.where(there, np.clip(x / size, np.minimum(half, 0.5), np.maximum(1.0 - half, 0.5)), 0.0)
    both, smaller = share * (1.0 - share), np.minimum(share, 1.0 - share)
    cells = size / np.where(there, parts.per_cell, 1.0)
    apart, taken = unresolved(smaller, cells), np.maximum(1.0, smaller * cells)
    part = np.minimum(smaller * cells, 0.5)
    if shapes is not None:
        units = np.where(there, parts.by_unit / np.where(there, parts.destinations, 1.0), 0.0)
        among, whole = (one[:, None, None] for one in shapes)
        apart = units * (1.0 - whole) + (1.0 - units) * apart
        taken = units * among + (1.0 - units) * taken
        part = units * np.minimum(whole, 0.5) + (1.0 - units) * part
    between, weight = both * parts.spread, np.where(there, parts.pulled / size, 0.0)
    if drawn.noisy:
        alone = np.where(there, both * parts.believed, 1.0)
        told = parts.precision / (np.maximum(parts.destinations, 1.0) ** 2 * taken)
        between = np.where(there, np.minimum(between, 1.0 / (1.0 / alone + told)), 0.0)
        weight = np.minimum(1.0, weight + between / alone)
        between = between + np.minimum(smaller * m, parts.destinations * ROUNDING)
    independent = between + apart * np.maximum(0.0, both * parts.inside - between)
    inside = (1.0 - weight) * apart
    some = x.sum(axis=2)
    outside = 1.0 - some / np.where(every > 0, every, 1.0)
    odds = outside if alike is None else np.sqrt(np.maximum(0.0, alike - some) / np.maximum(some, 0.5))
    off = odds * (x * weight * parts.doubt / size).sum(axis=2)
    share_odds = np.sqrt((1.0 - part) / np.where(part > 0, part, 1.0))
    off_inside = (np.minimum(x, m - x) * inside * share_odds).sum(axis=2) / np.sqrt(1.0 + drawn.within)
    error = np.sqrt(independent.sum(axis=2) + off**2 + off_inside**2)
    follows = (x * (weight + inside)).sum(axis=2) / np.where(some > 0, some, 1.0)
    return Expected(np.asarray(error), np.asarray(np.minimum(1.0, follows)))


def unresolved(q: Numbers, cells: Numbers) -> Numbers:
    """Return the share of q(1 − q) that lies inside cells, of a figure that is a range of shares, anywhere.

    Parameters
    ----------
    q : ndarray of float64
        Its share.
    cells : ndarray of float64
        k; cells have equal shares.

    Notes
    -----
    A part r of a cell varies by r(1 − r) of the cell. At a place taken uniformly, a range of r = q·k < 1 cells lies in
    one cell or across the edge of two: r − r² + r³/3 on average; a longer one has two ends, 2·(1/2 − 1/3) = 1/3.
    """
    r = q * cells
    mean = np.where(r < 1.0, r - r**2 + r**3 / 3.0, 1.0 / 3.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(q * (1.0 - q) > 0, np.minimum(1.0, mean / (cells * q * (1.0 - q))), 0.0))
