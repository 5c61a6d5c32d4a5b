"""Noisy histograms, one destination after the other: coarsen, add noise, read through the prior, spread."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import Prior, PriorModel, mass_below, prior_at_scale, worth
from synthmap.kernels.bounded import uniform_below
from synthmap.kernels.destination import cell_masses, cells_of, coarsen, spread
from synthmap.kernels.noise import NOISE_UNITS, Law, add_noise
from synthmap.kernels.reading import Levels, Reading, interval, likely_counts, read_counts, whole_counts

BY_PRIOR_MASS = -1
OFFSETS = 2**32


class Nested(NamedTuple):
    """Two levels of a destination's origin domain, both ranges of ranks.

    Attributes
    ----------
    bounds : ndarray of int64, shape (cells + 1,)
        Ascending, from 0 to Z + 1.
    group : ndarray of int64, shape (cells,)
        Group of each cell, ascending.
    groups : int
    """

    bounds: NDArray[np.int64]
    group: NDArray[np.int64]
    groups: int


@compiled
def nest(tree: ZoneTree, point: NDArray[np.float64], prior: Prior, finest: int, asked: tuple[int, int]) -> Nested:
    """Return the domain of so many (cells, groups) asked for: groups by prior mass, cells cut where groups are.

    Everywhere else is one of them at most: noise is added to each count, once.
    """
    fine = coarsen(tree, point, prior, finest, asked[0], 1)
    coarse = coarsen(tree, point, prior, BY_PRIOR_MASS, asked[1], 1)
    bounds = np.unique(np.concatenate((fine, coarse)))
    return Nested(bounds, np.searchsorted(coarse, bounds[:-1], side="right") - 1, coarse.size - 1)


@compiled
def levels_of(
    nested: Nested,
    masses: NDArray[np.int64],
    segments: int,
    noise: tuple[int, int],
    law: Law,
    between: float,
    within: float,
) -> Levels:
    """Return the frame in which the noisy counts of a domain are read; a segment of a cell has its even share."""
    cells = nested.group.size
    share, group = np.empty(cells * segments), np.empty(cells * segments, np.int64)
    group_share = np.zeros(nested.groups * segments)
    for i in range(cells):
        for s in range(segments):
            at = i * segments + s
            share[at] = (masses[i + 1] - masses[i]) / (float(masses[-1]) * segments)
            group[at] = nested.group[i] * segments + s
            group_share[group[at]] += share[at]
    fades = law.fades if law.tails.size else np.full((3, 1), noise[0] / (NOISE_UNITS - noise[0]))
    group_ratio = noise[1] / (NOISE_UNITS - noise[1])
    if noise[1] == 0:
        group_ratio = 1.0
    return Levels(share, group, group_share, fades, group_ratio, between, within)


@compiled
def noisy_levels(
    homes: NDArray[np.int64],
    group: NDArray[np.int64],
    groups: int,
    noise: tuple[int, int],
    law: Law,
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the noisy counts of cells and of groups, all that is read of the confidential ones; see `add_noise`.

    **Guarantee** (adjacency: one entry of `homes` changes): `histogram_epsilon` of `noise`, tight; or `gaussian_delta`.
    """
    noisy = add_noise(homes, group.size, noise[0], law.tails, words, reader)
    noisy_groups = np.empty(0, np.int64)
    if noise[1]:
        grouped = group[homes]
        grouped.sort()
        noisy_groups = add_noise(grouped, groups, noise[1], np.empty(0, np.int64), words, reader)
    return noisy, noisy_groups


@compiled
def _intervals(
    keys: NDArray[np.int64],
    segments: int,
    bounds: NDArray[np.int64],
    masses: NDArray[np.int64],
    prior: Prior,
    cumulative: NDArray[np.int64],
    levels: Levels,
    found: Reading,
) -> NDArray[np.int32]:
    """Return for each worker, keys ascending, the interval of the true count at its zone, all segments, shape (m, 2).

    Inside a cell of N workers a zone with the share w of its mass is beta-binomial with strength r, the cell's shape:
    mean N·w, variance N·w·(1 − w)·(N + r)/(1 + r), and w² times the variance of N itself.
    """
    out = np.empty((keys.size, 2), np.int32)
    before = np.int64(-1)
    for j in range(keys.size):
        rank = keys[j] // segments
        if rank == before:
            out[j] = out[j - 1]
            continue
        before = rank
        cell = np.searchsorted(bounds, rank, side="right") - 1
        mass = masses[cell + 1] - masses[cell]
        share = 1.0 / (bounds[cell + 1] - bounds[cell])
        if mass > 0:
            share = (mass_below(prior, cumulative, rank + 1) - mass_below(prior, cumulative, rank)) / mass
        mean, variance, worth = 0.0, 0.0, 0.0
        for s in range(segments):
            mean += found.mean[cell * segments + s]
            variance += found.variance[cell * segments + s]
            worth += levels.within * levels.share[cell * segments + s]
        spread_out = mean * share * (1.0 - share) * (mean + worth) / (1.0 + worth)
        low, high = interval(mean * share, share * share * variance + spread_out)
        out[j, 0], out[j, 1] = min(low, keys.size), min(high, keys.size)
    return out


