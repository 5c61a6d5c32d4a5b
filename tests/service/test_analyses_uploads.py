"""Areas that clients upload: as the body or as parts of a form, in every format; what is refused, and how."""

import json
import threading

import polars as pl
import pytest
import shapely
from bearer import bearer
from uploads import kml, polygon, shapefile, written, zipped

from synthmap.catalog.keys import Role
from synthmap.service import analysis_areas
from synthmap.service.analysis_areas import FILES

TRICK = "../../../../etc/passwd"


@pytest.fixture
def hull(store, made_up) -> shapely.Geometry:
    """An outline around some zones of the made-up release."""
    zones = pl.read_parquet(store / made_up / "zones.parquet", columns=["county", "longitude", "latitude"])
    county = zones["county"].drop_nulls().mode().sort()[0]
    points = zones.filter(pl.col("county") == county).select("longitude", "latitude").to_numpy()
    return shapely.MultiPoint(points).convex_hull.buffer(0.01, quad_segs=2)


@pytest.fixture
def files(tmp_path, hull) -> dict[str, bytes]:
    """The outline in every format."""
    ring = " ".join(f"{x},{y}" for x, y in hull.exterior.coords)
    return {
        "area.geojson": shapely.to_geojson(hull).encode(),
        "area.kml": kml(polygon(ring)),
        "area.kmz": zipped({"doc.kml": kml(polygon(ring))}),
        "area.gpkg": written(tmp_path, "area.gpkg", hull),
        "area.zip": shapefile(tmp_path, hull),
    }


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert all(word in answer.json()["detail"] for word in words), answer.json()["detail"]
    return True


def test_every_format_selects_the_same_zones_however_it_is_sent(client, made_up, hull, files):
    path = f"/releases/{made_up}/analyses/area"
    drawn = client.post(path, json=shapely.geometry.mapping(hull)).json()
    assert len(drawn["zone_ids"]) > 10
    for name, data in files.items():
        for headers in ({"Content-Type": "application/octet-stream"}, {"Content-Type": FILES[0]}):
            raw = client.post(path, content=data, headers=headers)
            assert raw.status_code == 200, (name, raw.text)
            assert raw.json()["zone_ids"] == drawn["zone_ids"], name
        form = client.post(path, files={"file": (TRICK, data, "image/png")})  # neither name nor type matters
        assert form.json()["zone_ids"] == drawn["zone_ids"], name
        assert "passwd" not in form.text


def test_uploads_are_analysed_and_buffered(client, made_up, files):
    at = f"/releases/{made_up}/analyses"
    plain = client.post(f"{at}/inflow-outflow", files={"file": files["area.kml"]}).json()
    wider = client.post(f"{at}/inflow-outflow?buffer_m=20000", files={"file": files["area.kml"]}).json()
    assert wider["areas"][0]["zones"] > plain["areas"][0]["zones"] > 0
    assert "uploaded KML" in plain["citation"]
    far = zipped({"x.kml": kml(polygon("100,60 101,60 101,61 100,60"))})
    pair = client.post(f"{at}/paired-areas", files={"a": files["area.gpkg"], "b": far})
    assert [row["figure"] for row in pair.json()["rows"]] == ["a_to_b", "b_to_a", "within_a", "within_b"]
    assert "lies outside" in " ".join(pair.json()["areas"][1]["notes"])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, ["must be"]),
        ({"picture": b"x"}, ["one part, file"]),
        ({"file": b"x", "more": b"y"}, ["one part, file"]),
        ({"file": b"hello"}, ["must be a GeoJSON, KML, KMZ or GeoPackage file"]),
        ({"file": b"1", "a": b"2", "b": b"3"}, ["at most 2 parts"]),
    ],
)
def test_parts_that_are_no_area_are_refused(client, made_up, parts, words):
    answer = client.post(f"/releases/{made_up}/analyses/area", files=parts or None, data=None if parts else {"x": "y"})
    assert refused(answer, 400 if parts else 415, *words)


def test_a_broken_form_is_refused(client, made_up):
    path = f"/releases/{made_up}/analyses/area"
    for media, content in (
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\nnonsense"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n'),
    ):
        assert refused(client.post(path, content=content, headers={"Content-Type": media}), 400, "must")
    twice = [("file", b"1"), ("file", b"2")]
    assert refused(client.post(path, files=twice), 400, "one file in each part")


def test_a_text_in_a_form_is_as_good_as_a_file(client, made_up, files):
    path = f"/releases/{made_up}/analyses/area"
    form = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + files["area.geojson"] + b"\r\n--b--\r\n"
    answer = client.post(path, content=form, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status_code == 200


def test_a_pair_needs_two_files(client, made_up, files):
    path = f"/releases/{made_up}/analyses/paired-areas"
    assert refused(client.post(path, files={"a": files["area.kml"]}), 400, "parts a and b")
    raw = client.post(path, content=files["area.kml"], headers={"Content-Type": FILES[0]})
    assert refused(raw, 400, "parts a and b")
    json_pair = client.post(path, json={"a": json.loads(files["area.geojson"]), "b": json.loads(files["area.geojson"])})
    assert refused(json_pair, 400, "no zone in common")


def test_an_upload_is_bounded(make_client, made_up):
    client = make_client(body_bytes_maximum=1000)
    path = f"/releases/{made_up}/analyses/area"
    assert refused(client.post(path, files={"file": b"x" * 2000}), 413, "1,000 bytes")


def test_what_is_uploaded_is_read_after_its_sender_may_send_it(make_client, made_up, files):
    client = make_client(anonymous=False)
    path = f"/releases/{made_up}/analyses/area"
    assert client.post(path, files={"file": b"hello"}).status_code == 401
    sent = client.post(path, files={"file": files["area.kml"]}, headers=bearer(client, Role.READER))
    assert sent.status_code == 200


def test_too_many_uploads_at_once_wait_and_are_then_told(client, made_up, files, monkeypatch):
    monkeypatch.setattr(analysis_areas, "_TURN", threading.BoundedSemaphore(1))
    monkeypatch.setattr(analysis_areas, "_WAIT", 0.01)
    path = f"/releases/{made_up}/analyses/area"
    with analysis_areas._TURN:
        answer = client.post(path, files={"file": files["area.kml"]})
    assert refused(answer, 503, "ask again later")
    assert answer.headers["retry-after"] == "30"
    assert client.post(path, files={"file": files["area.kml"]}).status_code == 200
