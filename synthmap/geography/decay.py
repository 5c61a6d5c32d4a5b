"""How the public prior decays with distance: (1 + distance/scale)^−power, and what mean distance that makes."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import EARTH_KM, arcs_km, chord_squared
from synthmap.geography.hierarchy import ZoneTree

DECAY_UNITS = 2**20
_ROUGH = 1.0  # a node is one piece when its radius is at most this share of its distance


@compiled
def inverse_powers(bases: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return base^−power of each; where 2·power is whole by products and a root, in a fraction of the time."""
    twice = 2.0 * power
    if twice != math.floor(twice):
        return bases**-power
    found = np.sqrt(bases) if twice % 2.0 else np.ones(bases.size)
    for _ in range(int(power)):
        found *= bases
    return 1.0 / found


@compiled
def decay_units(km: NDArray[np.float64], scale_km: float, power: float, units: int) -> NDArray[np.int64]:
    """Return units·(1 + distance/scale)^−power of each distance, rounded down, at least 1."""
    shares = inverse_powers(1.0 + km / scale_km, power)
    found = np.empty(km.size, np.int64)
    for i in range(km.size):
        found[i] = max(1, int(units * shares[i]))
    return found


@compiled
def pieces_from(
    tree: ZoneTree, point: NDArray[np.float64], opening: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nodes that are pieces seen from the unit vector `point`, in the order of ranks, and how far they are.

    A node is one piece when its radius is at most the share `opening` of its distance; that is a `chord_squared`.
    """
    capacity = 2048
    found, chords = np.empty(capacity, np.int64), np.empty(capacity)
    size = _fill(tree, point, opening, found, chords)
    while size < 0:
        capacity *= 2
        found, chords = np.empty(capacity, np.int64), np.empty(capacity)
        size = _fill(tree, point, opening, found, chords)
    return found[:size], chords[:size]


@compiled
def _fill(
    tree: ZoneTree,
    point: NDArray[np.float64],
    opening: float,
    found: NDArray[np.int64],
    chords: NDArray[np.float64],
) -> int:
    """Fill `found` and `chords` with pieces; return how many there are, or −1 if they do not fit."""
    nodes, limit = tree.nodes, (opening * EARTH_KM) ** 2
    stack, away = np.empty(256, np.int64), np.empty(256)  # right children to be visited: seen now, they are there then
    stack[0], away[0] = 0, chord_squared(point, nodes[0]["centre"])
    size, depth = 0, 1
    while depth:
        depth -= 1
        at, chord = stack[depth], away[depth]
        while nodes[at]["radius"] ** 2 > limit * chord:
            right = nodes[at]["right"]
            stack[depth], away[depth] = right, chord_squared(point, nodes[right]["centre"])
            depth += 1
            at += 1
            chord = chord_squared(point, nodes[at]["centre"])
        if size == found.size:
            return -1
        found[size], chords[size] = at, chord
        size += 1
    return size


@compiled
def rough_mean_km(tree: ZoneTree, scale_km: float, power: float, point: NDArray[np.float64]) -> float:
    """Return about the mean distance, in km, to an origin drawn from the decay seen from the unit vector `point`.

    From few, large pieces: it sorts destinations into classes, for which it need not be exact but always the same.
    """
    found, chords = pieces_from(tree, point, _ROUGH)
    km = arcs_km(chords)
    shares = inverse_powers(1.0 + km / scale_km, power)
    mass, moment = 0.0, 0.0
    before = np.int64(0)  # weight of all pieces so far
    for i in range(found.size):
        weight = tree.nodes[found[i]]["weight_below_stop"]
        here = (weight - before) * shares[i]
        before = weight
        mass += here
        moment += here * km[i]
    return moment / mass if mass > 0.0 else 0.0
