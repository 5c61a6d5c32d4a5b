"""GDAL reads the features: Debian's 3.6 by ogr2ogr, and the newer one in pyogrio's wheel."""

import csv
import shutil
import subprocess
from urllib.parse import unquote

import geopandas
import pyogrio
import pytest
import shapely
from publishedtable import published
from pyproj import Transformer

OGR2OGR = shutil.which("ogr2ogr")
needs_ogr2ogr = pytest.mark.skipif(OGR2OGR is None, reason="ogr2ogr (gdal-bin) is not installed")
needs_oapif = pytest.mark.skipif("OAPIF" not in pyogrio.list_drivers(), reason="pyogrio's GDAL has no OAPIF driver")


@pytest.fixture
def copied(tmp_path):
    """Return a function that copies a layer to CSV with ogr2ogr, and reads that as text."""

    def copy(address, layer, *options):
        out = tmp_path / "out.csv"
        subprocess.run(
            [OGR2OGR, "-f", "CSV", out, f"OAPIF:{address}", layer, "-lco", "GEOMETRY=AS_WKT", *options],
            check=True,
            capture_output=True,
        )
        with out.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return copy


@needs_ogr2ogr
@pytest.mark.parametrize("options", [(), ("-oo", "PAGE_SIZE=150")])
def test_ogr2ogr_copies_every_flow_page_by_page(proxied, store, made_up, copied, options):
    before = len(proxied.asked)
    found = copied(proxied.address, f"{made_up}.flows", *options)
    table = published(store, made_up)
    assert [(one["origin"], one["destination"], int(one["count"])) for one in found] == table.select(
        "origin", "destination", "count"
    ).rows()
    assert [one["id"] for one in found] == [str(row) for row in range(table.height)]
    assert sum("start=" in path for path in proxied.asked[before:]) > 10
    assert all(path.startswith("/maps/") or path == "/maps" for path in proxied.asked)


@needs_ogr2ogr
def test_ogr2ogr_keeps_odd_ids_and_leading_zeros(live_server, store, odd, copied):
    found = copied(live_server, f"{odd}.flows")
    assert [(one["origin"], one["destination"]) for one in found] == published(store, odd).select(
        "origin", "destination"
    ).rows()
    zones = {one["zone"]: one["WKT"] for one in copied(live_server, f"{odd}.origins")}
    assert shapely.from_wkt(zones["01"]).bounds == (2, 48, 2.1, 48.1)
    assert zones["elsewhere"] == ""


@needs_ogr2ogr
def test_ogr2ogr_lets_the_service_choose_by_box_and_property(proxied, odd, copied):
    found = copied(proxied.address, f"{odd}.origins", "-spat", "2.05", "48.02", "2.15", "48.04")
    assert {one["zone"] for one in found} == {"01", "O'Brien"}
    assert any("bbox=" in path for path in proxied.asked)
    found = copied(proxied.address, f"{odd}.flows", "-where", "destination = '001'")
    assert {one["destination"] for one in found} == {"001"}
    assert any("destination=001" in path for path in proxied.asked)


@needs_ogr2ogr
def test_ogr2ogr_sends_a_key_as_password_or_token(live_keyed, store, odd, copied):
    address, key = live_keyed
    rows = published(store, odd).height
    assert len(copied(address, f"{odd}.flows", "-oo", f"USERPWD=anyone:{key}")) == rows > 0
    assert len(copied(f"{address}/?token={key}", f"{odd}.flows")) == rows
    with pytest.raises(subprocess.CalledProcessError):
        copied(address, f"{odd}.flows")


@needs_oapif
def test_pyogrio_reads_a_box_in_web_mercator(proxied, odd):
    corners = Transformer.from_crs(4326, 3857, always_xy=True).transform_bounds(2.05, 48.02, 2.15, 48.04)
    before = len(proxied.asked)
    found = geopandas.read_file(
        f"OAPIF:{proxied.address}", layer=f"{odd}.origins", engine="pyogrio", bbox=corners, CRS="EPSG:3857"
    )
    assert found.crs == "EPSG:3857"
    assert set(found["zone"]) == {"01", "O'Brien"}
    asked = [path for path in proxied.asked[before:] if "bbox=" in path]
    assert asked and all("bbox-crs=http://www.opengis.net/def/crs/EPSG/0/3857" in unquote(path) for path in asked)
    wanted = geopandas.GeoSeries([shapely.box(2, 48, 2.1, 48.1)], crs=4326).to_crs(3857).total_bounds
    assert found.set_index("zone").geometry["01"].bounds == pytest.approx(tuple(wanted), abs=0.01)


@needs_oapif
def test_pyogrio_reads_all_pages_with_ids_as_text(live_server, store, made_up):
    found = geopandas.read_file(f"OAPIF:{live_server}", layer=f"{made_up}.flows", engine="pyogrio")
    table = published(store, made_up)
    assert found[["origin", "destination"]].to_numpy().tolist() == [
        list(row) for row in table.select("origin", "destination").rows()
    ]
    assert found["count"].tolist() == table["count"].to_list()
    assert found.crs.to_epsg() == 4326 or found.crs.to_authority() == ("OGC", "CRS84")
