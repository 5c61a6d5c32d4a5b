"""Programs no one here wrote open downloads over HTTP, in pieces, without copying them first."""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import geopandas
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

ELSEWHERE = "elsewhere"
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's python3-qgis belongs to it
QGIS = """
import json, sys
from qgis.core import QgsApplication, QgsRectangle, QgsFeatureRequest, QgsVectorLayer
application = QgsApplication([], False)
application.initQgis()
told = []
for source, *box in json.loads(sys.argv[1]):
    layer = QgsVectorLayer(source, "layer", "ogr")
    rows = [[row["origin"], row["destination"], row["count"]] for row in layer.getFeatures()]
    near = layer.getFeatures(QgsFeatureRequest().setFilterRect(QgsRectangle(*box)))
    told.append([layer.isValid(), layer.featureCount(), rows, len(list(near))])
print(json.dumps(told))
"""


@pytest.fixture(scope="module", params=["made-up", "odd"])
def world(request, store, live_server):
    """Address of a release's downloads, and its flows by origin and destination."""
    path = next(store.glob(f"{request.param}-*"))
    flows = {}
    for part in sorted((path / "od").glob("*.parquet")):
        for row in pq.read_table(part, columns=["origin", "destination", "count"]).to_pylist():
            flows[row["origin"], row["destination"]] = row["count"]
    return f"{live_server}/releases/{path.name}/downloads", flows


def counts(frame):
    return {(row["origin"], row["destination"]): row["count"] for row in frame.to_dict("records")}


def placed(flows):
    return {ends: count for ends, count in flows.items() if ends[0] != ELSEWHERE}


@pytest.mark.parametrize(("file", "keeps_elsewhere"), [("release.gpkg", True), ("flows.fgb", False)])
def test_gdal_reads_every_flow_over_http(world, tmp_path, file, keeps_elsewhere):
    ogr2ogr = shutil.which("ogr2ogr")
    if ogr2ogr is None:
        pytest.skip("ogr2ogr (gdal-bin) is not there")
    address, flows = world
    line = [ogr2ogr, "-f", "CSV", tmp_path / "flows.csv", f"/vsicurl/{address}/{file}", "flows"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with (tmp_path / "flows.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = {(row["origin"], row["destination"]): int(row["count"]) for row in rows}
    assert found == (flows if keeps_elsewhere else placed(flows))
    assert len(found) == len(rows)


def test_ogrinfo_says_what_a_geopackage_is_over_http(world):
    ogrinfo = shutil.which("ogrinfo")
    if ogrinfo is None:
        pytest.skip("ogrinfo (gdal-bin) is not there")
    address, flows = world
    line = [ogrinfo, "-ro", "-so", f"/vsicurl/{address}/release.gpkg", "flows"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Feature Count: {len(flows)}" in done.stdout
    assert "origin: String" in done.stdout
    assert "differential privacy" in done.stdout


@pytest.mark.parametrize("file", ["release.gpkg", "flows.fgb"])
def test_pyogrio_reads_a_box_over_http(world, file):
    address, flows = world
    source = f"/vsicurl/{address}/{file}"
    whole = geopandas.read_file(source, layer="flows").dropna(subset="geometry")
    assert counts(whole) == placed(flows)
    x, y = whole.geometry.iloc[0].coords[0]
    near = geopandas.read_file(source, layer="flows", bbox=(x - 1e-6, y - 1e-6, x + 1e-6, y + 1e-6))
    assert counts(near) == counts(whole.cx[x - 1e-6 : x + 1e-6, y - 1e-6 : y + 1e-6])
    assert 0 < len(near) < len(whole)


def test_zipped_shapefiles_open_over_http(world):
    address, flows = world
    source = f"/vsizip//vsicurl/{address}/release.shp.zip"
    lines, points = (geopandas.read_file(f"{source}/{name}.shp") for name in ("flows", "flows_points"))
    assert counts(pd.concat([lines, points]).rename(columns={"dest": "destination"})) == flows


@pytest.mark.parametrize("file", ["flows.parquet", "zones.parquet"])
def test_polars_reads_the_columns_it_wants_over_http(world, file):
    address, flows = world
    table = pl.scan_parquet(f"{address}/{file}")
    if file == "flows.parquet":
        assert {row[:2]: row[2] for row in table.select("origin", "destination", "count").collect().rows()} == flows
    else:
        assert {zone for ends in flows for zone in ends} <= set(table.select("id").collect()["id"])


def test_qgis_opens_lines_points_and_boxes_over_http(world, tmp_path):
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run([SYSTEM_PYTHON, "-c", "import qgis.core"], capture_output=True, check=False).returncode
    ):
        pytest.skip("PyQGIS (python3-qgis) is not there")
    address, flows = world
    box = (-180, -90, 180, 90)
    sources = [
        (f"/vsicurl/{address}/release.gpkg|layername=flows", *box),
        (f"/vsicurl/{address}/release.gpkg|layername=flows|geometrytype=LineString", *box),
        (f"/vsicurl/{address}/release.gpkg|layername=flows|geometrytype=Point", *box),
        (f"/vsicurl/{address}/flows.fgb", *box),
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [SYSTEM_PYTHON, "-c", QGIS, json.dumps(sources)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    within = {ends: count for ends, count in flows.items() if ends[0] == ends[1]}
    lines = {ends: count for ends, count in placed(flows).items() if ends[0] != ends[1]}
    for (valid, count, rows, near), expected in zip(told, (flows, lines, within, placed(flows)), strict=True):
        assert valid
        assert count == len(rows) == len(expected)
        assert {(origin, destination): number for origin, destination, number in rows} == expected
        assert near == len(placed(expected))
