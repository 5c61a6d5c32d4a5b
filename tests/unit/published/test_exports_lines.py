"""What flows look like on a map."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import shapely

from synthmap.published.exports.lines import desire_lines, distance_km
from synthmap.published.places import Places


def lines(*points, flows):
    x, y = zip(*points, strict=True)
    table = pl.DataFrame({"id": [str(i) for i in range(len(x))], "longitude": map(float, x), "latitude": map(float, y)})
    places = Places(table, (), Path())
    origin, destination = np.array(flows).T
    return desire_lines(places, origin, destination), distance_km(places, origin, destination)


def test_lines_points_and_nothing():
    shapes, km = lines((0, 0), (1, 0), (0, 0), flows=[(0, 1), (1, 0), (1, 1), (0, 2), (-1, 0)])
    assert list(shapes) == [
        shapely.LineString([(0, 0), (1, 0)]), shapely.LineString([(1, 0), (0, 0)]), shapely.Point(1, 0),
        shapely.Point(0, 0), None,
    ]  # fmt: skip
    assert list(km[:4]) == [111.195, 111.195, 0, 0]
    assert np.isnan(km[4])


def test_the_short_way_over_the_antimeridian_is_cut_there():
    shapes, km = lines((179, 10), (-178, 40), flows=[(0, 1), (1, 0)])
    there = shapely.MultiLineString([[(179, 10), (180, 20)], [(-180, 20), (-178, 40)]])
    back = shapely.MultiLineString([[(-178, 40), (-180, 20)], [(180, 20), (179, 10)]])
    assert list(shapes) == [there, back]
    assert km[0] == km[1] < 4000


@pytest.mark.parametrize("edge", [180, -180])
def test_what_lies_on_the_antimeridian_is_on_the_side_of_the_other_end(edge):
    shapes, _ = lines((edge, 0), (-179, 0), (179, 0), (-edge, 0), (-edge, 5), flows=[(0, 1), (2, 0), (0, 3), (0, 4)])
    assert all(shapely.is_valid(shape) for shape in shapes)
    assert [shape.geom_type for shape in shapes] == ["LineString", "LineString", "Point", "LineString"]
    assert [shape.length for shape in shapes] == [1, 1, 0, 5]
