"""A binary tree over the zones that follows the parent levels: every node is a contiguous range of ranks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.errors import GeographyError
from synthmap.geography.distance import EARTH_KM, unit_vectors
from synthmap.geography.zones import Zones

LEVEL_SLOTS = 8
MOST_LEVELS = 20
DEEPEST = 256  # more than twice the depth of any tree: two splits halve what is below, or lead to the next level
LARGEST_WEIGHT = 2**38  # times the prior's 2^20 units, over 1 − elsewhere share ≥ 0.1, below 2^62


# of a node of the tree: 64 bytes, so that a visit reads one line of the processor's cache
NODE = np.dtype(
    [
        ("centre", np.float64, (3,)),  # unit vector to the weighted mean point
        ("radius", np.float64),  # no zone of the node is farther from its centre, in km
        ("spread", np.float64),  # weighted mean of the squared distance to the centre, km²
        ("bulk", np.float64),  # spread × squared weight
        ("weight_below_stop", np.int64),  # of all zones of ranks below `stop`
        ("right", np.int32),  # number of the right child; −1: a single zone
        ("stop", np.int32),  # the node's last rank is stop − 1; its first is where the node before it ends
    ]
)


class ZoneTree(NamedTuple):
    """Zones as a tree, and its levels.

    Attributes
    ----------
    nodes : ndarray of NODE, shape (2·zones − 1,)
        In preorder: the left child of node i is i + 1.
    cumulative : ndarray of int64, shape (zones + 1,)
        Weight of all zones of lower rank.
    level_start : tuple of ndarray of int32
        For each parent level, coarsest first, and the zones themselves: ranks at which a unit starts,
        then the number of zones. Filled up with empty arrays, see `slots`.
    level_centre, level_spread : tuple of ndarray of float64, shapes (units, 3) and (units,)
        For each of these levels, `centre` and `spread` of its units.
    """

    nodes: NDArray[np.void]
    cumulative: NDArray[np.int64]
    level_start: tuple[NDArray[np.int32], ...]
    level_centre: tuple[NDArray[np.float64], ...]
    level_spread: tuple[NDArray[np.float64], ...]


def build_tree(zones: Zones) -> ZoneTree:
    """Return the tree of `zones`.

    A node is halved by weight at the coarsest parent boundary inside it, so that each parent is a union of
    few nodes and depth stays logarithmic.

    Raises
    ------
    GeographyError
        If all weights are 0, or their sum reaches 2^38; or if there are more than `MOST_LEVELS` levels.
    """
    if len(zones.levels) > MOST_LEVELS:
        raise GeographyError(f"zones.levels ({len(zones.levels)} of them) must be at most {MOST_LEVELS}")
    total = int(zones.weight.sum())
    if not 0 < total < LARGEST_WEIGHT:
        raise GeographyError(f"the sum of zone weights ({total}) must be above 0 and below 2^38")
    size = len(zones)
    coarsest = np.full(size, len(zones.levels), dtype=np.int8)
    level_start = []
    for depth in reversed(range(len(zones.levels))):
        names = (
            zones.parents[depth].combine_chunks()
            if isinstance(zones.parents[depth], pa.ChunkedArray)
            else zones.parents[depth]
        )
        change = np.ones(size, dtype=bool)
        change[1:] = np.asarray(pc.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False))
        coarsest[change] = depth
        level_start.append(change)
    starts = []
    for change in reversed(level_start):
        starts.append(np.append(np.flatnonzero(change), size).astype(np.int32))
    starts.append(np.arange(size + 1, dtype=np.int32))
    cumulative = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(zones.weight, out=cumulative[1:])
    points = unit_vectors(zones.longitude, zones.latitude)
    nodes = np.empty(2 * size - 1, NODE)
    _build(coarsest, zones.weight, cumulative, points, nodes)
    centres, spreads = zip(*(_units(points, zones.weight, unit) for unit in starts), strict=True)
    levels = (slots(starts), slots(centres), slots(spreads))
    return ZoneTree(nodes, cumulative, *levels)


def slots(arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Return `arrays` filled up with empty ones to `LEVEL_SLOTS`.

    Compiled code depends on the length of a tuple; so one compilation serves any usual number of levels.
    """
    empty = np.empty((0, *arrays[0].shape[1:]), arrays[0].dtype)
    return (*arrays, *[empty] * (LEVEL_SLOTS - len(arrays)))


