"""Shapes across the antimeridian or around a pole, in degrees and in other coordinate reference systems."""

import json

import numpy as np
import pytest
import shapely
from pyproj import Transformer
from uploads import kml, polygon, written

from synthmap.errors import QueryError
from synthmap.published.areas.antimeridian import whole
from synthmap.published.areas.shapes import make_shape, read_geojson
from synthmap.published.areas.upload import read_upload

BOTH = shapely.union_all([shapely.box(179, -17, 180, -16), shapely.box(-180, -17, -179, -16)])
RING = "179,-17 -179,-17 -179,-16 179,-16 179,-17"


def ring(text):
    return [[float(number) for number in point.split(",")] for point in text.split()]


def made(*geometries, crs="OGC:CRS84"):
    return make_shape(np.array(geometries, object), "", crs)


@pytest.mark.parametrize(
    ("crs", "west", "east"),
    [
        ("EPSG:3460", 179.65, 180.25),
        ("EPSG:3460", 178.0, 184.0),
        ("EPSG:4269", 179.5, 180.5),
        ("EPSG:3338", 179.0, 182.5),
    ],
)
def test_a_box_of_another_crs_across_the_antimeridian_is_not_inverted(crs, west, east, tmp_path):
    south, north = (51.0, 52.0) if crs != "EPSG:3460" else (-17.05, -16.85)
    there = Transformer.from_crs("OGC:CRS84", crs, always_xy=True)
    drawn = shapely.segmentize(shapely.box(west, south, east, north), 0.01)
    moved = shapely.transform(drawn, lambda xy: np.column_stack(there.transform(xy[:, 0], xy[:, 1])))
    if crs == "EPSG:4269":
        moved = drawn
    for shape in (made(moved, crs=crs), read_upload(written(tmp_path, f"{east}.gpkg", moved, crs=crs))):
        assert whole(shape.polygons()) == pytest.approx((west, south, east - 360, north), abs=1e-4)
        assert shape.polygons().area == pytest.approx((east - west) * (north - south), rel=1e-3)
        assert shape.notes == ()


@pytest.mark.parametrize("crs", ["EPSG:5070", "EPSG:3035", "EPSG:25832"])
def test_edges_are_straight_in_the_crs_that_they_were_drawn_in(crs):
    """At the middle of an edge of 200 km a straight line of degrees would be off by hundreds of metres."""
    x, y = {"EPSG:5070": (1e6, 2e6), "EPSG:3035": (3.5e6, 3e6), "EPSG:25832": (6e5, 5.5e6)}[crs]
    shape = made(shapely.box(x - 1e5, y, x + 1e5, y + 1e5), crs=crs).polygons()
    inside = Transformer.from_crs(crs, "OGC:CRS84", always_xy=True).transform([x, x], [y + 1.0, y - 1.0])
    assert shapely.intersects_xy(shape, *inside).tolist() == [True, False]


def test_dividing_edges_is_bounded():
    far = made(*(shapely.box(-1.9e7, y, 1.9e7, y + 1) for y in range(1000)), crs="EPSG:3857")
    assert 100_000 <= shapely.get_num_coordinates(far.parts).sum() <= 110_000


@pytest.mark.parametrize(
    "sent",
    [
        json.dumps({"type": "Polygon", "coordinates": [ring(RING)]}).encode(),
        json.dumps({"type": "MultiPolygon", "coordinates": [[ring(RING)]]}).encode(),
        kml(polygon(RING)),
    ],
)
def test_rings_written_from_179_to_minus_179_take_the_short_way(sent):
    shape = read_upload(sent)
    assert shape.polygons().equals(BOTH)
    assert shape.notes == ("Edges longer than 180° of longitude were taken the short way, across the antimeridian.",)


def test_files_in_degrees_take_the_short_way_too(tmp_path):
    for crs in ("EPSG:4326", "EPSG:4269"):
        shape = read_upload(written(tmp_path, f"{crs[5:]}.gpkg", shapely.Polygon(ring(RING)), crs=crs))
        assert shape.polygons().equals_exact(BOTH, 1e-4, normalize=True)
        assert len(shape.notes) == 1


def test_lines_take_the_short_way():
    text = "<Placemark><LineString><coordinates>179.7,1 -179.7,1 -179,1</coordinates></LineString></Placemark>"
    for shape in (
        read_upload(kml(text)),
        read_geojson({"type": "LineString", "coordinates": [[179.7, 1], [-179.7, 1], [-179, 1]]}),
    ):
        assert shapely.length(shape.parts).sum() == pytest.approx(1.3)
        assert "short way" in shape.notes[0]


def test_a_hole_stays_in_its_polygon_whichever_side_it_is_written_on():
    hole = ring("-179.8,-16.8 -179.2,-16.8 -179.2,-16.2 -179.8,-16.2 -179.8,-16.8")
    shape = read_geojson({"type": "Polygon", "coordinates": [ring(RING), hole]})
    assert shape.polygons().area == pytest.approx(2 - 0.36)
    assert not shape.polygons().contains(shapely.Point(-179.5, -16.5))
    assert len(shape.notes) == 1


@pytest.mark.parametrize(
    "drawn",
    [
        shapely.segmentize(shapely.box(-150, -10, 150, 10), 30),  # short edges: as wide as it was drawn
        shapely.box(-180, -90, 180, 90),
        shapely.box(10, 0, 210, 10),
        shapely.box(-90, 0, 90, 10),
    ],
)
def test_what_is_wide_on_purpose_stays_wide(drawn):
    shape = made(drawn)
    assert shape.polygons().area == pytest.approx(drawn.area)
    assert shape.notes == ()


def test_a_ring_around_a_pole_encloses_it():
    """In EPSG:3413 the pole is at 0, 0; 1,000 km away is latitude 80.8."""
    square, hole = shapely.box(-2e6, -2e6, 2e6, 2e6), shapely.box(-1e6, -1e6, 1e6, 1e6)
    longitude = np.arange(-180.0, 181.0, 15.0)
    at = lambda shape, latitude: shapely.intersects_xy(shape, longitude, np.full(longitude.size, latitude))  # noqa: E731
    full, cut = (made(one, crs="EPSG:3413") for one in (square, square - hole))
    assert at(full.polygons(), 89.9).all()
    assert at(full.polygons(), 73.0).all()
    assert not at(full.polygons(), 60.0).any()
    assert at(cut.polygons(), 75.0).all()
    assert not at(cut.polygons(), 82.0).any()
    assert full.notes == cut.notes == ()
    south = made(shapely.box(-1e6, -1e6, 1e6, 1e6), crs="EPSG:3031").polygons()
    assert at(south, -89.9).all()


def test_lines_that_go_round_the_globe_twice_are_refused():
    around = np.column_stack([np.arange(0, 1500, 90.0) % 360 - 180, np.zeros(17)])
    with pytest.raises(QueryError, match="longitudes between"):
        made(shapely.LineString(around))


@pytest.mark.parametrize("bad", [np.inf, 1e308])
def test_coordinates_that_are_none_are_refused(bad):
    for crs in ("EPSG:3460", "EPSG:4269", "OGC:CRS84"):
        with pytest.raises(QueryError, match="must"):
            made(shapely.LineString([(0, 0), (bad, 1)]), crs=crs)
