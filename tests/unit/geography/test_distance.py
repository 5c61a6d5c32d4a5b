import numpy as np
import pytest
from pyproj import Geod

from synthmap.geography.distance import EARTH_KM, arc_km, arcs_km, great_circle_km, straight_km, unit_vectors


@pytest.mark.parametrize(
    "pair",
    [(0, 0, 0, 0), (-71.4, 41.8, -71.1, 42.3), (179.9, 10, -179.9, 10), (0, 89.9, 180, 89.9), (10, -45, -170, 45)],
)
def test_agrees_with_the_sphere_of_pyproj(pair):
    a, b = unit_vectors(np.array([pair[0], pair[2]]), np.array([pair[1], pair[3]]))
    _, _, metres = Geod(a=6371008.8, b=6371008.8).inv(*pair)
    assert great_circle_km(a, b) == pytest.approx(metres / 1000, abs=1e-6)


def test_arcs_of_short_and_of_long_chords_are_those_of_the_arc_sine():
    angles = np.concatenate(
        [10.0 ** np.arange(-12, -1, 0.25), np.linspace(0.19, 0.21, 200), np.linspace(0.3, np.pi, 50)]
    )
    for angle in angles:
        straight = 2 * EARTH_KM * np.sin(angle / 2)
        assert arc_km(straight) == pytest.approx(EARTH_KM * angle, rel=1e-13 if angle < 3 else 1e-7)
    assert arc_km(0.0) == 0.0
    assert arc_km(2 * EARTH_KM * (1 + 1e-15)) == pytest.approx(np.pi * EARTH_KM)


@pytest.mark.parametrize("farthest", [0.01, 0.1999, 0.2001, 2.0, 2.0 + 1e-15])
def test_many_distances_at_once_have_the_bits_of_each(farthest):
    squared = np.linspace(0.0, farthest, 1_001) ** 2
    assert arcs_km(squared).tolist() == [arc_km(straight_km(one)) for one in squared]
