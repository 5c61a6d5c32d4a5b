"""One destination after the other: coarsen, draw, spread, sort."""

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.coarsening import (
    cell_bounds,
    own_beside,
    own_cells,
    split_by_mass,
)
from synthmap.geography.distance_cells import split_by_distance
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import Prior, PriorModel, elsewhere_share_of, mass_below_in, prior_at_scale, rank_in
from synthmap.kernels.bounded import KEEP_UNITS, uniform_below
from synthmap.kernels.urn import draw

KEEP_CLASSES = 16


@compiled
def coarsen(
    tree: ZoneTree,
    point: NDArray[np.float64],
    prior: Prior,
    finest: int,
    cells: int,
    own: int,
) -> NDArray[np.int64]:
    """Return the bounds of the domain with `cells` cells; `finest` < 0 splits by prior mass, else by distance.

    At most `own` of them are everywhere else, see `own_cells`.
    """
    zones = tree.cumulative.size - 1
    share = elsewhere_share_of(prior)
    own = min(own, own_cells(share, cells))
    if finest < 0:
        boundaries = split_by_mass(tree, prior, cells - own)
    else:
        boundaries = split_by_distance(tree, prior, point, finest, cells - own)
    return cell_bounds(boundaries, zones, own_beside(share, own, boundaries.size + 1))


