"""Great-circle distance between two internal points, compiled."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.sphere import EARTH_KM, unit_vectors

__all__ = ["EARTH_KM", "arc_km", "arcs_km", "chord_squared", "great_circle_km", "straight_km", "unit_vectors"]

_SHORT = 0.1  # half a chord, in Earth radii, below which six terms of the series of asin are exact to 2e-14 of it


@compiled
def arc_km(straight_km: float) -> float:
    """Return the distance in km along the sphere between points whose distance through the Earth is known."""
    half = min(1.0, straight_km / (2.0 * EARTH_KM))
    return 2.0 * EARTH_KM * math.asin(half) if half >= _SHORT else _short_arc_km(straight_km)


@compiled
def _short_arc_km(straight_km: float) -> float:
    half = straight_km / (2.0 * EARTH_KM)
    y = half * half
    tail = y * (3 / 40 + y * (15 / 336 + y * (105 / 3456 + y * (945 / 42240))))
    return straight_km * (1.0 + y * (1 / 6 + tail))


@compiled
def arcs_km(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances in km along the sphere of which the `chord_squared` are known, several at once."""
    out = np.empty(squared.size)
    far = False
    for i in range(squared.size):  # a loop without branches, which the processor does several turns of at a time
        straight = straight_km(squared[i])
        far |= straight >= 2.0 * EARTH_KM * _SHORT
        out[i] = _short_arc_km(straight)
    if far:
        for i in range(squared.size):
            out[i] = arc_km(straight_km(squared[i]))
    return out


@compiled
def chord_squared(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the squared distance between two unit vectors through the Earth, in squares of its radius."""
    return float((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)


@compiled
def straight_km(squared: float) -> float:
    """Return the distance in km through the Earth of which the `chord_squared` is known."""
    return EARTH_KM * math.sqrt(squared)


@compiled
def great_circle_km(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the distance in km between two unit vectors."""
    return float(arc_km(straight_km(chord_squared(a, b))))