@compiled
def publish_one(
    origins: NDArray[np.int32],
    counts: NDArray[np.int64],
    tree: ZoneTree,
    model: PriorModel,
    point: NDArray[np.float64],
    destination: int,
    scale_km: float,
    finest: int,
    asked: tuple[int, int],
    made: tuple[int, int],
    noise: tuple[int, int],
    law: Law,
    within: float,
    agreement: bool,
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the sorted keys rank·S + segment of one destination's workers, and the interval of each one's zone.

    Empty when the domain does not have the planned cells and groups. Meaningless when `reader` is negative.

    Parameters
    ----------
    origins : ndarray of int32, shape (rows,)
        Confidential ranks.
    counts : ndarray of int64, shape (rows, S)
        Confidential workers by segment.
    tree, model, point, destination, scale_km, finest
        Public geography, see `coarsen` and `prior_at_scale`.
    asked, made, noise
        The plan, each for (cells, groups): what coarsening is asked for and makes, and the noise in 1/2^32; 0 for no
        noisy counts of groups.
    law : Law
        Gaussian noise instead of the geometric one of cells; then groups have none.
    within : float
        See `kernels.reading`.
    agreement : bool
        The likeliest units rather than the posterior means.
    words, reader
        The random stream.
    """
    segments = counts.shape[1]
    prior = prior_at_scale(tree, model, point, destination, scale_km)
    nested = nest(tree, point, prior, finest, asked)
    if nested.group.size != made[0] or nested.groups != made[1]:
        return np.empty(0, np.int64), np.empty((0, 2), np.int32)
    homes = cells_of(origins, counts, nested.bounds)
    strength = worth(model, destination, homes.size)
    masses = cell_masses(prior, tree.cumulative, nested.bounds)
    levels = levels_of(nested, masses, segments, noise, law, strength, max(within, strength))
    noisy, noisy_groups = noisy_levels(homes, levels.group, made[1] * segments, noise, law, words, reader)
    found = read_counts(noisy, noisy_groups, homes.size, levels)
    if agreement:
        whole = likely_counts(noisy, homes.size, levels, found)
    else:
        whole = whole_counts(found.mean, homes.size, uniform_below(words, reader, OFFSETS), OFFSETS)
    keys = np.repeat(np.arange(whole.size), whole)
    spread(keys, segments, nested.bounds, masses, prior, tree.cumulative, words, reader)
    keys.sort()
    return keys, _intervals(keys, segments, nested.bounds, masses, prior, tree.cumulative, levels, found)


@compiled
def publish_many(
    first_row: NDArray[np.int64],
    origins: NDArray[np.int32],
    counts: NDArray[np.int64],
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    destination: NDArray[np.int32],
    scale_km: NDArray[np.float64],
    plan: NDArray[np.int64],
    law: Law,
    within: float,
    agreement: bool,
    first_word: NDArray[np.int64],
    words: NDArray[np.uint64],
    keys: NDArray[np.int64],
    intervals: NDArray[np.int32],
    status: NDArray[np.int8],
) -> None:
    """Fill `keys`, `intervals` and `status` for a batch of destinations, as `destination.synthesize_many` does.

    `plan` has the columns cells asked, groups asked, cells, groups, noise of cells, noise of groups, headcount, finest.
    """
    reader = np.zeros(1, np.int64)
    low = 0
    for d in range(first_row.size - 1):
        high = low + plan[d, 6]
        if status[d] == 1:
            reader[0] = 0
            found, band = publish_one(
                origins[first_row[d] : first_row[d + 1]],
                counts[first_row[d] : first_row[d + 1]],
                tree,
                model,
                points[d],
                destination[d],
                scale_km[d],
                plan[d, 7],
                (plan[d, 0], plan[d, 1]),
                (plan[d, 2], plan[d, 3]),
                (plan[d, 4], plan[d, 5]),
                law,
                within,
                agreement,
                words[first_word[d] : first_word[d + 1]],
                reader,
            )
            if found.size != plan[d, 6]:
                status[d] = 2
            elif reader[0] >= 0:
                status[d] = 0
                keys[low:high] = found
                intervals[low:high] = band
        low = high