@compiled
def _units(
    points: NDArray[np.float64], weight: NDArray[np.int64], starts: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weighted mean points, shape (units, 3), and mean squared distances to them, km², of ranges of ranks."""
    units = starts.size - 1
    centre, spread = np.zeros((units, 3)), np.zeros(units)
    for unit in range(units):
        mass = 0.0
        for rank in range(starts[unit], starts[unit + 1]):
            mass += weight[rank] + 1.0
            for axis in range(3):
                centre[unit, axis] += points[rank, axis] * (weight[rank] + 1.0)
        centre[unit] /= np.sqrt((centre[unit] ** 2).sum())
        for rank in range(starts[unit], starts[unit + 1]):
            for axis in range(3):
                off = EARTH_KM * (points[rank, axis] - centre[unit, axis])
                spread[unit] += off * off * (weight[rank] + 1.0) / mass
    return centre, spread


@compiled
def _build(
    coarsest: NDArray[np.int8],
    weight: NDArray[np.int64],
    cumulative: NDArray[np.int64],
    points: NDArray[np.float64],
    nodes: NDArray[np.void],
) -> None:
    """Fill `nodes`; `coarsest[r]` is the coarsest level that changes between ranks r − 1 and r."""
    size = weight.size
    stack = [(0, size, -1)]
    at = 0
    while stack:
        low, high, parent = stack.pop()
        node = nodes[at]
        node["stop"], node["right"], node["weight_below_stop"] = high, -1, cumulative[high]
        if parent >= 0:
            nodes[parent]["right"] = at
        if high - low > 1:
            level = coarsest[low + 1]
            total = weight[low] + 1
            for r in range(low + 1, high):
                level = min(level, coarsest[r])
                total += weight[r] + 1
            best = low + 1
            nearest = np.int64(-1)
            below = np.int64(0)
            for r in range(low + 1, high):
                below += weight[r - 1] + 1
                if coarsest[r] == level:
                    off = abs(2 * below - total)
                    if nearest < 0 or off < nearest:
                        best, nearest = r, off
            stack.append((best, high, at))
            stack.append((low, best, -1))
        at += 1
    mass, own = np.empty(nodes.size), np.empty(nodes.size)  # weights, each with 1 added and without
    for at in range(nodes.size - 1, -1, -1):
        node = nodes[at]
        centre = node["centre"]
        node["radius"], node["spread"], node["bulk"] = 0.0, 0.0, 0.0
        if node["right"] < 0:
            rank = node["stop"] - 1
            centre[:] = points[rank]
            mass[at], own[at] = weight[rank] + 1.0, weight[rank]
            continue
        a, b = np.int64(at + 1), np.int64(node["right"])
        mass[at], own[at] = mass[a] + mass[b], own[a] + own[b]
        mean = (mass[a] * nodes[a]["centre"] + mass[b] * nodes[b]["centre"]) / mass[at]
        length = np.sqrt((mean * mean).sum())
        if length > 1e-9:
            centre[:] = mean / length
        else:
            centre[:] = nodes[a]["centre"]
        for child in (a, b):
            chord = np.sqrt(((centre - nodes[child]["centre"]) ** 2).sum())
            arc = 2.0 * EARTH_KM * np.arcsin(min(1.0, 0.5 * chord))
            node["radius"] = max(node["radius"], nodes[child]["radius"] + arc)
            node["spread"] += mass[child] / mass[at] * (nodes[child]["spread"] + arc * arc)
        node["bulk"] = node["spread"] * own[at] ** 2
