"""Pages of flows as JSON, CSV, GeoJSON, Parquet and Arrow, read back by what others wrote."""

import csv
import io
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from handmade import ELSEWHERE, World, Zone, open_world

from synthmap.published import answers
from synthmap.published.od import Query, find_flows

IDS = ["001", "01", "=1+1", "+1", "-1", "@x", "O'Brien", 'say "hi",\r\nok; é', "<b>", "東京", "\x00\x1f", "𝒳"]
ABOUT = {"title", "release", "citation", "epsilon", "delta", "zones_vintage", "privacy_statement"}


@pytest.fixture
def opened(tmp_path, small_release):
    """A release with odd ids: lines, points, nowhere."""
    from synthmap.release.manifest import read_manifest

    zones = [Zone(name, (), float(place), 10.0) for place, name in enumerate(IDS)]
    zones += [Zone("fiji", (), 179.5, -17.0), Zone("samoa", (), -172.5, -13.0), Zone("edge", (), 180.0, 0.0)]
    flows = [(name, "01", (2, 3)) for name in IDS] + [(ELSEWHERE, "01", (1, 0)), ("01", "=1+1", (2**40, 0))]
    flows += [("fiji", "samoa", (1, 1)), ("samoa", "fiji", (1, 1)), ("edge", "samoa", (1, 1))]
    opened = open_world(tmp_path / "made", World(zones, flows, (), ("a", "b")))
    whole = read_manifest(small_release()).model_dump() | opened.manifest.model_dump(
        include={"release", "segments", "zones", "files", "invariants"}
    )
    object.__setattr__(opened, "manifest", type(opened.manifest).model_validate(whole))
    return opened


@pytest.fixture
def page(opened):
    return find_flows(opened, Query(), limit=100)


def rows(page):
    return [dict(row) for row in page.rows.iter_rows(named=True)]


def test_json_keeps_every_id_and_says_where_it_is_from(opened, page):
    body = json.loads(answers.write_json(opened, page, {"links": []}))
    assert body["rows"] == rows(page)
    assert {body[key] for key in ("release", "epsilon", "vintage")} == {opened.id, 4.0, "1"}
    assert body["links"] == []


def test_csv_keeps_every_id_as_it_is(opened, page):
    text = answers.write_csv(opened, page, {}).decode()
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == ["origin", "destination", "count", "a", "b"]
    assert [[*line[:2], *map(int, line[2:])] for line in lines] == [list(row.values()) for row in rows(page)]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_parquet_and_arrow_keep_types_and_say_where_they_are_from(opened, page, form):
    body = getattr(answers, f"write_{form}")(opened, page, {})
    table = pq.read_table(io.BytesIO(body)) if form == "parquet" else pa.ipc.open_stream(body).read_all()
    assert table.to_pylist() == rows(page)
    assert {str(field.type) for field in table.schema} == {"string", "int64"}
    assert {key.decode() for key in table.schema.metadata} >= ABOUT


def shapes(opened, page):
    features = json.loads(answers.write_geojson(opened, page, {}))["features"]
    assert [feature["properties"] for feature in features] == rows(page)
    found = [feature["geometry"] and shapely.from_geojson(json.dumps(feature["geometry"])) for feature in features]
    pairs = [(row["origin"], row["destination"]) for row in rows(page)]
    return dict(zip(pairs, found, strict=True))


def test_geojson_has_lines_points_and_nothing_for_everywhere_else(opened, page):
    found = shapes(opened, page)
    assert found[ELSEWHERE, "01"] is None
    assert found["01", "01"] == shapely.Point(1, 10)
    assert found["001", "01"] == shapely.LineString([(0, 10), (1, 10)])
    assert all(shape is None or shape.is_valid for shape in found.values())


def test_a_line_over_the_antimeridian_is_cut_there(opened, page):
    found = shapes(opened, page)
    west, east = found["fiji", "samoa"].geoms
    assert west.coords[0] == (179.5, -17)
    assert west.coords[1] == (180, pytest.approx(-16.75))
    assert east.coords[0] == (-180, pytest.approx(-16.75))
    assert east.coords[1] == (-172.5, -13)
    assert (
        found["samoa", "fiji"].length == pytest.approx(found["fiji", "samoa"].length) == pytest.approx(8.944, abs=1e-3)
    )
    assert [tuple(line.coords[0]) for line in found["edge", "samoa"].geoms] == [(-180, 0)]


@pytest.mark.parametrize("form", ["json", "csv", "geojson", "parquet", "arrow"])
def test_no_rows_are_a_whole_answer(opened, form):
    page = find_flows(opened, Query(destinations=("edge",)), limit=5)
    body = getattr(answers, f"write_{form}")(opened, page, {})
    read = {
        "json": lambda: len(json.loads(body)["rows"]),
        "csv": lambda: len(body.decode().splitlines()) - 1,
        "geojson": lambda: len(json.loads(body)["features"]),
        "parquet": lambda: pl.read_parquet(body).height,
        "arrow": lambda: pl.read_ipc_stream(body).height,
    }
    assert read[form]() == 0
