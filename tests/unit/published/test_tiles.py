"""Whole tiles, decoded and compared with the release's own table."""

import mapbox_vector_tile
import numpy as np
import polars as pl
import pytest
import shapely
from handmade import World, Zone, open_world
from mapbox_vector_tile.Mapbox import vector_tile_pb2

from synthmap.errors import ReleaseCorruptError
from synthmap.published import tiles, tiles_encode
from synthmap.published.tiles import properties, vector_tile
from synthmap.published.tiles_grid import EXTENT, LATITUDE, MAXZOOM, TMS, Tile
from synthmap.release.manifest import FileRecord
from synthmap.release.verify import sha256

PIXEL = 8  # units of a tile: a tile is drawn 512 pixels wide
KINDS = ("flows", "origins", "destinations")
WHOLE = Tile(0, 0, 0)


@pytest.fixture
def opened(tmp_path):
    """Open a release of a world written by hand."""
    made = iter(range(100))
    return lambda world: open_world(tmp_path / str(next(made)), world, group=50, memory=2**24)


def read(opened, kind, tile, most=10_000):
    """Return the features of each layer, with shapely geometries in units of the tile."""
    data = vector_tile(opened, kind, tile, most)
    layers = mapbox_vector_tile.decode(data, default_options={"y_coord_down": True})
    return {
        name: [(shapely.geometry.shape(one["geometry"]), one["properties"]) for one in layer["features"]]
        for name, layer in layers.items()
    }


def degrees(tile, shape):
    """Return longitude and latitude of a shape of a tile."""
    x = (np.asarray(shapely.get_coordinates(shape)) / EXTENT + (tile.x, tile.y)) / 2**tile.z
    return np.column_stack([360 * (x[:, 0] - 0.5), np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * x[:, 1]))))])


def tile_at(zoom, longitude, latitude):
    found = TMS.tile(longitude, latitude, zoom)
    return Tile(zoom, found.x, found.y)


def tiles_of(world, zoom):
    """Return the tiles of a zoom that hold a zone."""
    return sorted({tile_at(zoom, zone.longitude, min(max(zone.latitude, -LATITUDE), LATITUDE)) for zone in world.zones})


def inside(features):
    """Return the points that lie in the tile itself, not in its buffer."""
    return [
        (shape, values)
        for shape, values in features
        if (np.abs(shapely.get_coordinates(shape) - EXTENT / 2 + 0.25) < EXTENT / 2).all(axis=1).any()
    ]


def summed(features, name="count"):
    return sum(values[name] for _, values in features)


def country(polygons=False):
    """600 zones of half a degree in 24 counties in 2 states, with 1,500 flows; a few from elsewhere."""
    zones = []
    for number in range(600):
        x, y = number % 30, number // 30
        west, south = 3 + x * 0.05, 45 + y * 0.05
        shape = shapely.box(west, south, west + 0.05, south + 0.05) if polygons else None
        parents = (f"s{x // 15}", f"s{x // 15}-{x // 5}-{y // 5}")
        zones.append(Zone(f"{number:04}", parents, west + 0.025, south + 0.025, number, shape))
    rng = np.random.default_rng(2)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 600, (1500, 2))} | {(n, n) for n in range(0, 600, 7)})
    flows = [
        (f"{a:04}", f"{b:04}", (int(c), int(d)))
        for (a, b), (c, d) in zip(pairs, rng.geometric(0.1, (len(pairs), 2)), strict=True)
    ]
    return World(zones, [*flows, ("elsewhere", "0003", (50, 1))], ("state", "county"), ("young", "old"))


@pytest.mark.parametrize("zoom", [0, 3, 6, 8, 11])
@pytest.mark.parametrize("polygons", [False, True])
def test_points_of_all_tiles_of_a_zoom_sum_to_the_table(opened, zoom, polygons):
    world = country(polygons)
    release = opened(world)
    here = [row for row in world.rows if row["origin"] != "elsewhere"]
    for kind, rows in (("origins", here), ("destinations", world.rows)):
        points = [one for tile in tiles_of(world, zoom) for one in inside(read(release, kind, tile).get("points", []))]
        for name in ("count", "young", "old"):
            assert summed(points, name) == sum(row[name] for row in rows)
        assert summed(points, "out" if kind == "origins" else "in") == summed(points)
        assert len({values["id"] for _, values in points}) == len(points)


