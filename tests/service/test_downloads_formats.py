"""Every format read back with a reader that is not ours, and compared with the release flow by flow."""

import gzip
import json
import shutil
import sqlite3
import subprocess
import zipfile

import geopandas
import mapbox_vector_tile
import numpy as np
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from exported import ELSEWHERE, check_about, point, read_world, told_errors
from pmtiles.reader import MmapSource, Reader, all_tiles

from synthmap.published.exports import export, offered
from synthmap.published.figure_errors import figure_errors
from synthmap.published.table import units_of


@pytest.fixture(scope="module", params=["made-up", "odd"])
def world(request, store):
    return read_world(store, request.param)


@pytest.fixture(scope="module")
def made(world, tmp_path_factory):
    """Return a function that exports a file and returns its path."""
    directory = tmp_path_factory.mktemp("exports")
    return lambda name: export(world.opened, directory, name)


def flows_of(frame, segments):
    """Return the flows of a table with usual column names; every pair is there once."""
    found = {
        (row["origin"], row["destination"]): tuple(row[name] for name in ("count", *segments))
        for row in frame.to_dict("records")
    }
    assert len(found) == len(frame)
    return found


def check_errors(world, frame):
    """Errors of flows are those that /od tells."""
    told = told_errors(world)
    for origin, destination, error in zip(frame["origin"], frame["destination"], frame["expected_error"], strict=True):
        assert error == told[origin, destination]


def check_lines(world, frame):
    """Geometries run from origin to destination; a flow within a zone is a point, one from elsewhere nothing."""
    for origin, destination, shape in zip(frame["origin"], frame["destination"], frame.geometry, strict=True):
        if origin == ELSEWHERE:
            assert shape is None
        elif origin == destination:
            assert shape == shapely.Point(point(world, origin))
        else:
            assert shape == shapely.LineString([point(world, origin), point(world, destination)])
    assert frame.geometry.dropna().is_valid.all()


def living(world):
    """Synthetic workers by zone where they live, for all zones."""
    return {zone: world.origins[zone] for zone in world.zones}


def errors_of_residents(world):
    """Expected errors of those who live in each zone and elsewhere, as tiles tell them."""
    zones = units_of(world.opened, "zone")
    workers = np.array([world.origins[zone] for zone in zones.names])
    found = figure_errors(world.opened).of_residents(workers, np.arange(len(zones)))
    return dict(zip(zones.names, [float(f"{error:.3g}") for error in found], strict=True))


def check_zones(world, origins, destinations):
    """Totals, parents and geometries are those of the release."""
    assert dict(zip(origins["id"], origins["count"], strict=True)) == living(world)
    assert dict(zip(destinations["id"], destinations["count"], strict=True)) == world.destinations
    inside = {ends[0]: numbers[0] for ends, numbers in world.flows.items() if ends[0] == ends[1]}
    outside = {ends[1]: numbers[0] for ends, numbers in world.flows.items() if ends[0] == ELSEWHERE}
    headcount = {row["destination"]: row["headcount"] for row in world.plan}
    for row in destinations.to_dict("records"):
        assert row["headcount"] == headcount[row["id"]]
        assert row["from_elsewhere"] == outside.get(row["id"], 0)
        assert 0 < row["prior_share"] <= 1  # small destinations may be all prior
    assert dict(zip(origins["id"], origins["expected_error"], strict=True)) == errors_of_residents(world)
    for frame in (origins, destinations):
        for row in frame.to_dict("records"):
            assert row["within"] == inside.get(row["id"], 0)
            if row["id"] == ELSEWHERE:
                assert row["geometry"] is None
                continue
            truth = world.zones[row["id"]]
            assert [row[level] for level in world.levels] == [truth[level] for level in world.levels]
            assert row["weight"] == truth["weight"]
            assert row["geometry"].equals(shapely.from_wkb(truth["geometry"]))
            assert row["geometry"].geom_type == ("MultiPolygon" if world.polygons else "Point")


def test_geoparquet_holds_every_row(world, made):
    flows, origins, destinations = (
        geopandas.read_parquet(made(f"{name}.parquet")) for name in ("flows", "origins", "destinations")
    )
    assert flows_of(flows, world.segments) == world.flows
    check_lines(world, flows)
    check_errors(world, flows)
    check_zones(world, origins, destinations)
    assert all(frame.crs.to_string() == "OGC:CRS84" for frame in (flows, origins, destinations))


