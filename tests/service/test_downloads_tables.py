"""Tables and matrices read back with readers that are not ours, and what can be asked for by which word."""

import csv
import json
from collections import Counter

import numpy as np
import openmatrix
import pytest
from exported import ELSEWHERE, check_about, point, read_world, told_errors

from synthmap.errors import NotFoundError
from synthmap.published.exports import FORMATS, export, export_all, named, offered


@pytest.fixture(scope="module", params=["made-up", "odd"])
def world(request, store):
    return read_world(store, request.param)


@pytest.fixture(scope="module")
def made(world, tmp_path_factory):
    """Return a function that exports a file and returns its path."""
    directory = tmp_path_factory.mktemp("exports")
    return lambda name: export(world.opened, directory, name)


def test_csv_is_flat_and_complete(world, made):
    raw = made("flows.csv").read_bytes()
    assert raw.count(b"\r\n") == raw.count(b"\n") == len(world.flows) + 1
    header, *rows = csv.reader(raw.decode("utf-8").splitlines())
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    assert {
        (row["origin"], row["destination"]): tuple(int(row[name]) for name in ("count", *world.segments))
        for row in rows
    } == world.flows
    assert len(rows) == len(world.flows)
    for row in rows:
        for end in ("origin", "destination"):
            parents = [row[f"{end}_{level}"] for level in world.levels]
            assert parents == [world.zones[row[end]][level] or "" for level in world.levels]
        if row["origin"] == ELSEWHERE:
            assert row["distance_km"] == ""
        elif row["origin"] == row["destination"]:
            assert float(row["distance_km"]) == 0
        else:
            assert float(row["distance_km"]) > 0


def test_errors_are_those_that_od_tells(world, made):
    rows = csv.DictReader(made("flows.csv").read_text(encoding="utf-8").splitlines())
    found = {(row["origin"], row["destination"]): float(row["expected_error"]) for row in rows}
    assert found == told_errors(world)
    assert min(found.values()) > 0


def test_distances_are_those_of_the_sphere(world, made):
    for row in csv.DictReader(made("flows.csv").read_text(encoding="utf-8").splitlines()):
        if row["origin"] == ELSEWHERE:
            continue
        ends = [point(world, row[end]) for end in ("origin", "destination")]
        (x0, y0), (x1, y1) = np.radians(ends)
        cosine = np.sin(y0) * np.sin(y1) + np.cos(y0) * np.cos(y1) * np.cos(x1 - x0)
        assert float(row["distance_km"]) == pytest.approx(6371.0088 * np.arccos(min(1.0, cosine)), abs=0.002)


def test_metadata_beside_the_csv_describe_its_columns(world, made):
    header = next(csv.reader(made("flows.csv").read_text(encoding="utf-8").splitlines()))
    told = json.loads(made("flows.csv-metadata.json").read_text(encoding="utf-8"))
    assert told["url"] == "flows.csv"
    kinds = {column["titles"]: column["datatype"] for column in told["tableSchema"]["columns"]}
    assert list(kinds) == header
    assert kinds["origin"] == kinds["destination"] == "string"
    assert kinds["count"] == "integer"
    assert kinds["expected_error"] == kinds["distance_km"] == "number"
    described = [column["titles"] for column in told["tableSchema"]["columns"] if "dc:description" in column]
    assert described == ["expected_error"]
    check_about(world, told["notes"][0])


def test_omx_is_a_matrix_with_its_ids(world, made):
    with openmatrix.open_file(str(made("matrix.omx"))) as file:
        ids = [one.decode("utf-8") for one in file.root.lookup.zone_id[:]]
        numbers = list(file.root.lookup.zone_number[:])
        assert file.version() == b"0.2"
        assert set(file.list_matrices()) == {"count", *world.segments, "expected_error"}
        matrices = {name: file[name][:] for name in ("count", *world.segments, "expected_error")}
        shape = tuple(file.shape())
        told = {name: file.root._v_attrs[name].decode("utf-8") for name in ("release", "epsilon", "citation")}
    assert set(ids) == set(world.origins) | set(world.destinations)
    assert shape == (len(ids), len(ids))
    assert numbers == list(range(1, len(ids) + 1))
    assert ids[:-1] == sorted(ids[:-1], key=str.encode)
    for place, name in enumerate(("count", *world.segments)):
        found = {
            (ids[row], ids[column]): int(matrices[name][row, column]) for row, column in np.argwhere(matrices[name])
        }
        assert found == {ends: numbers[place] for ends, numbers in world.flows.items() if numbers[place]}
    error = matrices["expected_error"]
    assert {(ids[row], ids[column]): error[row, column] for row, column in np.argwhere(error)} == told_errors(world)
    assert told["release"] == world.opened.id
    assert float(told["epsilon"]) == world.opened.manifest.privacy.dp.epsilon
    assert world.opened.etag in told["citation"]


def test_omx_of_a_level_sums_zones(world, made):
    for level in world.levels:
        with openmatrix.open_file(str(made(f"matrix-{level}.omx"))) as file:
            ids = [one.decode("utf-8") for one in file.root.lookup.zone_id[:]]
            matrix, error = file["count"][:], file["expected_error"][:]
        expected = Counter()
        for (origin, destination), numbers in world.flows.items():
            expected[world.zones[origin][level] or ELSEWHERE, world.zones[destination][level]] += numbers[0]
        assert {(ids[r], ids[c]): int(matrix[r, c]) for r, c in np.argwhere(matrix)} == expected
        assert {(ids[r], ids[c]): error[r, c] for r, c in np.argwhere(matrix)} == told_errors(world, level)


def test_words_for_formats_mean_files(world):
    assert named(world.opened, ["geopackage", "flows.fgb", "flatgeobuf"]) == [
        "release.gpkg", "flows.fgb", "origins.fgb", "destinations.fgb",
    ]  # fmt: skip
    assert set(named(world.opened, ["omx"])) == {"matrix.omx", *(f"matrix-{level}.omx" for level in world.levels)}
    assert set(FORMATS) <= set(offered(world.opened))
    with pytest.raises(NotFoundError, match=r"format \(dwg\) must be one of csv, geoparquet"):
        named(world.opened, ["csv", "dwg"])


@pytest.mark.parametrize("name", ["", ".", "..", "../flows.csv", "/etc/passwd", "flows.csv/..", "FLOWS.CSV", "a\0b"])
def test_other_names_are_no_files(world, tmp_path, name):
    with pytest.raises(NotFoundError):
        export(world.opened, tmp_path / "into", name)
    assert list(tmp_path.iterdir()) == []


def test_all_files_of_a_family_are_made_and_told(world, tmp_path):
    told = []
    made = export_all(world.opened, tmp_path, ["csv"], lambda *step: told.append(step))
    assert [path.name for path in made] == ["flows.csv", "flows.csv-metadata.json"]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in made}
    assert told[-1] == ("flows.csv-metadata.json", 2, 2)
