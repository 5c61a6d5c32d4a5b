"""Which units suit a zoom."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synthmap.errors import ReleaseCorruptError
from synthmap.published.places import Places
from synthmap.published.tiles_grid import MAXZOOM, TMS, cells
from synthmap.published.tiles_units import GRID, Units, grid_units, ladder, level_units


def places(longitude, latitude, weight=None, **levels):
    longitude, latitude = np.atleast_1d(np.asarray(longitude, float)), np.atleast_1d(np.asarray(latitude, float))
    table = pl.DataFrame({"id": [f"{i:05}" for i in range(longitude.size)], **levels}).with_columns(
        weight=np.zeros(longitude.size, np.int64) if weight is None else np.asarray(weight),
        longitude=longitude,
        latitude=latitude,
    )
    return Places(table, tuple(levels), Path())


def square(side, **levels):
    """Zones on a grid of side × side points, about 1 km apart."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(side), np.arange(side)))
    named = {
        name: [f"{name}-{a // step:03}-{b // step:03}" for a, b in zip(x, y, strict=True)]
        for name, step in levels.items()
    }
    return places(10 + x * 0.01, 50 + y * 0.01, **named)


def suited(steps, zoom, fineness=6, most=4096):
    return steps.at(zoom, fineness, most)


def test_levels_get_finer_with_the_zoom():
    steps = ladder(square(40, state=40, county=20, tract=4))
    found = [suited(steps, zoom) for zoom in range(MAXZOOM + 1)]
    assert [units.level for units in found] == sorted(
        (units.level for units in found), key=["state", "county", "tract", "zone"].index
    )
    assert {units.level for units in found} == {"state", "county", "tract", "zone"}


def test_units_can_be_told_apart_except_at_the_last_zoom():
    steps = ladder(square(40, state=40, county=20, tract=4))
    for zoom in range(MAXZOOM):
        units = suited(steps, zoom)
        apart = np.unique(cells(units.x, units.y, zoom + 6)).size
        assert len(units) <= 2 * apart


@pytest.mark.parametrize("most", [1, 7, 100])
def test_no_tile_has_more_units_than_it_may(most):
    steps = ladder(square(40, tract=4))
    for zoom in range(MAXZOOM + 1):
        units = suited(steps, zoom, most=most)
        if not isinstance(units, Units):
            units = grid_units(square(40), units)
        assert max(Counter(cells(units.x, units.y, zoom).tolist()).values()) <= most


def test_without_levels_there_is_a_grid_until_zones_can_be_told_apart():
    steps = ladder(square(100))
    assert [isinstance(suited(steps, zoom), int) for zoom in range(MAXZOOM + 1)] == [True] * 9 + [False] * (MAXZOOM - 8)


def test_a_level_that_is_far_too_coarse_gives_way_to_a_grid():
    steps = ladder(square(100, state=100))
    assert suited(steps, 3).level == "state"
    assert isinstance(suited(steps, 6), int)
    assert suited(steps, 12).level == "zone"


def test_zones_on_one_point_are_still_zones_at_the_last_zoom():
    steps = ladder(places([5.0] * 30, [5.0] * 30))
    assert suited(steps, MAXZOOM).level == "zone"
    assert isinstance(suited(steps, MAXZOOM - 1), int)
    assert isinstance(suited(steps, MAXZOOM, most=29), int)


def test_units_of_a_level():
    units = level_units(places([0, 2, 8], [0, 0, 0], [2, 0, 5], st=["b", "b", "b"], cty=["y", "x", "y"]), "cty")
    assert units.table.to_dicts() == [
        {"st": "b", "id": "x", "level": "cty", "zones": 1}, {"st": "b", "id": "y", "level": "cty", "zones": 2},
    ]  # fmt: skip
    assert units.of_zone.tolist() == [1, 0, 1]
    assert 360 * (units.x - 0.5) == pytest.approx([2, (3 * 0 + 6 * 8) / 9], abs=0.01)


def test_cells_of_a_grid_have_ids_and_hold_every_zone_once():
    at = places([-0.1, 0.1, 0.11, 179.9], [0.1, 0.1, 0.1, -60])
    units = grid_units(at, 8)
    assert units.level == GRID
    assert units.table["zones"].to_list() == [1, 2, 1]
    for zone, unit in enumerate(units.of_zone):
        tile = TMS.tile(at.longitude[zone], at.latitude[zone], 8)
        assert units.ids[int(unit)] == f"8/{tile.x}/{tile.y}"


def test_the_mean_of_zones_on_both_sides_of_the_antimeridian_is_not_in_africa():
    units = level_units(places([179.5, -179.5], [-17, -17], st=["fiji", "fiji"]), "st")
    assert min(units.x[0], 1 - units.x[0]) == pytest.approx(0, abs=1e-9)


def test_a_zone_without_a_point_is_a_corrupt_release():
    with pytest.raises(ReleaseCorruptError, match="longitude"):
        ladder(places([0, np.nan], [0, 0]))
