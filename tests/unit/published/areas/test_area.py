"""Areas by ids, shapes and distances."""

import pytest
import shapely
from handmade import World, Zone

from synthmap.errors import QueryError
from synthmap.published.areas.area import area_around, area_of_shape, area_of_zones
from synthmap.published.areas.shapes import read_geojson

POINTS = {"a": (0.5, 0.5), "b": (1.5, 0.5), "c": (179.9, 10.0), "d": (-179.9, 10.0), "e": (180.0, 10.0), "f": (30, 90)}


def drawn(*box):
    return read_geojson(shapely.geometry.mapping(shapely.box(*box)))


def test_zones_by_id_at_any_level(opened, names):
    release = opened(World([Zone("01", ("x",)), Zone("1", ("x",)), Zone("é", ("y",))], [("01", "01", (1,))], ("land",)))
    assert names(release, area_of_zones(release, ("é", "01", "01"))) == ["01", "é"]
    assert names(release, area_of_zones(release, ("x",), "land")) == ["01", "1"]
    assert area_of_zones(release, ("x",), "land").description == "land x"
    assert area_of_zones(release, ("é", "01", "01")).description == "2 units of level zone: é, 01"


@pytest.mark.parametrize(
    ("ids", "level", "words"),
    [
        (("q",), "zone", r"zone \('q'\) must be an id at level zone"),
        (("a", "0", "1"), "zone", r"zone \('0', '1'\)"),
        (("a",), "land", "at level land"),
        (("a",), "county", r"level \(county\) must be one of land, zone"),
        (("elsewhere",), "zone", "must be on the map"),
        ((), "zone", "at least one zone"),
    ],
)
def test_unknown_ids_and_levels_are_refused(opened, ids, level, words):
    with pytest.raises(QueryError, match=words):
        area_of_zones(opened(POINTS), ids, level)


def test_a_polygon_takes_the_zones_whose_points_lie_in_it_or_on_its_edge(opened, names):
    release = opened(POINTS)
    assert names(release, area_of_shape(release, drawn(0, 0, 1, 1))) == ["a"]
    assert names(release, area_of_shape(release, drawn(0, 0, 1.5, 1))) == ["a", "b"]
    area = area_of_shape(release, drawn(0, 0, 1, 1))
    assert "internal point" in area.rule
    assert area.extent(release) == (0, 0, 1, 1)


def test_the_antimeridian_has_two_longitudes(opened, names):
    release = opened(POINTS)
    assert names(release, area_of_shape(release, drawn(170, 0, 190, 20))) == ["c", "d", "e"]
    assert names(release, area_of_shape(release, drawn(170, 0, 180, 20))) == ["c", "e"]
    assert names(release, area_of_shape(release, drawn(-180, 0, -170, 20))) == ["d", "e"]
    assert area_of_zones(release, ("c", "d")).extent(release) == (179.9, 10.0, -179.9, 10.0)


def test_an_empty_area_and_one_outside_are_explained(opened):
    release = opened({"a": (0, 0), "b": (2, 2)})
    between = area_of_shape(release, drawn(0.5, 0.5, 1, 1))
    assert between.count == 0
    assert len(between.notes) == 1
    assert "all figures are 0" in between.notes[0]
    outside = area_of_shape(release, drawn(50, 50, 51, 51))
    assert "lies outside of the release, whose zones are between 0° and 2° east" in outside.notes[1]
    assert area_of_zones(release, ("a",)).extent(release) == (0, 0, 0, 0)


def test_points_beside_polygons_are_said_to_be_left_out(opened):
    release = opened(POINTS)
    both = {"type": "GeometryCollection", "geometries": [
        shapely.geometry.mapping(shapely.box(0, 0, 1, 1)), {"type": "Point", "coordinates": [1.5, 0.5]}]}  # fmt: skip
    area = area_of_shape(release, read_geojson(both))
    assert area.count == 1
    assert "left out" in area.notes[0]
    assert area_around(release, read_geojson(both), buffer_m=1_000).count == 2


def test_around_zones_it_is_their_polygons_that_count(opened, names):
    square = shapely.box(0, 0, 1, 1)
    zones = [Zone("square", (), 0.5, 0.5, shape=square), Zone("near", (), 1.05, 0.5), Zone("far", (), 1.5, 0.5)]
    release = opened(World(zones, [("far", "far", (1,))]))
    area = area_around(release, area_of_zones(release, ("square",)), buffer_m=10_000)
    assert names(release, area) == ["near", "square"]
    assert area.geometry.contains(square)
    ring = area_around(release, area_of_zones(release, ("square",)), buffer_m=10_000, inner_m=100)
    assert names(release, ring) == ["near"]
    assert "more than 100 m and up to 10 km from zone square" in ring.description


@pytest.mark.parametrize(
    ("metres", "words"),
    [(5_000, "5 km"), (999.5, "999.5 m"), (1_250, "1.25 km"), (123_456.7, "123.4567 km"), (1, "1 m")],
)
def test_distances_are_told_without_commas(opened, metres, words):
    release = opened(POINTS)
    area = area_around(release, area_of_zones(release, ("a",)), buffer_m=metres)
    assert area.description == f"within {words} of zone a"
    assert f"lies within {words} of what was chosen" in area.rule
