"""Whole tiles where geometry is awkward: dateline, poles, zones too small or broken."""

import mapbox_vector_tile
import numpy as np
import polars as pl
import pytest
import shapely
from handmade import World, Zone
from readtiles import KINDS, WHOLE, country, degrees, inside, read, tile_at

from synthmap.errors import ReleaseCorruptError
from synthmap.published import tiles
from synthmap.published.tiles import vector_tile
from synthmap.published.tiles_grid import EXTENT, LATITUDE, MAXZOOM
from synthmap.release.manifest import FileRecord
from synthmap.release.verify import sha256


def test_across_the_antimeridian_lines_take_the_short_way_and_are_seen_at_both_ends(opened):
    zones = [Zone("west", (), 179.0, -17.0), Zone("east", (), -179.0, -16.0)]
    release = opened(World(zones, [("west", "east", (3,))], (), ("all",)))
    for zoom in (2, 5, 7):
        there, here = tile_at(zoom, 179.99, -16.5), tile_at(zoom, -179.99, -16.5)
        ((left, _),), ((right, _),) = (read(release, "flows", tile)["flows"] for tile in (there, here))
        assert left.bounds[2] > EXTENT - 1
        assert right.bounds[0] < 1
        xs, ys = shapely.get_coordinates(left)[:, 0], shapely.get_coordinates(right)[:, 0]
        assert xs[0] < xs[-1]
        assert ys[0] < ys[-1]
        middle = tile_at(zoom, 0, -16.5)
        assert vector_tile(release, "flows", middle, 10) == b""
    ((both, values),) = read(release, "flows", WHOLE)["flows"]
    assert values["count"] == 3
    assert both.geom_type == "MultiLineString"
    assert both.length < EXTENT / 30


@pytest.mark.parametrize("split", [False, True])
def test_a_polygon_over_the_antimeridian_does_not_span_the_globe(opened, split):
    ring = shapely.Polygon([(179, -18), (-179, -18), (-179, -16), (179, -16)])  # as a projected layer gives it
    if split:
        ring = shapely.union_all([shapely.box(179, -18, 180, -16), shapely.box(-180, -18, -179, -16)])
    zones = [Zone("fiji", (), 179.5, -17, 1, ring)]
    release = opened(World(zones, [("fiji", "fiji", (3,))], (), ("all",)))
    for zoom in (5, 8):
        for side in (179.99, -179.99):
            tile = tile_at(zoom, side, -17)
            ((shape, _),) = read(release, "origins", tile)["areas"]
            west, east = degrees(tile, shape)[:, 0].min(), degrees(tile, shape)[:, 0].max()
            assert east - west <= 2.1
        assert vector_tile(release, "origins", tile_at(zoom, 0, -17), 10) == b""
        assert vector_tile(release, "origins", tile_at(zoom, 160, -17), 10) == b""


def test_beyond_the_grid_zones_are_cut_and_points_put_on_its_border(opened):
    zones = [
        Zone("pole", (), 10, 89.0, 1, shapely.box(0, 84, 20, 90)),
        Zone("base", (), 10, -90.0, 1, shapely.box(0, -90, 20, -86)),
    ]
    release = opened(World(zones, [("pole", "pole", (3,)), ("base", "pole", (4,))], (), ("all",)))
    for zoom in (0, 4, 6):
        north, south = tile_at(zoom, 10, 85.05), tile_at(zoom, 10, -85.05)
        found = read(release, "origins", north)
        assert "pole" in {values["id"] for _, values in found["points"]}
        if zoom:
            (area,) = (shape for shape, values in found["areas"] if values["id"] == "pole")
            assert area.bounds[1] == 0
        assert "base" in {values["id"] for _, values in read(release, "origins", south)["points"]}
        assert "areas" not in read(release, "origins", south) or zoom == 0
        assert any(values["origin"] == "base" for _, values in read(release, "flows", north)["flows"])


def test_a_zone_too_small_to_have_an_area_is_a_point(opened, monkeypatch):
    monkeypatch.setattr(tiles, "_FINENESS", dict.fromkeys(KINDS, 0))
    zones = [
        Zone("small", (), 2, 48, 1, shapely.Point(2, 48).buffer(1e-9)),
        Zone("large", (), 3, 48, 1, shapely.box(2.5, 47, 4, 49)),
    ]
    release = opened(World(zones, [("small", "large", (3,)), ("large", "small", (2,))], (), ("all",)))
    found = read(release, "origins", tile_at(5, 2.1, 48))
    assert [values["id"] for _, values in found["areas"]] == ["large"]
    assert {values["id"] for _, values in found["points"]} == {"small", "large"}