def test_zones_have_their_totals_their_place_and_their_parents(opened):
    world = country()
    release = opened(world)
    living = {}
    for row in world.rows:
        living[row["origin"]] = living.get(row["origin"], 0) + row["count"]
    seen = {}
    for tile in tiles_of(world, 9):
        for shape, values in read(release, "origins", tile)["points"]:
            seen[values["id"]] = (*degrees(tile, shape)[0], values)
    living.pop("elsewhere")
    assert {zone: values["count"] for zone, (*_, values) in seen.items()} == living
    for zone in world.zones:
        if zone.id in seen:
            longitude, latitude, values = seen[zone.id]
            assert longitude == pytest.approx(zone.longitude, abs=360 / 2**9 / EXTENT * PIXEL)
            assert latitude == pytest.approx(zone.latitude, abs=360 / 2**9 / EXTENT * PIXEL)
            assert (values["state"], values["county"]) == zone.parents
            assert values["level"] == "zone"
            assert values["zones"] == 1


@pytest.mark.parametrize(("zoom", "level"), [(0, "state"), (7, "county"), (10, "zone")])
def test_flows_are_between_the_units_that_suit_a_zoom(opened, zoom, level):
    world = country()
    release = opened(world)
    of = {
        zone.id: {"state": zone.parents[0], "county": zone.parents[1], "zone": zone.id}[level] for zone in world.zones
    }
    truth = {}
    for row in world.rows:
        if row["origin"] != "elsewhere":
            pair = of[row["origin"]], of[row["destination"]]
            truth[pair] = truth.get(pair, 0) + row["count"]
    found = {}
    for tile in tiles_of(world, zoom):
        for layer, features in read(release, "flows", tile).items():
            for _, values in features:
                assert values["level"] == level
                assert (layer == "within") == (values["origin"] == values["destination"])
                assert found.setdefault((values["origin"], values["destination"]), values["count"]) == values["count"]
    assert found == truth


def test_lines_run_from_origin_to_destination(opened):
    world = country()
    release = opened(world)
    at = {zone.id: (zone.longitude, zone.latitude) for zone in world.zones}
    whole = 0
    for tile in tiles_of(world, 10):
        for shape, values in read(release, "flows", tile).get("flows", []):
            assert shape.geom_type == "LineString"
            ends = degrees(tile, shape)
            inside = [np.abs(point - EXTENT / 2).max() < EXTENT / 2 for point in shapely.get_coordinates(shape)]
            for end, place, name in zip(ends, inside, ("origin", "destination"), strict=True):
                if place:
                    assert end == pytest.approx(np.array(at[values[name]]), abs=360 / 2**10 / EXTENT * PIXEL)
            whole += all(inside)
    assert whole > 20


@pytest.mark.parametrize("zoom", [6, 8, 10, 12])
def test_a_line_is_in_every_tile_that_it_crosses(opened, zoom):
    zones = [Zone("a", (), 2.0, 48.0), Zone("b", (), 3.1, 48.7)]
    release = opened(World(zones, [("a", "b", (5,))], (), ("all",)))
    line = shapely.LineString([(2.0, 48.0), (3.1, 48.7)])
    low, high = tile_at(zoom, 2.0, 48.7), tile_at(zoom, 3.1, 48.0)
    crossed = 0
    for x in range(low.x, high.x + 1):
        for y in range(low.y, high.y + 1):
            tile = Tile(zoom, x, y)
            bounds = TMS.bounds(x, y, zoom)
            found = read(release, "flows", tile)
            if line.intersects(shapely.box(*bounds).buffer(-1e-4)):
                (shape, values) = found["flows"][0]
                assert values["count"] == 5
                assert shape.length > 0
                crossed += 1
    assert crossed >= 1


def test_lines_meet_at_the_border_of_tiles(opened):
    release = opened(country())
    left = tile_at(8, 3.6, 45.4)
    right = Tile(8, left.x + 1, left.y)
    ends = [
        {
            (values["origin"], values["destination"]): shape.intersection(shapely.LineString([(at, -99), (at, 4999)])).y
            for shape, values in read(release, "flows", tile)["flows"]
            if shape.crosses(shapely.LineString([(at, -99), (at, 4999)]))
        }
        for tile, at in ((left, EXTENT), (right, 0))
    ]
    both = ends[0].keys() & ends[1].keys()
    assert len(both) > 20
    assert all(abs(ends[0][pair] - ends[1][pair]) <= 2 for pair in both)


def test_areas_meet_at_the_border_of_tiles(opened):
    release = opened(country(polygons=True))
    left = tile_at(9, 3.6, 45.4)
    right = Tile(9, left.x + 1, left.y)
    shapes = [
        {
            values["id"]: shapely.affinity.translate(shape, EXTENT * (tile.x - left.x)).intersection(
                shapely.box(EXTENT - 60, -60, EXTENT + 60, EXTENT + 60)
            )
            for shape, values in read(release, "destinations", tile)["areas"]
        }
        for tile in (left, right)
    ]
    both = [key for key in shapes[0] if shapes[0][key].area > 0 and key in shapes[1]]
    assert len(both) >= 5
    for key in both:
        assert shapes[0][key].symmetric_difference(shapes[1][key]).area <= 2 * shapes[0][key].length


