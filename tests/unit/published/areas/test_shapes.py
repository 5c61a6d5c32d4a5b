"""Shapes as people send them: mended, cut, refused."""

import json

import numpy as np
import pytest
import shapely

from synthmap.errors import QueryError
from synthmap.published.areas import shapes
from synthmap.published.areas.antimeridian import whole
from synthmap.published.areas.shapes import make_shape, read_geojson

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
BOWTIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}


def feature(geometry):
    return {"type": "Feature", "properties": {}, "geometry": geometry}


@pytest.mark.parametrize(
    "found",
    [
        SQUARE,
        feature(SQUARE),
        {"type": "FeatureCollection", "features": [feature(SQUARE), feature(None)]},
        {"type": "GeometryCollection", "geometries": [SQUARE, {"type": "GeometryCollection", "geometries": []}]},
        {"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"]]},
        SQUARE | {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}},
        SQUARE | {"crs": None, "bbox": [0, 0, 2, 2], "extra": {"x": [1]}},
        {"type": "Polygon", "coordinates": [[[0, 0, 9], [2, 0, 9], [2, 2, 9], [0, 2, 9], [0, 0, 9]]]},
    ],
)
def test_every_kind_of_geojson_is_the_same_square(found):
    shape = read_geojson(found)
    assert shape.polygons().equals(shapely.box(0, 0, 2, 2))
    assert not shape.polygons().has_z
    assert shape.notes == ()


def test_self_intersections_are_mended_and_said():
    shape = read_geojson(BOWTIE)
    assert shape.polygons().is_valid
    assert shape.polygons().area == pytest.approx(2.0)
    assert "mended" in shape.notes[0]


def test_a_stated_crs_is_read():
    moved = shapely.transform(shapely.box(2, 48, 3, 49), lambda xy: xy * 111_319.49079327358, include_z=False)
    drawn = json.loads(shapely.to_geojson(moved)) | {"crs": {"properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}}
    west, south, east, _ = read_geojson(drawn).polygons().bounds
    assert (west, east) == (pytest.approx(2.0), pytest.approx(3.0))
    assert south == pytest.approx(43.2057, abs=1e-4)


def test_a_shape_beyond_180_is_cut_at_the_antimeridian():
    for west in (170, -190):
        shape = make_shape(np.array([shapely.box(west, -10, west + 20, 10)], object), "")
        assert shape.polygons().equals(
            shapely.union_all([shapely.box(170, -10, 180, 10), shapely.box(-180, -10, -170, 10)])
        )
        assert whole(shape.polygons()) == (170, -10, -170, 10)


def test_lines_and_points_beyond_180_are_cut_too():
    line, point = shapely.LineString([(170, 0), (190, 0)]), shapely.Point(190, 5)
    shape = make_shape(np.array([line, point], object), "")
    assert shapely.length(shape.parts).sum() == pytest.approx(20)
    assert shapely.Point(-170, 5) in list(shape.parts)


def test_a_polygon_that_ends_at_the_antimeridian_stays_whole():
    shape = make_shape(np.array([shapely.box(170, -10, 180, 10), shapely.box(190, 0, 200, 1)], object), "")
    assert whole(shape.polygons()) == (170, -10, -160, 10)
    assert shape.polygons().area == pytest.approx(210)


def test_points_and_lines_are_no_area_by_themselves():
    with pytest.raises(QueryError, match=r"must have a polygon; around points and lines give buffer_m"):
        read_geojson({"type": "Point", "coordinates": [1, 2]}).polygons()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"type": "Circle", "coordinates": [1, 2]}, "must be a GeoJSON geometry"),
        ({"type": "Feature"}, "must be a GeoJSON geometry"),
        ([], "must be a GeoJSON geometry"),
        ({"type": "FeatureCollection", "features": [SQUARE, 3]}, "must be a GeoJSON geometry"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, "x"], [2, 2], [0, 0]]]}, "coordinates must be numbers"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 0]]]}, "rings closed"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "rings closed"),
        ({"type": "Polygon"}, "must be GeoJSON"),
        ({"type": "Polygon", "coordinates": []}, "not empty"),
        ({"type": "FeatureCollection", "features": []}, "not empty"),
        ({"type": "Point", "coordinates": [0, 91]}, "latitudes between"),
        ({"type": "Point", "coordinates": [541, 0]}, "longitudes between"),
        ({"type": "Point", "coordinates": [5e5, 5e6]}, "must state any other coordinate reference system"),
        ({"type": "Point", "coordinates": [1e308, 0]}, "longitudes between"),
        (SQUARE | {"crs": {"properties": {"name": "EPSG:999999"}}}, r"coordinate reference system \(EPSG:999999\)"),
        (SQUARE | {"crs": {"properties": {"name": "+proj=utm +nadgrids=/etc/passwd"}}}, "coordinate reference system"),
        (SQUARE | {"crs": 4326}, "crs must be"),
    ],
)
def test_what_is_no_area_is_refused(found, words):
    with pytest.raises(QueryError, match=words):
        read_geojson(found)


def test_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(shapes, "VERTICES", 7)
    monkeypatch.setattr(shapes, "FEATURES", 2)
    read_geojson(
        {"type": "FeatureCollection", "features": [feature(SQUARE), feature({"type": "Point", "coordinates": [1, 1]})]}
    )
    with pytest.raises(QueryError, match="at most 7 vertices"):
        read_geojson({"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"]] * 2})
    with pytest.raises(QueryError, match="at most 2 features"):
        read_geojson({"type": "FeatureCollection", "features": [feature(None)] * 3})


def test_collections_have_a_bounded_depth():
    found = SQUARE
    for _ in range(200):
        found = {"type": "GeometryCollection", "geometries": [found]}
    with pytest.raises(QueryError, match="no deeper than"):
        read_geojson(found)


def test_an_extent_leaves_the_widest_gap_out():
    points = shapely.multipoints([[179, 0], [-179, 1], [170, 2]])
    assert whole(points) == (170, 0, -179, 2)
    assert whole(shapely.multipoints([[10, 0], [20, 1]])) == (10, 0, 20, 1)