def test_flows_too_short_to_be_lines_are_points(opened):
    zones = [Zone("a", (), 2, 48), Zone("b", (), 2 + 1e-9, 48), Zone("c", (), 2, 48)]
    release = opened(World(zones, [("a", "b", (3,)), ("a", "c", (2,)), ("b", "b", (1,))], (), ("all",)))
    found = read(release, "flows", tile_at(MAXZOOM, 2, 48))
    assert set(found) == {"within"}
    assert [values["count"] for _, values in found["within"]] == [3, 2, 1]
    assert all(shape.geom_type == "Point" for shape, _ in found["within"])


def test_a_shape_that_crosses_itself_does_not_stop_a_tile(opened):
    bow = shapely.Polygon([(2, 48), (2.4, 48.4), (2.4, 48), (2, 48.4)])
    zones = [Zone("bow", (), 2.1, 48.1, 1, bow), Zone("other", (), 2.5, 48.1, 1, shapely.box(2.4, 48, 2.6, 48.2))]
    release = opened(World(zones, [("bow", "bow", (3,))], (), ("all",)))
    found = read(release, "origins", tile_at(8, 2.2, 48.2))
    assert {values["id"] for _, values in found["areas"]} == {"bow", "other"}
    assert all(shape.is_valid for shape, _ in found["areas"])


def test_a_release_whose_shapes_cannot_be_read_is_corrupt(opened):
    release = opened(country())
    path = release.directory / "zones.parquet"
    for change in (pl.lit(b"nothing").alias("geometry"), None):
        table = pl.read_parquet(path)
        (table.drop("geometry") if change is None else table.with_columns(change)).write_parquet(path)
        release.manifest.files["zones.parquet"] = FileRecord(sha256=sha256(path), bytes=path.stat().st_size)
        with pytest.raises(ReleaseCorruptError):
            vector_tile(release.emptied(), "origins", tile_at(9, 3.6, 45.4), 10_000)


@pytest.mark.parametrize("seed", range(4))
def test_any_shapes_anywhere_make_valid_tiles(opened, seed):
    rng = np.random.default_rng(seed)
    scale, middle = 10 ** rng.uniform(-4, 2), rng.uniform((-180, -95), (180, 95))
    zones = []
    for number in range(15):
        corners = middle + scale * rng.standard_normal((int(rng.integers(3, 12)), 2))  # most cross themselves
        corners = np.column_stack([(corners[:, 0] + 180) % 360 - 180, np.clip(corners[:, 1], -90, 90)])
        shape = [
            shapely.Polygon(corners),
            shapely.Polygon(corners).buffer(scale / 10),
            shapely.multipolygons([shapely.Polygon(corners), shapely.Polygon(corners + 0.01)]),
            shapely.Polygon(np.repeat(corners[:1], 4, axis=0)),
        ][number % 4]
        zones.append(Zone(str(number), (), *corners[0].tolist(), 1, shape))
    flows = [(str(a), str(b), (1 + a * b,)) for a in range(15) for b in range(0, 15, 2)]
    release = opened(World(zones, flows, (), ("all",)))
    for zoom in (0, 5, 14):
        for zone in zones[::3]:
            tile = tile_at(zoom, zone.longitude, min(max(zone.latitude, -LATITUDE), LATITUDE))
            for kind in KINDS:
                for features in read(release, kind, tile).values():
                    for shape, _ in features:
                        assert shape.is_valid
                        assert not shape.is_empty
                        assert (np.abs(shapely.get_coordinates(shape) - EXTENT / 2) <= EXTENT / 2 + 128).all()


def test_a_point_near_a_border_is_in_both_tiles_as_one_feature(opened):
    zones = [Zone("a", (), -1e-3, 48.0), Zone("b", (), 30.0, 48.0)]
    release = opened(World(zones, [("a", "a", (1,)), ("b", "b", (2,))], (), ("all",)))
    west, east = tile_at(9, -1e-3, 48.0), tile_at(9, 1e-3, 48.0)
    assert west != east
    for kind, layer in (("origins", "points"), ("flows", "within")):
        found = [
            mapbox_vector_tile.decode(vector_tile(release, kind, tile, 100))[layer]["features"] for tile in (west, east)
        ]
        assert found[0][0]["id"] == found[1][0]["id"]
        assert [len(features) for features in found] == [1, 1]
    ((shape, _),) = inside(read(release, "origins", west)["points"])
    assert shape.x < EXTENT
    assert inside(read(release, "origins", east)["points"]) == []
