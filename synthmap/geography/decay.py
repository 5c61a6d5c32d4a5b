"""How the public prior decays with distance: (1 + distance/scale)^−power, and what mean distance that makes."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import EARTH_KM, arcs_km, chord_squared
from synthmap.geography.hierarchy import DEEPEST, ZoneTree

DECAY_UNITS = 2**20
_LARGEST, _ROUGH = 0.8, 1.5  # of √(scale² + distance²), the radius of a piece at most; of one that tells mass roughly
_MISPLACED = 1 / 400  # of all mass, by one piece: fitted, so that in all it is some 4 to 6 % in three public regions
_STEEPEST = 3.0  # a steeper decay has the pieces of this one, or they would be too many
_USUAL = 1024  # pieces that room is made for at first


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


class Pieces(NamedTuple):
    """Nodes of a tree, each small enough to have one decay, and what of the tree lies above them.

    Attributes
    ----------
    node : ndarray of int64, shape (pieces,)
        Numbers of the nodes, in the order of ranks.
    chord : ndarray of float64, shape (pieces,)
        How far they are, a `chord_squared`.
    right : ndarray of int32, shape (2·pieces − 1,)
        The nodes above the pieces and the pieces in preorder: the number among them of the right child, the left one is
        the next; −1 for a piece.
    """

    node: NDArray[np.int64]
    chord: NDArray[np.float64]
    right: NDArray[np.int32]


@compiled
def _room(capacity: int) -> Pieces:
    """Return room for so many pieces, and for as many nodes above them as may be seen before they do not fit."""
    return Pieces(np.empty(capacity, np.int64), np.empty(capacity), np.empty(2 * capacity + DEEPEST, np.int32))


@compiled
def pieces_from(tree: ZoneTree, point: NDArray[np.float64], scale_km: float, power: float) -> Pieces:
    """Return the pieces seen from the unit vector `point`.

    One decay for a whole node misplaces about its mass × its size/(scale + distance) inside it. A node is one piece
    where that is at most a share of all mass, and its radius at most one of how far it is and the scale: how many there
    are depends on where the mass is, little on how many zones it is divided among.
    """
    power = min(power, _STEEPEST)
    room, size = _filled(_room(_USUAL), tree, point, scale_km, _ROUGH, math.inf)
    mass, _ = _sums(tree, room.node[:size], room.chord[:size], scale_km, power)
    room, size = _filled(room, tree, point, scale_km, _LARGEST, (_MISPLACED * mass * scale_km) ** 2)
    return Pieces(room.node[:size], room.chord[:size], room.right[: 2 * size - 1])


@compiled
def _filled(
    room: Pieces, tree: ZoneTree, point: NDArray[np.float64], scale_km: float, largest: float, bulk: float
) -> tuple[Pieces, int]:
    """Return pieces in `room`, or in a larger one if they do not fit, and how many there are; see `_fill`."""
    size = _fill(room, tree, point, scale_km, largest, bulk)
    while size < 0:
        room = _room(2 * room.node.size)
        size = _fill(room, tree, point, scale_km, largest, bulk)
    return room, size


@compiled
def _fill(
    room: Pieces, tree: ZoneTree, point: NDArray[np.float64], scale_km: float, largest: float, bulk: float
) -> int:
    """Fill `room` with pieces; return how many there are, or −1 if they do not fit.

    With b = 1 + (distance/scale)², a node is one where its bulk is at most `bulk`·b³ and its radius `largest`·scale·√b.
    """
    nodes, inverse, squared = tree.nodes, (EARTH_KM / scale_km) ** 2, (largest * scale_km) ** 2
    stack, parent = np.empty(DEEPEST, np.int64), np.empty(DEEPEST, np.int64)
    away = np.empty(DEEPEST)  # of right children to be visited: seen now, they are there then
    stack[0], parent[0], away[0] = 0, 0, chord_squared(point, nodes[0]["centre"])
    size, seen, depth = 0, 0, 1
    while depth:
        depth -= 1
        at, chord = stack[depth], away[depth]
        room.right[parent[depth]] = seen
        while True:
            node, base = nodes[at], 1.0 + chord * inverse
            opened = (node["bulk"] > bulk * (base * base * base)) | (node["radius"] ** 2 > squared * base)
            if not opened:  # a single zone never is, nor is any where numbers leave the range of floats
                break
            right = node["right"]
            stack[depth], parent[depth], away[depth] = right, seen, chord_squared(point, nodes[right]["centre"])
            depth += 1
            seen += 1
            at += 1
            chord = chord_squared(point, nodes[at]["centre"])
        if size == room.node.size:
            return -1
        room.node[size], room.chord[size], room.right[seen] = at, chord, -1
        size += 1
        seen += 1
    return size


@compiled
def _sums(
    tree: ZoneTree, node: NDArray[np.int64], chord: NDArray[np.float64], scale_km: float, power: float
) -> tuple[float, float]:
    """Return the mass of all pieces, and their sum of mass × distance, km."""
    km = arcs_km(chord)
    shares = inverse_powers(1.0 + km / scale_km, power)
    mass, moment = 0.0, 0.0
    before = np.int64(0)  # weight of all pieces so far
    for i in range(node.size):
        weight = tree.nodes[node[i]]["weight_below_stop"]
        here = (weight - before) * shares[i]
        before = weight
        mass += here
        moment += here * km[i]
    return mass, moment


@compiled
def rough_mean_km(tree: ZoneTree, scale_km: float, power: float, point: NDArray[np.float64]) -> float:
    """Return about the mean distance, in km, to an origin drawn from the decay seen from the unit vector `point`.

    From pieces that are as small as their radius must be, whatever mass they have: it sorts destinations into classes,
    for which it need not be exact but always the same.
    """
    room, size = _filled(_room(_USUAL), tree, point, scale_km, _LARGEST, math.inf)
    mass, moment = _sums(tree, room.node[:size], room.chord[:size], scale_km, power)
    return moment / mass if mass > 0.0 else 0.0
