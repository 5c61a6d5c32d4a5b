"""How the public prior decays with distance: (1 + distance/scale)^−power, and what mean distance that makes."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import EARTH_KM, arc_km, chord_squared, straight_km
from synthmap.geography.hierarchy import ZoneTree

DECAY_UNITS = 2**20
_ROUGH = 1.0  # a node is one piece when its radius is at most this share of its distance


@compiled
def inverse_power(base: float, power: float) -> float:
    """Return base^−power; where 2·power is whole by products and a root, in a fraction of the time."""
    twice = 2.0 * power
    if twice != math.floor(twice):
        return float(base**-power)
    found = math.sqrt(base) if twice % 2.0 else 1.0
    for _ in range(int(power)):
        found *= base
    return 1.0 / found


@compiled
def decay_units(distance_km: float, scale_km: float, power: float, units: int) -> int:
    """Return units·(1 + distance/scale)^−power, rounded down, at least 1."""
    return max(1, int(units * inverse_power(1.0 + distance_km / scale_km, power)))


@compiled
def rough_mean_km(tree: ZoneTree, scale_km: float, power: float, point: NDArray[np.float64]) -> float:
    """Return about the mean distance, in km, to an origin drawn from the decay seen from the unit vector `point`.

    From few, large pieces: it sorts destinations into classes, for which it need not be exact but always the same.
    """
    nodes, limit = tree.nodes, (_ROUGH * EARTH_KM) ** 2
    mass, moment = 0.0, 0.0
    before = np.int64(0)  # weight of all pieces so far
    stack = np.empty(256, np.int64)  # right children to be visited
    stack[0] = 0
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        chord = chord_squared(point, nodes[node]["centre"])
        while nodes[node]["radius"] ** 2 > limit * chord:
            stack[depth] = nodes[node]["right"]
            depth += 1
            node += 1
            chord = chord_squared(point, nodes[node]["centre"])
        distance = arc_km(straight_km(chord))
        weight = nodes[node]["weight_below_stop"] - before
        before += weight
        here = weight * inverse_power(1.0 + distance / scale_km, power)
        mass += here
        moment += here * distance
    return moment / mass if mass > 0.0 else 0.0
