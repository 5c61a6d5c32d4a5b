"""Great-circle distance between internal points."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled

EARTH_KM = 6371.0088  # mean radius, IUGG


def unit_vectors(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return unit vectors, shape (points, 3), for coordinates in degrees."""
    east, north = np.radians(longitude), np.radians(latitude)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1)


@compiled
def great_circle_km(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the distance in km between two unit vectors."""
    chord = math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
    return 2.0 * EARTH_KM * math.asin(min(1.0, 0.5 * chord))
