"""Buffers and rings against geodesics, across the antimeridian and over the poles."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from synthmap.errors import QueryError
from synthmap.published.areas.buffers import around
from synthmap.published.areas.shapes import read_geojson

GEOD = Geod(ellps="WGS84")
PLACES = [(10.0, 50.0), (180.0, 0.0), (-179.99, 65.0), (179.9, -17.0), (20.0, 89.9), (-100.0, -89.7), (0.0, 0.0)]


def at(place, metres, bearing):
    """Points at distances and bearings from a place."""
    n = np.size(metres)
    x, y, _ = GEOD.fwd(np.full(n, place[0]), np.full(n, place[1]), np.broadcast_to(bearing, n), metres)
    return np.asarray(x), np.asarray(y)


def parts(*geometries):
    return np.array(geometries, object)


@pytest.mark.parametrize("place", PLACES)
def test_a_buffer_around_a_point_holds_what_is_near_on_the_globe(place):
    metres = np.tile([1.0, 4_990.0, 5_010.0, 60_000.0], 12)
    x, y = at(place, metres, np.repeat(np.arange(0, 360, 30.0), 4))
    ring = around(parts(shapely.Point(place)), x, y, buffer_m=5_000)
    assert ring.inside.tolist() == (metres < 5_000).tolist()


@pytest.mark.parametrize("place", PLACES)
def test_its_outline_says_the_same_on_the_map(place):
    metres = np.tile([1_000.0, 19_500.0, 20_500.0, 39_000.0, 41_000.0], 24)
    x, y = at(place, metres, np.repeat(np.arange(7, 367, 15.0), 5))
    ring = around(parts(shapely.Point(place)), x, y, buffer_m=40_000, inner_m=20_000)
    assert ring.inside.tolist() == ((metres > 20_000) & (metres < 40_000)).tolist()
    outline = ring.outline()
    assert outline.is_valid
    assert -180 <= outline.bounds[0] <= outline.bounds[2] <= 180
    assert shapely.intersects_xy(outline, x, y).tolist() == ring.inside.tolist()


def test_a_line_across_the_antimeridian():
    line = parts(shapely.LineString([(179, 0), (180, 0)]), shapely.LineString([(-180, 0), (-179, 0)]))
    x, y = np.array([179.5, -179.5, 180.0, -180.0, 178.0, -178.0, 179.5]), np.array([0.01, -0.01, 0, 0, 0, 0, 1.0])
    ring = around(line, x, y, buffer_m=5_000)
    assert ring.inside.tolist() == [True, True, True, True, False, False, False]
    assert shapely.intersects_xy(ring.outline(), x, y).tolist() == ring.inside.tolist()


def test_a_polygon_is_part_of_its_buffer_and_not_of_its_ring():
    square = parts(shapely.box(10, 50, 10.2, 50.2))
    x, y = np.array([10.1, 10.21, 10.3, 11.0]), np.array([50.1, 50.1, 50.1, 50.1])
    assert around(square, x, y, buffer_m=10_000).inside.tolist() == [True, True, True, False]
    assert around(square, x, y, buffer_m=10_000, inner_m=2_000).inside.tolist() == [False, False, True, False]


@settings(max_examples=40, deadline=None)
@given(
    place=st.tuples(st.floats(-180, 180), st.floats(-90, 90)),
    inner=st.floats(10, 40_000),
    width=st.floats(10, 40_000),
    seed=st.integers(0, 100),
)
def test_a_ring_and_what_it_leaves_out_are_the_whole(place, inner, width, seed):
    draw = np.random.default_rng(seed)
    x, y = at(place, draw.uniform(0, 100_000, 200), draw.uniform(0, 360, 200))
    x, y = np.append(x, np.nan), np.append(y, np.nan)
    end = at(place, 3_000.0, 90.0)
    some = parts(shapely.Point(place), shapely.Point(end[0][0], end[1][0]))
    whole = around(some, x, y, buffer_m=inner + width).inside
    ring = around(some, x, y, buffer_m=inner + width, inner_m=inner).inside
    disc = around(some, x, y, buffer_m=inner).inside
    assert (ring ^ disc).tolist() == whole.tolist()
    assert not (ring & disc).any()
    assert not whole[-1]


@pytest.mark.parametrize(
    ("distances", "words"),
    [
        ({"buffer_m": 0}, r"buffer_m \(0\) must be above 0"),
        ({"buffer_m": -1}, "buffer_m"),
        ({"buffer_m": 2e6}, "at most 1,000,000 metres"),
        ({"buffer_m": float("nan")}, "buffer_m"),
        ({"buffer_m": 10, "inner_m": 10}, r"inner_m \(10\) must be at least 0 and below buffer_m"),
        ({"buffer_m": 10, "inner_m": -1}, "inner_m"),
        ({"buffer_m": 10, "inner_m": float("nan")}, "inner_m"),
    ],
)
def test_distances_out_of_range_are_refused(distances, words):
    with pytest.raises(QueryError, match=words):
        around(parts(shapely.Point(0, 0)), np.zeros(1), np.zeros(1), **distances)


@pytest.mark.parametrize("far", [[(0, 0), (30, 0)], [(0, 0), (180, 0)], [(0, 0), (120, 0), (240 - 360, 0)]])
def test_a_shape_over_half_the_globe_has_no_buffer(far):
    with pytest.raises(QueryError, match="must lie within 1,000 km of its middle"):
        around(np.array(shapely.points(far), object), np.zeros(1), np.zeros(1), buffer_m=10)


@pytest.mark.parametrize(
    "drawn",
    [shapely.LineString([(-179.7, 0), (179.7, 0)]), shapely.box(-180, 0, 180, 1), shapely.box(-180, -90, 180, 90)],
)
def test_edges_over_half_the_globe_have_no_buffer_though_their_ends_are_near(drawn):
    with pytest.raises(QueryError, match="must lie within 1,000 km of its middle"):
        around(parts(drawn), np.zeros(1), np.zeros(1), buffer_m=10)


def test_a_line_over_the_antimeridian_has_what_is_near_it():
    drawn = read_geojson({"type": "LineString", "coordinates": [[179.7, -17], [-179.7, -17]]})
    x, y = np.array([179.9, 180.0, -179.8, -179.9, 0.0]), np.array([-17.01, -17.0, -16.99, -17.5, -17.0])
    assert around(drawn.parts, x, y, buffer_m=3_000).inside.tolist() == [True, True, True, False, False]


def test_too_many_parts_have_no_outline():
    many = np.array(shapely.points(np.random.default_rng(1).uniform(0, 1, (2_001, 2))), object)
    ring = around(many, np.array([0.5]), np.array([0.5]), buffer_m=50_000)
    assert ring.inside.all()
    assert ring.outline() is None
