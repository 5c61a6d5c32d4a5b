"""Tiles read by programs that no one here wrote."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import httpx2
import pyogrio
import pytest

GRID = "WebMercatorQuad"
SYSTEM_PYTHON = "/usr/bin/python3"
COLOURS = {"areas": "#aaccee", "flows": "#cc3300", "within": "#3300cc", "points": "#006600"}


@pytest.fixture(scope="session")
def draw(tmp_path_factory):
    """Return a function that draws tiles with QGIS and tells how many pixels have the colour of each layer."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path_factory.mktemp("qgis"))}
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run(
            [SYSTEM_PYTHON, "-c", "import qgis.core"], env=environment, capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no PyQGIS (Debian: python3-qgis)")
    script = Path(__file__).parents[1] / "helpers" / "qgis_tiles.py"
    pictures = Path(os.environ.get("SYNTHMAP_TEST_PICTURES", tmp_path_factory.mktemp("pictures")))

    def run(template, name, bounds):
        words = [template, pictures / f"{name}.png", *bounds, json.dumps(COLOURS)]
        done = subprocess.run(
            [SYSTEM_PYTHON, script, *map(str, words)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.strip().splitlines()[-1])
        assert found["valid"]
        return found["pixels"]

    return run


def described(server, release, kind):
    return httpx2.get(f"{server}/collections/{release}.{kind}/tiles/{GRID}/tilejson.json").json()


def test_qgis_draws_polygons_and_points(draw, live_server, odd):
    found = described(live_server, odd, "destinations")
    pixels = draw(found["tiles"][0], "odd-destinations", found["bounds"])
    assert pixels["areas"] > 50_000  # eight squares in a row, over the whole width
    assert pixels["points"] > 60
    assert pixels["flows"] == 0


def test_qgis_draws_lines_and_flows_within_a_zone(draw, live_server, odd):
    found = described(live_server, odd, "flows")
    west, south, east, north = found["bounds"]
    pixels = draw(found["tiles"][0], "odd-flows", (west, south - 0.2, east, north + 0.2))
    assert pixels["flows"] > 300
    assert pixels["within"] > 30
    assert pixels["areas"] == 0


@pytest.mark.parametrize("kind", ["flows", "origins"])
def test_qgis_draws_a_whole_release(draw, live_server, made_up, kind):
    found = described(live_server, made_up, kind)
    pixels = draw(found["tiles"][0], f"made-up-{kind}", found["bounds"])
    assert pixels["flows" if kind == "flows" else "points"] > 500


def test_qgis_draws_nothing_where_nothing_is(draw, live_server, made_up):
    found = described(live_server, made_up, "flows")
    pixels = draw(found["tiles"][0], "empty", (100, -60, 140, -40))
    assert not any(pixels.values())


def test_qgis_draws_from_behind_a_proxy_with_a_prefix(draw, proxied, odd):
    found = described(proxied.address, odd, "destinations")
    assert found["tiles"][0].startswith(f"{proxied.address}/collections/")
    assert draw(found["tiles"][0], "proxied", found["bounds"])["areas"] > 50_000


def test_qgis_draws_with_a_key_in_the_address_and_nothing_without(draw, live_keyed, odd):
    server, key = live_keyed
    found = httpx2.get(f"{server}/collections/{odd}.destinations/tiles/{GRID}/tilejson.json?token={key}").json()
    assert key not in json.dumps(found)
    assert draw(f"{found['tiles'][0]}?token={key}", "keyed", found["bounds"])["areas"] > 50_000
    assert draw(found["tiles"][0], "keyless", found["bounds"])["areas"] == 0


def test_gdal_reads_a_tile_with_its_ids_as_text(live_server, odd, tmp_path):
    if shutil.which("ogr2ogr") is None:
        pytest.skip("no ogr2ogr (Debian: gdal-bin)")
    (tmp_path / "0" / "0").mkdir(parents=True)
    tile = tmp_path / "0" / "0" / "0.mvt"  # GDAL takes the place of a tile from its path
    tile.write_bytes(httpx2.get(f"{live_server}/collections/{odd}.flows/tiles/{GRID}/0/0/0").content)
    words = ["ogr2ogr", "-f", "GeoJSON", "/vsistdout/", tile, "within", "-t_srs", "EPSG:4326"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    features = json.loads(done.stdout)["features"]
    assert {one["properties"]["origin"] for one in features} <= {"west", "east"}
    assert all(2 <= one["geometry"]["coordinates"][0] <= 2.8 for one in features)


@pytest.mark.skipif("OGCAPI" not in pyogrio.list_drivers(), reason="pyogrio's GDAL has no OGCAPI driver")
def test_gdal_finds_the_tiles_by_what_ogc_api_says(live_server, odd):
    source = f"OGCAPI:{live_server}/collections/{odd}.destinations"
    found = pyogrio.read_dataframe(source, layer="Zoom level 0", API="TILES")
    manifest = httpx2.get(f"{live_server}/releases/{odd}").json()
    assert found["count"].sum() == manifest["invariants"]["workers"]
    assert set(found["id"]) == {"west", "east"}