def test_areas_cover_what_the_zones_cover_and_are_valid(opened):
    world = country(polygons=True)
    release = opened(world)
    tile = tile_at(9, 3.6, 45.4)
    found = read(release, "origins", tile)
    assert all(shape.is_valid and shape.area > 0 for shape, _ in found["areas"])
    assert all(shape.geom_type in ("Polygon", "MultiPolygon") for shape, _ in found["areas"])
    core = shapely.box(0, 0, EXTENT, EXTENT)
    assert shapely.union_all([shape for shape, _ in found["areas"]]).intersection(core).area == pytest.approx(
        core.area, rel=0.01
    )
    assert sum(shape.intersection(core).area for shape, _ in found["areas"]) == pytest.approx(core.area, rel=0.01)


def test_rings_wind_as_the_specification_wants(opened):
    ring = shapely.box(2, 48, 2.4, 48.4) - shapely.box(2.1, 48.1, 2.2, 48.2)
    release = opened(World([Zone("a", (), 2.05, 48.05, 1, ring)], [("a", "a", (1,))], (), ("all",)))
    data = vector_tile(release, "origins", tile_at(9, 2.2, 48.2), 100)
    (layer,) = (one for one in _message(data).layers if one.name == "areas")
    areas = [_area(ring) for ring in _rings(layer.features[0].geometry)]
    assert areas[0] > 0
    assert all(area < 0 for area in areas[1:])


def _message(data):
    message = vector_tile_pb2.tile()
    message.ParseFromString(data)
    return message


def _rings(commands):
    """Yield the rings of a geometry, read by the letter of the specification."""
    pen, at, ring = np.zeros(2, int), 0, []
    while at < len(commands):
        command, times = commands[at] & 7, commands[at] >> 3
        at += 1
        if command == 7:
            yield np.array(ring)
            ring = []
            continue
        for _ in range(times):
            pen = pen + [(n >> 1) ^ -(n & 1) for n in commands[at : at + 2]]
            ring.append(pen)
            at += 2


def _area(ring):
    x, y = ring.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_a_tile_has_no_more_features_than_it_may(opened, kind, most):
    release = opened(country(polygons=True))
    for zoom in (0, 4, 7, 9, 12):
        found = read(release, kind, tile_at(zoom, 3.6, 45.4), most)
        assert sum(map(len, found.values())) <= most
        assert found or zoom > 0


def test_a_large_tile_is_cut_to_its_bytes(opened, monkeypatch):
    monkeypatch.setattr(tiles_encode, "TILE_BYTES", 5_000)
    release = opened(country(polygons=True))
    for kind in KINDS:
        for zoom in (7, 8, 9):
            assert len(vector_tile(release, kind, tile_at(zoom, 3.6, 45.4), 10_000)) <= 5_000


def test_the_same_tile_has_the_same_bytes_however_often_it_is_made(opened):
    first, second = opened(country(polygons=True)), opened(country(polygons=True))
    for kind in KINDS:
        for zoom in (0, 5, 8, 9):
            tile = tile_at(zoom, 3.6, 45.4)
            assert vector_tile(first, kind, tile, 10_000) == vector_tile(second, kind, tile, 10_000)


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_a_tile_has_no_bytes(opened, kind):
    release = opened(country(polygons=True))
    assert vector_tile(release, kind, Tile(5, 0, 0), 100) == b""
    assert vector_tile(release, kind, Tile(MAXZOOM, 5, 2**MAXZOOM - 1), 100) == b""


def test_features_have_the_properties_that_are_declared(opened):
    release = opened(country(polygons=True))
    types = {"string": str, "integer": int}
    for kind in KINDS:
        declared = {name: types[one] for name, one in properties(release, kind).items()}
        for zoom in (1, 9):
            for features in read(release, kind, tile_at(zoom, 3.6, 45.4)).values():
                for _, values in features:
                    assert values.keys() <= declared.keys()
                    assert all(type(value) is declared[name] for name, value in values.items())
        assert values.keys() == declared.keys()  # at the finest level all of them


@pytest.mark.parametrize(
    "id", ["001", "0", "Île", "東京", "a/b?c", "<img src=x onerror=alert(1)>", "O'Brien", "\x00", "e\u0301", "𝒳"]
)
def test_ids_are_the_same_text(opened, id):
    release = opened(
        World(
            [Zone(id, (id,), 1, 1), Zone("zz", ("other",), 40, 40)],
            [(id, "zz", (1,)), (id, id, (3,))],
            ("country",),
            ("all",),
        )
    )
    for zoom in (0, 10):
        tile = tile_at(zoom, 1, 1)
        flows = read(release, "flows", tile)
        assert {values["origin"] for part in flows.values() for _, values in part} == {id}
        assert id in {values["id"] for _, values in read(release, "origins", tile)["points"]}


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
