"""Great-circle distance between two internal points, compiled."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.sphere import EARTH_KM, unit_vectors

__all__ = ["EARTH_KM", "great_circle_km", "unit_vectors"]


@compiled
def great_circle_km(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the distance in km between two unit vectors."""
    chord = math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
    return 2.0 * EARTH_KM * math.asin(min(1.0, 0.5 * chord))
