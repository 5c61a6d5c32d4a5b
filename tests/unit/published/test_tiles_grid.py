"""Where points lie in the grid, against morecantile."""

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from synthmap.published.tiles_grid import LATITUDE, MAXZOOM, TMS, Tile, cells, flat, inside, point, shown, world

RNG = np.random.default_rng(3)
LONGITUDE, LATITUDES = RNG.uniform(-180, 180, 500), RNG.uniform(-85, 85, 500)


@pytest.mark.parametrize("zoom", [0, 1, 5, MAXZOOM])
def test_points_lie_in_the_tiles_that_morecantile_names(zoom):
    x, y = point(LONGITUDE, LATITUDES)
    found = cells(x, y, zoom)
    named = [TMS.tile(*at, zoom) for at in zip(LONGITUDE.tolist(), LATITUDES.tolist(), strict=True)]
    assert found.tolist() == [tile.y * 2**zoom + tile.x for tile in named]
    for number, tile in enumerate(named[:50]):
        assert Tile(zoom, tile.x, tile.y).holds(x, y)[number]


def test_local_coordinates_span_a_tile_from_its_north_western_corner():
    tile = Tile(9, 263, 180)
    west, south, east, north = TMS.bounds(tile.x, tile.y, tile.z)
    corners = np.column_stack(world(np.array([west, east]), np.array([north, south])))
    assert tile.local(corners) == pytest.approx(np.array([[0, 0], [4096, 4096]]), abs=1e-6)


def test_every_point_lies_in_one_tile_of_the_grid_whatever_its_coordinates():
    longitude = np.array([-180.0, 180.0, 179.9999999999, -0.0, 0.0])
    latitude = np.array([90.0, -90.0, LATITUDE, -LATITUDE, 0.0])
    for zoom in (0, 3, MAXZOOM):
        x, y = point(longitude, latitude)
        found = cells(x, y, zoom)
        row, column = np.divmod(found, 2**zoom)
        assert row.tolist() == [0, 2**zoom - 1, 0, 2**zoom - 1, 2**zoom // 2]
        assert (column >= 0).all() and (column < 2**zoom).all()
        assert all(Tile(zoom, int(c), int(r)).exists for r, c in zip(row, column, strict=True))
        assert column[0] == column[1] == 0  # −180 and 180 are one place


@pytest.mark.parametrize(
    "tile", [(-1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 8, 0), (3, 0, -1), (MAXZOOM + 1, 0, 0), (10**30, 0, 0)]
)
def test_tiles_that_are_not_there(tile):
    assert not Tile(*tile).exists


def test_boxes_meet_tiles_round_the_globe():
    across = np.array([[0.99, 0.4, 1.01, 0.6]])  # over the antimeridian
    assert Tile(4, 15, 7).meets(across)
    assert Tile(4, 0, 7).meets(across)
    assert not Tile(4, 1, 7).meets(across)
    assert not Tile(4, 0, 1).meets(across)
    assert not Tile(0, 0, 0).meets(np.full((1, 4), np.nan))


number = st.floats(-2, 2, allow_subnormal=False).map(lambda x: round(x, 3))


@settings(max_examples=300, deadline=None)
@given(st.tuples(number, number, number, number))
def test_what_of_a_line_lies_in_a_box(ends):
    line = np.array(ends).reshape(1, 2, 2)
    assume((line[0, 0] != line[0, 1]).any())
    start, stop = inside(line, (-1.0, -1.0, 1.0, 1.0))
    cut = shapely.intersection(shapely.LineString(line[0]), shapely.box(-1, -1, 1, 1))
    assert (start <= stop)[0] == (not cut.is_empty)
    if not cut.is_empty:
        step = line[0, 1] - line[0, 0]
        assert np.hypot(*step) * (stop - start)[0] == pytest.approx(cut.length, abs=1e-9)


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((1.0, 2.0, 3.0, 4.0), (1.0, 2.0, 3.0, 4.0)),
        ((177.0, -18.0, -179.0, -16.0), (-180.0, -18.0, 180.0, -16.0)),
        ((-100.0, -90.0, 140.0, 90.0), (-180.0, -LATITUDE, 180.0, LATITUDE)),  # a flow may go round the other way
    ],
)
def test_extents_across_the_antimeridian_are_all_round_in_tiles(bounds, told):
    assert flat(shown(bounds)) == told
    assert shown(bounds)[::2] == bounds[::2]
