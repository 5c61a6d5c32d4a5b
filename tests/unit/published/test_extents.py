"""Extents of releases: around what is there, across the antimeridian where that is."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from handmade import World, Zone

from synthmap.published.areas.antimeridian import narrowest
from synthmap.published.areas.area import area_of_shape
from synthmap.published.areas.shapes import read_geojson
from synthmap.published.extents import extent, middle, width
from synthmap.published.features_crs import declared
from synthmap.published.store import _stamp

FIJI = [
    Zone("a", (), 178.0, -18.0, shape=shapely.box(177.5, -18.5, 178.5, -17.5)),
    Zone("b", (), -179.5, -17.0),
    Zone(
        "c",
        (),
        179.9,
        -16.0,
        shape=shapely.MultiPolygon([shapely.box(179.5, -16.5, 180, -15.5), shapely.box(-180, -16.5, -179.8, -15.5)]),
    ),
]


def world(zones):
    return World(zones, [(zones[0].id, zones[0].id, (3,))], segments=("A",))


def test_zones_across_the_antimeridian_have_west_above_east(opened):
    release = opened(world(FIJI))
    assert extent(release) == (177.5, -18.5, -179.5, -15.5)
    assert list(declared(release))[-1].endswith("/32760")  # 179.0 is the middle of 177.5 and 180.5


@pytest.mark.parametrize(
    ("told", "found"),
    [([-180.0, -18.5, 180.0, -15.5], (177.5, -18.5, -179.5, -15.5)), ([1.0, 2.0, 3.0, 4.0], (1.0, 2.0, 3.0, 4.0))],
)
def test_only_a_head_that_spans_the_globe_is_looked_behind(opened, told, found):
    release = opened(world(FIJI))
    path = release.directory / "zones.parquet"
    table = pq.read_table(path)
    geo = {"columns": {"geometry": {"bbox": told}}}
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    release.stamps["zones.parquet"] = _stamp(path)
    assert extent(release) == found


@pytest.mark.parametrize(
    ("zones", "box"),
    [
        ([Zone("a", (), 2.0, 48.0), Zone("b", (), 3.0, 49.0)], (2.0, 48.0, 3.0, 49.0)),
        ([Zone("a", (), -100.0, 40.0), Zone("b", (), 20.0, 50.0)], (-100.0, 40.0, 20.0, 50.0)),
        ([Zone("a", (), 0.0, 0.0, shape=shapely.box(-180, -90, 180, 90))], (-180.0, -90.0, 180.0, 90.0)),
        ([Zone("a", (), 7.0, 7.0)], (7.0, 7.0, 7.0, 7.0)),
    ],
)
def test_other_extents_are_around_the_zones(opened, zones, box):
    assert extent(opened(world(zones))) == box


@pytest.mark.parametrize(
    ("west", "east", "found"),
    [
        ([170, -180, 175], [175, -170, 180], (170, -170)),
        ([170], [190], (170, -170)),
        ([-170, -175], [-160, -165], (-175, -160)),
        ([-180], [180], (-180, 180)),
        ([-179, 178], [-178, 179], (178, -178)),
        ([0, 90, -90], [1, 91, -89], (-90, 91)),  # all gaps but one are 89 wide; that at 180 is 179
    ],
)
def test_the_widest_gap_is_left_out(west, east, found):
    assert narrowest(np.array(west, float), np.array(east, float)) == found


def test_widths_and_middles_go_over_the_antimeridian():
    assert (width(170, -160), middle(170, -160)) == (30, -175)
    assert (width(-180, 180), middle(-180, 180)) == (360, 0)
    assert (width(2, 4), middle(2, 4)) == (2, 3)


def test_an_area_elsewhere_is_told_to_be_outside_of_a_release_at_the_antimeridian(opened):
    release = opened(world(FIJI))
    for x, outside in ((10, True), (180, False), (-180, False)):
        drawn = read_geojson(json.loads(shapely.to_geojson(shapely.box(x, -17.4, x + 0.1, -17.3))))
        notes = " ".join(area_of_shape(release, drawn).notes)
        assert ("lies outside of the release" in notes) == outside
