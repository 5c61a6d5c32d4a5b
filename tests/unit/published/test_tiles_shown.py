"""Which flows are shown at a zoom: whole, the strongest first, never too many in a tile."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.published import tiles_shown
from synthmap.published.tiles_flows import rank_flows
from synthmap.published.tiles_grid import Tile, point
from synthmap.published.tiles_shown import crossed, show
from synthmap.published.tiles_units import Units

REGIONS = {"city": (2, 2.5, 48, 48.3), "globe": (-180, 180, -89, 89), "antimeridian": (176, 184, -20, -14)}


def world(region, zones=60, flows=400):
    """Flows between random places of a region."""
    rng = np.random.default_rng(5)
    west, east, south, north = REGIONS[region]
    x, y = point((rng.uniform(west, east, zones) + 180) % 360 - 180, rng.uniform(south, north, zones))
    table = pl.DataFrame({"id": [str(number) for number in range(zones)]})
    places = Units("zone", table, x, y, np.arange(zones, dtype=np.int32))
    pairs = np.array(sorted({(int(a), int(b)) for a, b in rng.integers(0, zones, (flows, 2))}), np.int32)
    return rank_flows([[(pairs[:, 0], pairs[:, 1], rng.geometric(0.2, len(pairs)))]], places)


def pairs(flows):
    return list(zip(flows.origin.tolist(), flows.destination.tolist(), strict=True))


def shapes(flows):
    """Return for each flow its line, or its point, at every copy of the world."""
    out = []
    for ends in flows.lines():
        copies = [ends + np.array([copy, 0]) for copy in (-1, 0, 1)]
        out.append([shapely.LineString(one) if (one[0] != one[1]).any() else shapely.Point(one[0]) for one in copies])
    return out


def tiles_near(flows, zoom):
    """Return tiles that hold ends, and their neighbours."""
    ends = {(int(x * 2**zoom), int(y * 2**zoom)) for x, y in zip(flows.units.x, flows.units.y, strict=True)}
    some = sorted(ends)[:: max(1, len(ends) // 12)]
    found = [Tile(zoom, (x + dx) % 2**zoom, y + dy) for x, y in some for dx in (-1, 0, 1) for dy in (0, 1)]
    return sorted({tile for tile in found if tile.exists})


@pytest.fixture
def few_together(monkeypatch):
    """Decide and look for flows in such small groups that a few hundred make many."""
    monkeypatch.setattr(tiles_shown, "BLOCK", 4)
    monkeypatch.setattr(tiles_shown, "_AT_ONCE", 32)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("zoom", [0, 2, 5, 8, 11, 14])
def test_where_there_is_room_all_flows_that_touch_a_tile_are_found(few_together, region, zoom):
    flows = world(region)
    shown = show(flows, zoom, 10**6)
    drawn = shapes(flows)
    for tile in tiles_near(flows, zoom):
        box = shapely.box(*tile.box())
        truth = [pair for pair, copies in zip(pairs(flows), drawn, strict=True) if any(box.intersects(copies))]
        assert pairs(shown.touching(tile, 10**6)) == truth
        assert pairs(shown.touching(tile, 3)) == truth[:3]


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("zoom", [0, 3, 8, 10])
@pytest.mark.parametrize("most", [1, 10, 50])
def test_no_tile_has_more_than_it_may_and_every_line_is_whole(few_together, region, zoom, most):
    flows = world(region)
    shown = show(flows, zoom, most)
    chosen = set(pairs(shown.flows))
    owner, tiles = crossed(flows.lines() * 2**zoom)
    way, names = {}, pairs(flows)
    for flow, (column, row) in zip(owner.tolist(), tiles.astype(int).tolist(), strict=True):
        way.setdefault(names[flow], []).append(Tile(zoom, column % 2**zoom, row))
    load = Counter(tile for pair in chosen for tile in set(way[pair]))
    assert max(load.values()) <= most
    for pair in sorted(chosen)[::7]:
        for tile in way[pair][:20]:
            assert pair in pairs(shown.touching(tile, 10**6))
    left_out = [pair for pair in pairs(flows) if pair not in chosen]
    for pair in left_out:  # each would have crossed a tile that is full, but for what its buffer needs
        assert max(load[tile] for tile in way[pair]) >= max(1, most * 4 // 5)


def test_the_strongest_come_first(few_together):
    flows = world("city")
    shown = show(flows, 9, 20)
    assert pairs(flows)[0] in pairs(shown.flows)
    inside = set(pairs(shown.flows))
    assert (
        flows.count[[pair in inside for pair in pairs(flows)]].mean()
        > 2 * flows.count[[pair not in inside for pair in pairs(flows)]].mean()
    )


def test_work_is_bounded(monkeypatch, few_together):
    monkeypatch.setattr(tiles_shown, "_CROSSINGS", 100)
    flows = world("city")
    shown = show(flows, 14, 10**6)
    assert 0 < len(shown.flows) <= 64
    assert set(pairs(shown.flows)) <= set(pairs(flows)[:64])


def test_no_flows_at_all():
    flows = world("city").take(slice(0, 0))
    shown = show(flows, 7, 10)
    assert len(shown.flows) == 0
    assert len(shown.touching(Tile(0, 0, 0), 10)) == 0


number = st.floats(-6, 6, allow_subnormal=False).map(lambda x: round(x, 3))


SQUARES = np.stack(np.meshgrid(np.arange(-7, 7), np.arange(-7, 7)), axis=-1).reshape(-1, 2)
BOXES = shapely.box(SQUARES[:, 0], SQUARES[:, 1], SQUARES[:, 0] + 1, SQUARES[:, 1] + 1)


@settings(deadline=None)
@given(st.lists(st.tuples(number, number, number, number), min_size=1, max_size=5))
def test_squares_that_lines_cross(ends):
    lines = np.array(ends).reshape(-1, 2, 2)
    owner, squares = crossed(lines)
    for number, line in enumerate(lines):
        found = {tuple(square) for square in squares[owner == number].astype(int).tolist()}
        assert {tuple(np.floor(end).astype(int).tolist()) for end in line} <= found
        shape = shapely.LineString(line)
        inner = shapely.length(shapely.intersection(shape, shapely.buffer(BOXES, -1e-5)))
        assert set(map(tuple, SQUARES[inner > 1e-5].tolist())) <= found
        assert found <= set(map(tuple, SQUARES[shapely.distance(shape, BOXES) < 1e-6].tolist()))
