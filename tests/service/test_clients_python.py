"""Clients from PyPI: OWSLib reads the collections, schemathesis finds no 5xx, the OGC's test suite passes."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import live
import pytest
from publishedtable import published

SUITE = Path(os.environ.get("SYNTHMAP_OGCTESTS", f"{sys.prefix}-ogctests")) / "bin" / "python"


def test_owslib_reads_the_collections(live_server, store, odd):
    ogcapi = pytest.importorskip("owslib.ogcapi.features", reason="OWSLib is not installed")
    service = ogcapi.Features(live_server)
    assert service.conformance()["conformsTo"]
    assert service.api()["openapi"] == "3.0.3"
    names = [f"{odd}.{kind}" for kind in ("flows", "origins", "destinations")]
    assert set(names) <= set(service.feature_collections())
    assert service.collection(names[0])["id"] == names[0]
    assert service.collection_queryables(names[0])["properties"]["count"]["type"] == "integer"
    found = service.collection_items(names[1], bbox=[2.05, 48.02, 2.15, 48.04])
    assert {one["properties"]["zone"] for one in found["features"]} == {"01", "O'Brien"}
    assert service.collection_items(names[0], filter="destination = '01'", limit=2)["numberReturned"] == 2
    assert service.collection_item(names[0], "3")["properties"]["origin"] == published(store, odd)["origin"][3]


@pytest.mark.skipif(not SUITE.exists(), reason=f"ogctests is not installed ({SUITE}); see make ogctests")
def test_the_ogc_features_suite_passes(store, made_up, tmp_path):
    """Every test of Features Core, over a release without workers from elsewhere.

    The suite's schema knows no feature without a geometry, which GeoJSON (RFC 7946) allows and such workers need.
    """
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / made_up).symlink_to(store / made_up)
    report = tmp_path / "report.xml"
    words = [
        SUITE,
        "-m",
        "pytest",
        "--pyargs",
        "ogctests.features.core",
        "-p",
        "no:cacheprovider",
        f"--junit-xml={report}",
    ]
    with live.serving(tmp_path / "store", tmp_path / "catalog.sqlite", page_size=100) as address:
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=os.environ | {"INSTANCE_URL": address},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")  # noqa: S314  # we wrote it
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "0")
    assert int(suite.get("tests", "0")) >= 29
