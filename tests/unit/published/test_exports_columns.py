"""Names, ids and geometries that a format could lose, and limits that it says instead of losing."""

import csv
import itertools
import json

import geopandas
import openmatrix
import polars as pl
import pyogrio
import pytest
import shapely

from synthmap.errors import ExportError, ReleaseCorruptError
from synthmap.published.exports import export, export_all, known, layers, limits, named, offered, omx
from synthmap.published.exports.layers import LAYERS, RESERVED, unique
from synthmap.published.od_errors import ERROR
from synthmap.published.store import ReleaseStore
from synthmap.release.verify import sha256

FILES = ["flows.csv", "flows.parquet", "release.gpkg", "flows.fgb", "release.shp.zip", "matrix.omx"]
SQUARE = shapely.box(0, 0, 1, 1)


@pytest.fixture
def by_hand(small_release):
    """Write a release with any zones, levels, segments and flows, and open it."""
    made = itertools.count()

    def make(flows, zones, *, levels=(), segments=()):
        directory = small_release(name=f"tiny-20260101T000000Z-{next(made):08}")
        for part in directory.glob("od/*"):
            part.unlink()
        columns = ["origin", "destination", "count", *segments]
        pl.DataFrame(flows, schema=columns, orient="row").write_parquet(directory / "od" / "part-00000.parquet")
        frame = geopandas.GeoDataFrame(
            [row[:-1] for row in zones], columns=["id", *levels], geometry=[row[-1] for row in zones], crs=4326
        )
        inner = frame.geometry.representative_point()
        frame = frame.assign(weight=1, longitude=inner.x, latitude=inner.y)
        frame[["id", *levels, "weight", "longitude", "latitude", "geometry"]].to_parquet(directory / "zones.parquet")
        sizes = {end: sum(row[2] for row in flows if row[1] == end) for end in sorted({row[1] for row in flows})}
        plan = [(destination, size, size, 4, 0.5) for destination, size in sizes.items()]
        schema = ["destination", "headcount", "synthetic_size", "cells", "prior_share"]
        pl.DataFrame(plan, schema=schema, orient="row").write_parquet(directory / "plan.parquet")
        manifest = json.loads((directory / "manifest.json").read_bytes())
        manifest["segments"] = list(segments)
        manifest["zones"] |= {"levels": list(levels), "elsewhere": None}
        manifest["files"] = {
            path.relative_to(directory).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
            for path in directory.rglob("*.parquet")
        }
        (directory / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        return ReleaseStore(directory.parent).open(directory.name)

    return make


def a(x):
    return shapely.Point(x, 10)


def test_names_that_collide_get_numbers():
    assert unique(["id", "ID", "Id_2", "id"]) == ["id", "ID_2", "Id_2_2", "id_3"]


def test_levels_and_segments_may_have_the_names_of_other_columns(by_hand, tmp_path):
    levels = ["count", "FID", "geom", "Geometry", "within", "bbox"]
    segments = ["distance_km", "Distance_KM", "geometry", "fid"]
    opened = by_hand(
        [("1", "1", 3, 1, 2, 0, 0), ("2", "1", 4, 0, 0, 4, 0)],
        [("1", *"abcdef", a(1)), ("2", *"ghijkl", a(2))],
        levels=levels,
        segments=segments,
    )
    for name, layer in (("flows.parquet", None), ("release.gpkg", "flows"), ("flows.fgb", None)):
        path = export(opened, tmp_path, name)
        frame = geopandas.read_parquet(path) if layer is None and path.suffix == ".parquet" else None
        frame = geopandas.read_file(path, layer=layer) if frame is None else frame
        rows = sorted(tuple(row)[:7] for row in frame.drop(columns=frame.geometry.name).itertuples(index=False))
        assert rows == [("1", "1", 3, 1, 2, 0, 0), ("2", "1", 4, 0, 0, 4, 0)]
    zones = geopandas.read_file(export(opened, tmp_path, "release.gpkg"), layer="origins")
    assert [list(row)[:7] for row in zones.itertuples(index=False)] == [list("1abcdef"), list("2ghijkl")]
    archive = export(opened, tmp_path, "release.shp.zip")
    fields = [list(pyogrio.read_info(archive, layer=name)["fields"]) for name in ("flows", "origins")]
    assert all(len({field.lower() for field in each}) == len(each) for each in fields)
    with export(opened, tmp_path, "flows.csv").open(encoding="utf-8", newline="") as lines:
        header = next(csv.reader(lines))
    assert len({name.lower() for name in header}) == len(header) == 2 + 5 + 1 + 1 + 12
    with openmatrix.open_file(str(export(opened, tmp_path, "matrix.omx"))) as file:
        assert {name: float(file[name][:].sum()) for name in file.list_matrices() if name != ERROR} == {
            "count": 7, "distance_km": 1, "Distance_KM_2": 2, "geometry": 4, "fid": 0,
        }  # fmt: skip


def test_segments_may_have_every_name_that_a_format_or_a_layer_has(by_hand, tmp_path):
    zones = [("1", "c", a(1)), ("2", "d", a(2))]
    plain = by_hand([("1", "2", 3)], zones, levels=["county"])
    own = {field for name in LAYERS for field in layers.layer(plain, name).schema.names}
    own |= set(pl.read_csv(export(plain, tmp_path / "plain", "flows.csv")).columns)
    names = sorted({*own, *RESERVED} - {"origin", "destination", "count"})
    assert {"weight", "headcount", "within", "id", "distance_km", "origin_county", "county", "geometry"} <= set(names)
    sizes = tuple(range(1, len(names) + 1))
    opened = by_hand([("1", "2", sum(sizes), *sizes)], zones, levels=["county"], segments=names)
    rows = [
        pl.read_csv(export(opened, tmp_path, "flows.csv")).row(0),
        geopandas.read_file(export(opened, tmp_path, "release.gpkg"), layer="flows", ignore_geometry=True).iloc[0],
        pl.read_parquet(export(opened, tmp_path, "flows.parquet")).row(0),
    ]
    for row in rows:
        assert tuple(row)[2 : 3 + len(names)] == (sum(sizes), *sizes)
    with openmatrix.open_file(str(export(opened, tmp_path, "matrix.omx"))) as file:
        *matrices, error = sorted(file.list_matrices(), key=lambda name: name == f"{ERROR}_2")
        assert sorted(int(file[name][0, 1]) for name in matrices) == sorted([*sizes, sum(sizes)])
        assert 0 < file[error][0, 1] < sum(sizes)


def test_a_segment_may_be_called_like_a_path(by_hand, tmp_path):
    opened = by_hand([("1", "2", 3, 1, 1, 1)], [("1", a(1)), ("2", a(2))], segments=["a/b", ".", "é"])
    with openmatrix.open_file(str(export(opened, tmp_path, "matrix.omx"))) as file:
        assert set(file.list_matrices()) == {"count", "a_b", "_", "é", ERROR}


def test_a_level_may_be_called_like_a_path(by_hand, tmp_path):
    opened = by_hand([("1", "2", 3)], [("1", "x", a(1)), ("2", "x", a(2))], levels=["../a b"])
    assert export(opened, tmp_path / "in", "matrix-..%2Fa%20b.omx").parent == tmp_path / "in"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


def test_short_names_are_ascii_start_with_a_letter_and_differ(by_hand, tmp_path):
    levels = ["département", "département de", "départements", "1st", "東京"]
    opened = by_hand([("1", "2", 3)], [("1", *"abcde", a(1)), ("2", *"fghij", a(2))], levels=levels)
    archive = export(opened, tmp_path, "release.shp.zip")
    frame = pyogrio.read_dataframe(archive, layer="origins", read_geometry=False)
    assert list(frame.columns)[:6] == ["id", "departemen", "departem_2", "departem_3", "f1st", "f"]
    assert list(frame.iloc[0])[:6] == list("1abcde")


@pytest.mark.parametrize("name", ["flows.parquet", "release.gpkg", "flows.fgb"])
def test_flows_between_zones_of_one_point_are_points(by_hand, tmp_path, name):
    opened = by_hand([("1", "2", 3)], [("1", a(1)), ("2", a(1))])
    path = export(opened, tmp_path, name)
    frame = geopandas.read_parquet(path) if path.suffix == ".parquet" else geopandas.read_file(path, layer="flows")
    assert list(frame.geometry) == [a(1)]


def test_the_geo_metadata_name_the_types_that_occur(by_hand, tmp_path):
    opened = by_hand([("1", "2", 3)], [("1", a(1)), ("2", a(3))])
    path = export(opened, tmp_path, "flows.parquet")
    geo = json.loads(pl.read_parquet_metadata(path)["geo"])["columns"]["geometry"]
    assert geo["geometry_types"] == ["LineString"]
    assert geo["bbox"] == [1, 10, 3, 10]


def test_zones_may_be_polygons_and_points(by_hand, tmp_path):
    zones = [("1", SQUARE), ("2", a(2)), ("3", shapely.MultiPoint([(5, 5), (6, 6)]))]
    opened = by_hand([("1", "1", 3), ("2", "1", 1), ("3", "1", 1)], zones)
    expected = [shapely.MultiPolygon([SQUARE]), a(2), opened.places.table.row(2)[2:4]]
    for name, layer in (("release.gpkg", "origins"), ("origins.fgb", "origins"), ("origins.parquet", None)):
        path = export(opened, tmp_path, name)
        frame = geopandas.read_parquet(path) if layer is None else geopandas.read_file(path, layer=layer)
        shapes = dict(zip(frame["id"], frame.geometry, strict=True))
        assert [shapes["1"], shapes["2"], (shapes["3"].x, shapes["3"].y)] == expected
    archive = export(opened, tmp_path, "release.shp.zip")
    assert list(geopandas.read_file(archive, layer="origins")["id"]) == ["1"]
    assert list(geopandas.read_file(archive, layer="origins_points")["id"]) == ["2", "3"]


def test_shapefiles_keep_long_text_and_refuse_what_they_would_cut(by_hand, tmp_path):
    held = "é" * 127
    opened = by_hand([(held, "2", 3)], [("2", a(2)), (held, a(1))])
    archive = export(opened, tmp_path, "release.shp.zip")
    assert list(geopandas.read_file(archive, layer="flows")["origin"]) == [held]
    for place, lost in enumerate(("é" * 127 + "x", " 1", "1 ")):
        opened = by_hand([(lost, "2", 3)], sorted([("2", a(2)), (lost, a(1))]))
        with pytest.raises(ExportError, match="in a shapefile; take GeoPackage"):
            export(opened, tmp_path / str(place), "release.shp.zip")
        assert list((tmp_path / str(place)).iterdir()) == []


def test_a_table_too_large_for_shapefiles_is_refused_before_it_is_written(by_hand, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "count_rows", lambda opened: 60_000_000)
    opened = by_hand([("1", "2", 3)], [("1", a(1)), ("2", a(2))])
    with pytest.raises(ExportError, match=r"shapefile \(.* GB\) must be at most 2 GB; take GeoPackage"):
        export(opened, tmp_path, "release.shp.zip")
    assert set(known(opened)) - set(offered(opened)) == {"release.shp.zip"}


def test_a_matrix_of_too_many_zones_is_refused_and_coarser_ones_offered(by_hand, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ZONES", 2)
    zones = [(str(i), "all", f"half{i // 2}", f"each{i}", a(i)) for i in range(4)]
    opened = by_hand([("0", "3", 3), ("1", "3", 1)], zones, levels=["country", "half", "each"])
    with pytest.raises(
        ExportError, match=r"matrix \(here 3\) must be at most 2; take matrix-country.omx or matrix-half"
    ):
        export(opened, tmp_path, "matrix.omx")
    with openmatrix.open_file(str(export(opened, tmp_path, "matrix-half.omx"))) as file:
        assert file["count"][:].tolist() == [[0, 4], [0, 0]]


def test_a_matrix_of_too_many_zones_is_not_offered(by_hand, tmp_path, monkeypatch):
    """Zones that no flow has do not count: they are not in a matrix."""
    zones = [(str(i), f"half{i // 2}", a(i)) for i in range(4)]
    opened = by_hand([("0", "3", 3), ("1", "3", 1)], zones, levels=["half"])
    for most, fits in ((3, {"matrix.omx", "matrix-half.omx"}), (2, {"matrix-half.omx"}), (1, set())):
        monkeypatch.setattr(limits, "ZONES", most)
        assert {name for name in offered(opened) if name.endswith("omx")} == fits
        assert {"matrix.omx", "matrix-half.omx", *offered(opened)} == set(known(opened))
        if fits:
            assert set(named(opened, ["omx"])) == fits
    with pytest.raises(ExportError, match=r"matrix \(here 3\) must be at most 1; take another format$"):
        export_all(opened, tmp_path / "out", ["csv", "omx"])
    assert not (tmp_path / "out").exists()


def test_a_matrix_is_written_whole_when_it_takes_many_chunks(by_hand, tmp_path, monkeypatch):
    monkeypatch.setattr(omx, "_CELLS", 8)
    flows = [(str(o), str(d), 10 * o + d) for d in range(4) for o in range(4) if o + d]
    opened = by_hand(flows, [(str(i), a(i)) for i in range(4)])
    with openmatrix.open_file(str(export(opened, tmp_path, "matrix.omx"))) as file:
        assert file["count"][:].tolist() == [[10 * o + d for d in range(4)] for o in range(4)]


def test_a_table_read_in_many_chunks_is_the_same(by_hand, tmp_path, monkeypatch):
    monkeypatch.setattr("synthmap.published.exports.rows.ROWS", 3)
    flows = [(str(o), str(d), 1 + o + d) for d in range(5) for o in range(5)]
    opened = by_hand(flows, [(str(i), a(i)) for i in range(5)])
    for name in ("flows.parquet", "flows.csv"):
        path = export(opened, tmp_path, name)
        kinds = {"origin": pl.String, "destination": pl.String}
        table = pl.read_csv(path, schema_overrides=kinds) if path.suffix == ".csv" else pl.read_parquet(path)
        assert table.select("origin", "destination", "count").rows() == flows
    frame = geopandas.read_file(export(opened, tmp_path, "release.gpkg"), layer="destinations")
    assert list(frame["count"]) == [sum(row[2] for row in flows if row[1] == str(d)) for d in range(5)]


@pytest.mark.parametrize(
    "name", ["flows.csv", "flows.parquet", "release.gpkg", "flows.fgb", "release.shp.zip", "matrix.omx"]
)
def test_a_damaged_release_is_named_as_such_and_leaves_nothing(by_hand, tmp_path, name):
    opened = by_hand([("1", "2", 3)], [("1", a(1)), ("2", a(2))])
    part = opened.directory / "od" / "part-00000.parquet"
    for harm in (part.read_bytes()[:40] + b"x" * 40, b""):
        part.write_bytes(harm)
        with pytest.raises(ReleaseCorruptError, match=opened.id):
            export(opened, tmp_path / "out", name)
        assert list((tmp_path / "out").iterdir()) == []


def test_a_flow_of_an_unknown_zone_is_no_file(by_hand, tmp_path):
    opened = by_hand([("9", "2", 3)], [("1", a(1)), ("2", a(2))])
    with pytest.raises(ReleaseCorruptError, match=r"names a zone that zones\.parquet does not have"):
        export(opened, tmp_path, "flows.fgb")
