"""QGIS reads the features: the layer is valid, whole, and asks for boxes. Its own Python runs `qgis_features.py`."""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from publishedtable import published

PYTHON = os.environ.get("SYNTHMAP_QGIS_PYTHON", "/usr/bin/python3")
SCRIPT = Path(__file__).with_name("qgis_features.py")


@cache
def there():
    if shutil.which(PYTHON) is None:
        return False
    return subprocess.run([PYTHON, "-c", "import qgis.core"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def read(tmp_path):
    """Return a function that lets QGIS read a layer of the service at an address."""
    if not there():
        pytest.skip(f"PyQGIS (python3-qgis) is not installed for {PYTHON}")

    def run(address, layer, *box, extra=""):
        source = f"url='{address}' typename='{layer}' {extra}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        own = {"QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(
            [PYTHON, str(SCRIPT), source, *map(str, box)],
            env=clean | own,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines, done.stdout + done.stderr
        return json.loads(lines[-1])

    return run


def test_qgis_reads_every_page_with_ids_as_text(proxied, store, made_up, read):
    before = len(proxied.asked)
    seen = read(proxied.address, f"{made_up}.flows")
    table = published(store, made_up)
    assert seen["valid"], seen["error"]
    assert seen["count"] == table.height > 200
    rows = sorted(seen["rows"], key=lambda row: int(row["id"]))
    assert [(row["origin"], row["destination"], row["count"]) for row in rows] == table.select(
        "origin", "destination", "count"
    ).rows()
    assert seen["types"]["origin"].lower() == "string" and seen["shapes"] == ["LineString", "Point"]
    asked = proxied.asked[before:]
    assert any("limit=200" in path for path in asked)  # the maximum of the OpenAPI document: it was read
    assert sum("start=" in path for path in asked) >= table.height // 200


def test_qgis_asks_for_the_box_it_shows(proxied, odd, read):
    before = len(proxied.asked)
    seen = read(proxied.address, f"{odd}.origins", 2.05, 48.02, 2.15, 48.04, extra="restrictToRequestBBOX='1'")
    assert {row["zone"] for row in seen["rows"]} == {"01", "O'Brien"}
    assert any("bbox=" in path for path in proxied.asked[before:])
    assert seen["shapes"] == ["Polygon"]


def test_qgis_shows_what_has_no_place_in_its_table(live_server, store, odd, read):
    seen = read(live_server, f"{odd}.flows")
    assert seen["valid"] and seen["count"] == published(store, odd).height
    assert {row["origin"] for row in seen["rows"]} >= {"elsewhere", "東京", "O'Brien"}


def test_qgis_sends_a_key_as_password_or_token(live_keyed, store, odd, read):
    address, key = live_keyed
    rows = published(store, odd).height
    assert not read(address, f"{odd}.flows")["valid"]
    assert read(address, f"{odd}.flows", extra=f"username='anyone' password='{key}'")["count"] == rows
    seen = read(f"{address}/?token={key}", f"{odd}.flows")
    assert seen["valid"] and seen["count"] == rows
