import numpy as np
import pytest
from pyproj import Geod

from synthmap.geography.distance import great_circle_km, unit_vectors


@pytest.mark.parametrize(
    "pair",
    [(0, 0, 0, 0), (-71.4, 41.8, -71.1, 42.3), (179.9, 10, -179.9, 10), (0, 89.9, 180, 89.9), (10, -45, -170, 45)],
)
def test_agrees_with_the_sphere_of_pyproj(pair):
    a, b = unit_vectors(np.array([pair[0], pair[2]]), np.array([pair[1], pair[3]]))
    _, _, metres = Geod(a=6371008.8, b=6371008.8).inv(*pair)
    assert great_circle_km(a, b) == pytest.approx(metres / 1000, abs=1e-6)