@pytest.mark.parametrize("name", ["flows", "origins", "destinations"])
def test_geoparquet_passes_the_validator(made, name):
    validator = pytest.importorskip("geoparquet_validator")
    report = validator.check(str(made(f"{name}.parquet")))
    assert report["version"] == "1.1.0"
    for group in ("core", "covering"):
        assert validator.failed(report, group) == []
    assert [one for one in report["outcomes"] if one["id"].startswith("/conf/covering") and one["status"] == "pass"]


def test_geoparquet_says_what_it_is_and_finds_by_box(world, made):
    path = made("destinations.parquet")
    metadata = {key.decode(): value.decode() for key, value in pq.read_schema(path).metadata.items()}
    check_about(world, metadata)
    one = next(iter(world.destinations))
    x, y = point(world, one)
    found = geopandas.read_parquet(path, bbox=(x - 1e-6, y - 1e-6, x + 1e-6, y + 1e-6))
    assert one in set(found["id"])
    assert len(found) < len(world.destinations)


def test_geopackage_holds_every_row(world, made):
    path = made("release.gpkg")
    assert set(pyogrio.list_layers(path)[:, 0]) == {"flows", "origins", "destinations", "about"}
    flows, origins, destinations = (
        geopandas.read_file(path, layer=name) for name in ("flows", "origins", "destinations")
    )
    assert flows_of(flows, world.segments) == world.flows
    check_lines(world, flows)
    check_errors(world, flows)
    check_zones(world, origins, destinations)


def test_geopackage_says_what_it_is_to_plain_sqlite(world, made):
    with sqlite3.connect(f"file:{made('release.gpkg')}?mode=ro", uri=True) as base:
        told = dict(base.execute("select name, value from about"))
        kinds = dict(base.execute("select name, type from pragma_table_info('flows')"))
        described = base.execute("select description from gpkg_contents where table_name = 'flows'").fetchone()[0]
        ids = {row[0] for row in base.execute("select distinct origin from flows where typeof(origin) = 'text'")}
    base.close()
    check_about(world, told)
    assert json.loads(told["manifest"]) == json.loads((world.opened.directory / "manifest.json").read_bytes())
    assert kinds["origin"] == kinds["destination"] == "TEXT"
    assert world.opened.id in described
    assert ids == set(world.origins)


def test_flatgeobuf_holds_all_that_has_a_place_and_tells_what_it_leaves_out(world, made):
    flows = geopandas.read_file(made("flows.fgb"))
    assert flows_of(flows, world.segments) == {ends: n for ends, n in world.flows.items() if ends[0] != ELSEWHERE}
    check_lines(world, flows)
    check_errors(world, flows)
    origins, destinations = (geopandas.read_file(made(f"{name}.fgb")) for name in ("origins", "destinations"))
    placed = {zone: count for zone, count in living(world).items() if zone != ELSEWHERE}
    assert dict(zip(origins["id"], origins["count"], strict=True)) == placed
    assert flows["count"].sum() + destinations["from_elsewhere"].sum() == world.opened.manifest.invariants.workers
    told = pyogrio.read_info(made("flows.fgb"))["layer_metadata"]
    check_about(world, told)
    away = sum(numbers[0] for ends, numbers in world.flows.items() if ends[0] == ELSEWHERE)
    assert (f"elsewhere; {away:,} workers)" in told.get("omitted", "")) == (ELSEWHERE in world.zones)
    title = offered(world.opened)["flows.fgb"].title
    assert title == "FlatGeobuf: flows" + f", without the {away:,} workers from elsewhere" * (ELSEWHERE in world.zones)


def test_flatgeobuf_has_an_index(world, made):
    x, y = point(world, next(iter(world.destinations)))
    box = (x - 1e-6, y - 1e-6, x + 1e-6, y + 1e-6)
    assert pyogrio.read_info(made("destinations.fgb"))["capabilities"]["fast_spatial_filter"]
    assert 0 < len(geopandas.read_file(made("destinations.fgb"), bbox=box)) < len(world.destinations)


SHORT = {"dest": "destination", "km": "distance_km", "exp_error": "expected_error"}


def test_shapefiles_hold_every_row_in_short_fields(world, made):
    path = made("release.shp.zip")
    layers = dict(pyogrio.list_layers(path))
    assert set(layers) == {"flows", "flows_points", "origins", "destinations"}
    lines, points, origins, destinations = (
        geopandas.read_file(path, layer=name) for name in ("flows", "flows_points", "origins", "destinations")
    )
    found = {}
    for frame in (lines, points):
        assert all(len(name) <= 10 for name in frame.columns)
        frame = frame.rename(columns=SHORT)  # noqa: PLW2901
        check_lines(world, frame)
        check_errors(world, frame)
        found |= flows_of(frame, world.segments)
    assert found == world.flows
    assert len(lines) + len(points) == len(world.flows)
    long = {"from_else": "from_elsewhere", "prior_shr": "prior_share"}
    for frame, total in ((origins, living(world)), (destinations, world.destinations)):
        assert dict(zip(frame["id"], frame["count"], strict=True)) == total
    assert set(long) < set(destinations.columns)


