"""The sphere: points as unit vectors, and arcs between them. Plain numpy, for those who serve and those who produce."""

import numpy as np
from numpy.typing import NDArray

EARTH_KM = 6371.0088  # mean radius, IUGG


def unit_vectors(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return unit vectors, shape (points, 3), for coordinates in degrees."""
    east, north = np.radians(longitude), np.radians(latitude)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1)


def arc_km(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return great-circle distances in km between unit vectors, shape (…, 3); shapes are broadcast."""
    chord = np.sqrt(((a - b) ** 2).sum(axis=-1))
    return np.asarray(2.0 * EARTH_KM * np.arcsin(np.minimum(1.0, 0.5 * chord)))