@compiled
def cell_masses(prior: Prior, cumulative: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the prior mass below each bound, shape (cells + 1,); cells that are everywhere else share its mass."""
    out = np.empty(bounds.size, np.int64)
    zones = cumulative.size - 1
    piece = 0
    for i in range(bounds.size):
        while piece <= prior.decay.size and prior.start[piece + 1] <= bounds[i]:  # bounds ascend
            piece += 1
        out[i] = mass_below_in(prior, cumulative, piece, bounds[i])
    first = np.searchsorted(bounds, zones)
    own, away = bounds.size - 1 - first, out[-1] - out[first]
    for i in range(1, own):
        out[first + i] += away // own * i + away % own * i // own
    return out


@compiled
def _sort(values: NDArray[np.int64], above: int) -> None:
    """Sort `values`, all of 0 … above − 1; by counting, where these are not many more."""
    if above > 4 * values.size or values.min() < 0 or values.max() >= above:  # there are some to count, and all can be
        values.sort()
        return
    count = np.zeros(above, np.int64)
    for value in values:
        count[value] += 1
    at = 0
    for value in range(above):
        for _ in range(count[value]):
            values[at] = value
            at += 1


@compiled
def cells_of(origins: NDArray[np.int32], counts: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the urn cell (cell·S + segment) of every worker, ascending, shape (n,). Confidential."""
    segments = counts.shape[1]
    homes = np.empty(counts.sum(), np.int64)
    at = 0
    for row in range(origins.size):
        cell = np.searchsorted(bounds, origins[row], side="right") - 1
        for s in range(segments):
            for _ in range(counts[row, s]):
                homes[at] = cell * segments + s
                at += 1
    _sort(homes, (bounds.size - 1) * segments)
    return homes


@compiled
def keep_classes(
    masses: NDArray[np.int64], segments: int, keep: int, by_prior: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (order, class_start, class_keep) for `kernels.urn.draw`, from public masses.

    By prior, an empty cell is kept with probability (its mass)/(mean mass), held between `keep` and 1 and rounded
    up to a multiple of 1/16 of the way between them.
    """
    cells = (masses.size - 1) * segments
    if not by_prior or keep >= KEEP_UNITS:
        return np.empty(0, np.int64), np.array([0, cells]), np.array([keep])
    mean = max(1.0, masses[-1] / (masses.size - 1))
    step = (KEEP_UNITS - keep + KEEP_CLASSES - 1) // KEEP_CLASSES
    level = np.empty(cells, np.int64)
    for cell in range(masses.size - 1):
        wanted = min(1.0, (masses[cell + 1] - masses[cell]) / mean) * KEEP_UNITS
        up = 0 if wanted <= keep else int(np.ceil((wanted - keep) / step))
        for s in range(segments):
            level[cell * segments + s] = min(up, KEEP_CLASSES)
    order = np.argsort(level, kind="mergesort")
    start = np.zeros(KEEP_CLASSES + 2, np.int64)
    keeps = np.empty(KEEP_CLASSES + 1, np.int64)
    for c in range(KEEP_CLASSES + 1):
        start[c + 1] = start[c] + (level == c).sum()
        keeps[c] = min(KEEP_UNITS, keep + c * step)
    return order.astype(np.int64), start, keeps


@compiled
def spread(
    keys: NDArray[np.int64],
    segments: int,
    bounds: NDArray[np.int64],
    masses: NDArray[np.int64],
    prior: Prior,
    cumulative: NDArray[np.int64],
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> None:
    """Turn ascending keys cell·S + segment into rank·S + segment, zones drawn from the public prior.

    This is post-processing, free of loss. The c workers of a key are spread systematically: one uniform integer u below
    the cell's mass M, and the units ⌊(u + j·M)/c⌋ for j = 0 … c − 1. Each zone gets c·(its mass)/M of them in
    expectation, as in independent draws, and never more than one away from it. A cell without prior mass is spread
    evenly over its zones.
    """
    zones = cumulative.size - 1
    first, begin = 0, 0  # the first worker of a key, and the piece where its cell begins: cells ascend, so do units
    while first < keys.size and reader[0] >= 0:
        key = keys[first]
        last = first + 1
        while last < keys.size and keys[last] == key:
            last += 1
        workers = last - first
        cell, segment = key // segments, key % segments
        low, mass = bounds[cell], masses[cell + 1] - masses[cell]
        size = mass if mass > 0 else max(1, min(bounds[cell + 1], zones) - low)
        whole, rest = size // workers, size % workers
        offset = uniform_below(words, reader, size)
        while mass > 0 and prior.mass[begin + 1] <= masses[cell]:
            begin += 1
        piece = begin
        for j in range(workers):
            unit = j * whole + (offset + j * rest) // workers
            while mass > 0 and prior.mass[piece + 1] <= masses[cell] + unit:
                piece += 1
            rank = rank_in(prior, cumulative, piece, masses[cell] + unit) if mass > 0 else int(low + unit)
            keys[first + j] = rank * segments + segment
        first = last


@compiled
def synthesize_one(
    origins: NDArray[np.int32],
    counts: NDArray[np.int64],
    tree: ZoneTree,
    model: PriorModel,
    point: NDArray[np.float64],
    destination: int,
    scale_km: float,
    finest: int,
    cells_asked: int,
    cells: int,
    synthetic_size: int,
    alpha_numerator: int,
    alpha_denominator: int,
    keep: int,
    keep_by_prior: bool,
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the sorted keys rank·S + segment of one destination's synthetic workers.

    Empty when the domain does not have the planned number of cells. Meaningless when `reader` is negative.

    Parameters
    ----------
    origins : ndarray of int32, shape (rows,)
        Confidential ranks.
    counts : ndarray of int64, shape (rows, S)
        Confidential workers by segment.
    tree, model, point, destination, scale_km, finest
        Public geography, see `coarsen` and `prior_at_scale`.
    cells_asked, cells, synthetic_size, alpha_numerator, alpha_denominator, keep, keep_by_prior
        The plan: origin cells asked for and made, m, α as a rational, keep probability in 1/2^16, see `keep_classes`.
    words, reader
        The random stream.
    """
    segments = counts.shape[1]
    prior = prior_at_scale(tree, model, point, destination, scale_km)
    bounds = coarsen(tree, point, prior, finest, cells_asked, cells_asked)
    if bounds.size - 1 != cells:
        return np.empty(0, np.int64)
    homes = cells_of(origins, counts, bounds)
    masses = cell_masses(prior, tree.cumulative, bounds)
    order, class_start, class_keep = keep_classes(masses, segments, keep, keep_by_prior)
    keys = draw(
        homes,
        synthetic_size,
        cells * segments,
        alpha_numerator,
        alpha_denominator,
        order,
        class_start,
        class_keep,
        words,
        reader,
    )
    if reader[0] < 0:
        return keys  # some are no keys
    _sort(keys, cells * segments)
    spread(keys, segments, bounds, masses, prior, tree.cumulative, words, reader)
    keys.sort()
    return keys


@compiled
def synthesize_many(
    first_row: NDArray[np.int64],
    origins: NDArray[np.int32],
    counts: NDArray[np.int64],
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    destination: NDArray[np.int32],
    scale_km: NDArray[np.float64],
    plan: NDArray[np.int64],
    keep_by_prior: bool,
    first_word: NDArray[np.int64],
    words: NDArray[np.uint64],
    keys: NDArray[np.int64],
    status: NDArray[np.int8],
) -> None:
    """Fill `keys` and `status` for a batch of destinations, whose rows, words and keys lie one after the other.

    `plan` has the columns cells asked, cells, synthetic size, alpha numerator, alpha denominator, keep, finest.
    `status` becomes 0 (done), 1 (words ran out: try again with more) or 2 (domain is not as planned).
    """
    reader = np.zeros(1, np.int64)
    low = 0
    for d in range(first_row.size - 1):
        high = low + plan[d, 2]
        if status[d] == 1:
            reader[0] = 0
            found = synthesize_one(
                origins[first_row[d] : first_row[d + 1]],
                counts[first_row[d] : first_row[d + 1]],
                tree,
                model,
                points[d],
                destination[d],
                scale_km[d],
                plan[d, 6],
                plan[d, 0],
                plan[d, 1],
                plan[d, 2],
                plan[d, 3],
                plan[d, 4],
                plan[d, 5],
                keep_by_prior,
                words[first_word[d] : first_word[d + 1]],
                reader,
            )
            if found.size != plan[d, 2]:
                status[d] = 2
            elif reader[0] >= 0:
                status[d] = 0
                keys[low:high] = found
        low = high