def test_shapefiles_come_with_encoding_projection_and_readme(world, made):
    with zipfile.ZipFile(made("release.shp.zip")) as archive:
        assert archive.testzip() is None
        assert archive.read("flows.cpg") == b"UTF-8"
        assert b"WGS_1984" in archive.read("flows.prj")
        readme = archive.read("README.txt").decode("utf-8")
    assert world.opened.etag in readme
    assert "destinations.from_else: from_elsewhere" in readme
    assert "flows.exp_error: expected_error" in readme
    assert "expected_error is the root mean square error" in readme
    assert "differential privacy" in readme


def tiles_of(path):
    """Return header, metadata and the decoded tiles of a PMTiles file by zoom, column and row."""
    with path.open("rb") as file:
        reader = Reader(MmapSource(file))
        tiles = {at: mapbox_vector_tile.decode(gzip.decompress(data)) for at, data in all_tiles(reader.get_bytes)}
        return reader.header(), reader.metadata(), tiles


def features(tiles, zoom, *layers):
    """Return the properties of the features of a zoom; one that lies in several tiles is the same in all."""
    found = [
        feature["properties"]
        for at, tile in tiles.items() if at[0] == zoom
        for layer in layers for feature in tile.get(layer, {"features": []})["features"]
    ]  # fmt: skip
    return list({tuple(row.items()): row for row in found}.values())


def test_pmtiles_show_flows_of_the_release(world, made):
    header, told, tiles = tiles_of(made("flows.pmtiles"))
    assert {zoom for zoom, *_ in tiles} == set(range(header["max_zoom"] + 1))
    rows = features(tiles, header["max_zoom"], "flows", "within")
    found = {(row["origin"], row["destination"]): row["count"] for row in rows}
    shown = {ends: numbers[0] for ends, numbers in world.flows.items() if ends[0] != ELSEWHERE}
    assert len(found) == len(rows)
    assert {row["level"] for row in rows} == {"zone"}
    assert found.items() <= shown.items()
    assert max(found.values()) == max(shown.values())
    if len(shown) < 100:
        assert found == shown
    check_about(world, told)
    assert "strongest" in told["omitted"]
    assert {layer["id"] for layer in told["vector_layers"]} == {"flows", "within"}


@pytest.mark.parametrize("name", ["origins", "destinations"])
def test_pmtiles_hold_every_zone_at_the_deepest_zoom(world, made, name):
    header, told, tiles = tiles_of(made(f"{name}.pmtiles"))
    total = {zone: count for zone, count in getattr(world, name).items() if zone != ELSEWHERE}
    for zoom in range(header["max_zoom"] + 1):
        assert sum(row["count"] for row in features(tiles, zoom, "points")) == sum(total.values())
    points = features(tiles, header["max_zoom"], "points")
    assert {row["id"]: row["count"] for row in points} == total
    areas = {row["id"] for row in features(tiles, header["max_zoom"], "areas")}
    assert areas == (set(world.zones) - {ELSEWHERE} if world.polygons else set())
    assert told["vector_layers"][0]["fields"]["id"] == "String"
    for zone in total:
        x, y = point(world, zone)
        assert header["min_lon_e7"] <= x * 1e7 <= header["max_lon_e7"]
        assert header["min_lat_e7"] <= y * 1e7 <= header["max_lat_e7"]


def test_a_newer_gdal_than_the_systems_reads_pmtiles(world, made):
    assert set(pyogrio.list_layers(made("flows.pmtiles"))[:, 0]) == {"flows", "within"}


@pytest.mark.parametrize("name", ["release.gpkg", "flows.fgb", "release.shp.zip"])
def test_the_systems_gdal_reads_it_without_complaint(world, made, name):
    ogrinfo = shutil.which("ogrinfo")
    if ogrinfo is None:
        pytest.skip("ogrinfo (gdal-bin) is not there")
    done = subprocess.run([ogrinfo, "-ro", "-so", "-al", made(name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    counts = [int(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith("Feature Count")]
    assert sum(counts) >= len([ends for ends in world.flows if ends[0] != ELSEWHERE])
    assert "origin: String" in done.stdout
