"""What is read beforehand is enough to show the map of a release: its files are not read again."""

import pytest
from handmade import World, Zone
from readtiles import country

from synthmap.published.first_view import UNITS, first_level, first_view
from synthmap.published.od import Query, find_flows
from synthmap.published.tiles import vector_tile
from synthmap.published.tiles_grid import Tile


def test_the_map_opens_without_reading_a_file(opened, monkeypatch):
    release = opened(country())
    level = first_level(release.places)
    wanted = find_flows(opened(country()), Query(level, level, top=50), limit=50).rows
    first_view(release, 1000)

    def gone(name):
        raise AssertionError(f"{name} is read again")

    monkeypatch.setattr(type(release), "file", lambda self, name: gone(name))
    assert find_flows(release, Query(level, level, top=50), limit=50).rows.equals(wanted)
    for kind in ("destinations", "origins"):
        assert any(vector_tile(release, kind, Tile(zoom, 0, 0), 1000) for zoom in (0, 1))


@pytest.mark.parametrize(
    ("towns", "zones", "level"), [(3, UNITS, "zone"), (3, UNITS + 1, "town"), (UNITS + 1, 400, "all")]
)
def test_the_finest_level_without_too_many_units_comes_first(opened, towns, zones, level):
    made = [Zone(f"{i:04}", ("all", f"t{i % towns}"), 0.01 * i, 50.0) for i in range(zones)]
    world = World(made, [("0001", "0002", (3,))], levels=("all", "town"), segments=("A",))
    assert first_level(opened(world).places) == level


def test_where_no_level_has_few_units_the_coarsest_comes_first(opened):
    made = [Zone(f"{i:04}", (), 0.01 * i, 50.0) for i in range(UNITS + 1)]
    assert first_level(opened(World(made, [("0001", "0002", (3,))], segments=("A",))).places) == "zone"
