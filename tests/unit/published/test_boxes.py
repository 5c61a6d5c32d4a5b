"""Boxes in the axes of their CRS."""

import numpy as np
import pytest

from synthmap.errors import QueryError
from synthmap.published.boxes import CRS84, make_box, project

LONGITUDE = np.array([2.35, -0.13, 179.9, -179.9, np.nan])  # Paris, London, both sides of the antimeridian, nowhere
LATITUDE = np.array([48.86, 51.51, -17.0, -17.0, np.nan])


def inside(numbers, crs=CRS84):
    box = make_box(numbers, crs)
    points = project(LONGITUDE, LATITUDE, box.crs)
    return box.holds(points.first, points.second).tolist()


@pytest.mark.parametrize(
    ("crs", "numbers"),
    [
        (CRS84, (2, 48, 3, 49)),
        ("CRS84", (2, 48, 3, 49)),
        ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", (2, 48, -100, 3, 49, 100)),
        ("EPSG:4326", (48, 2, 49, 3)),
        ("http://www.opengis.net/def/crs/EPSG/0/4326", (48, 2, 49, 3)),
        ("urn:ogc:def:crs:EPSG::3857", (250_000, 6_200_000, 270_000, 6_300_000)),
        ("EPSG:2154", (640_000, 6_850_000, 660_000, 6_870_000)),
    ],
)
def test_paris_is_found_in_any_crs(crs, numbers):
    if len(numbers) == 6:
        numbers = (*numbers[:2], -100, *numbers[3:5], 100)
    assert inside(numbers, crs) == [True, False, False, False, False]


@pytest.mark.parametrize(("crs", "numbers"), [(CRS84, (179, -18, -179, -16)), ("EPSG:4326", (-18, 179, -16, -179))])
def test_a_box_may_cross_the_antimeridian(crs, numbers):
    assert inside(numbers, crs) == [False, False, True, True, False]


def test_borders_belong_to_the_box_and_the_whole_world_holds_every_place():
    assert inside((2.35, 48.86, 2.35, 48.86))[0]
    assert inside((-180, -90, 180, 90)) == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("crs", "numbers"), [(CRS84, (2, 49, 3, 48)), ("EPSG:4326", (49, 2, 48, 3)), ("EPSG:3857", (5, 0, 4, 1))]
)
def test_numbers_in_the_wrong_order_are_refused(crs, numbers):
    with pytest.raises(QueryError, match="bbox"):
        make_box(numbers, crs)


@pytest.mark.parametrize(
    "crs",
    ["", "EPSG:", "EPSG:999999", "EPSG:5773", "EPSG:4978", "EPSG:4979", "+proj=merc", "EPSG:4326+5773", "EPSG:३८५७",
     "/etc/passwd", "epsg:4326\x00", "IGNF:LAMB93", "9" * 10_000],
)  # fmt: skip
def test_a_crs_that_is_none_or_no_map_is_refused(crs):
    with pytest.raises(QueryError, match="coordinate reference system"):
        make_box((0, 0, 1, 1), crs)
