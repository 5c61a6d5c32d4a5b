"""Files that people send: every format says the same, and what would do harm is refused."""

import io
import json
import zipfile

import geopandas
import pytest
import shapely
from uploads import RING, SQUARE, kml, polygon, shapefile, written, zipped

from synthmap.errors import QueryError
from synthmap.published.areas import archives, gdal
from synthmap.published.areas import kml as kml_module
from synthmap.published.areas.upload import read_upload

GEOJSON = json.dumps(shapely.geometry.mapping(SQUARE)).encode()
METRES = 32632  # UTM 32 N


def same(data):
    found = read_upload(data).polygons()
    assert found.symmetric_difference(SQUARE).area < 0.001  # edges straight elsewhere are nearly so in degrees
    return True


def in_metres():
    return geopandas.GeoSeries([shapely.segmentize(SQUARE, 0.1)], crs=4326).to_crs(METRES)[0]


def test_every_format_is_the_same_square(tmp_path):
    for data in (
        GEOJSON,
        b"\xef\xbb\xbf \n" + GEOJSON,
        kml(polygon()),
        b"\n  " + kml(polygon(), ""),
        kml(polygon()).decode().replace("UTF-8", "UTF-16").encode("utf-16"),
        zipped({"doc.kml": kml(polygon()), "other.kml": kml(polygon("0,0 1,0 1,1 0,0"))}),
        zipped({"a/b/some.kml": kml(polygon()), "__MACOSX/._some.kml": b"", "picture.png": b"x"}),
        written(tmp_path, "some.gpkg", SQUARE),
        zipped({"x.gpkg": written(tmp_path, "other.gpkg", SQUARE, driver="GPKG")}),
        shapefile(tmp_path, SQUARE),
        shapefile(tmp_path, SQUARE, folder="../../etc/"),
        zipped({name.upper(): data for name, data in contents(shapefile(tmp_path, SQUARE)).items()}),
    ):
        assert same(data)


def contents(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_crs_that_a_file_states_is_read(tmp_path):
    assert same(written(tmp_path, "metres.gpkg", in_metres(), crs=METRES))
    assert same(shapefile(tmp_path, in_metres(), crs=METRES))


def test_layers_of_a_geopackage_count_together(tmp_path):
    written(tmp_path, "two.gpkg", shapely.box(10, 50, 10.5, 51), layer="one")
    whole = geopandas.GeoSeries([shapely.segmentize(shapely.box(10.5, 50, 11, 51), 0.1)], crs=4326).to_crs(METRES)[0]
    assert same(written(tmp_path, "two.gpkg", whole, layer="two", crs=METRES))


def test_kml_with_holes_lines_points_and_prefixes():
    inner = polygon(hole="10.2,50.2 10.4,50.2 10.4,50.4")
    assert read_upload(kml(inner)).polygons().area == pytest.approx(0.98)
    both = f"<MultiGeometry>{polygon()}<Point><coordinates>1,2,3</coordinates></Point></MultiGeometry>"
    assert sorted(shapely.get_dimensions(read_upload(kml(both)).parts).tolist()) == [0, 2]
    line = "<LineString><coordinates>\n 1,2\t3,4,0  </coordinates></LineString>"
    assert read_upload(kml(line)).parts[0].equals(shapely.LineString([(1, 2), (3, 4)]))
    prefixed = b'<k:kml xmlns:k="x"><k:Point><k:coordinates>1,2</k:coordinates></k:Point></k:kml>'
    assert read_upload(prefixed).parts[0].equals(shapely.Point(1, 2))


LAUGHS = '<!DOCTYPE kml [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE kml [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "must be a GeoJSON, KML"),
        (b"hello", "must be a GeoJSON, KML"),
        (b"\x89PNG\r\n", "must be a GeoJSON, KML"),
        (b"<kml", "well-formed XML"),
        (b"<svg xmlns='x'/>", "root must be kml"),
        (kml(polygon() + "&b;", f"<?xml version='1.0'?>{LAUGHS}"), "without a document type"),
        (kml(polygon() + "&x;", f"<?xml version='1.0'?>{OUTSIDE}"), "without a document type"),
        (kml(polygon("10,50 &undefined; 11,51")), "well-formed XML"),
        (kml("<a>" * 200 + "</a>" * 200), "no deeper than 100"),
        (kml("<a>" * 100_000), "no deeper than 100"),
        (kml(polygon("10,50 11,fifty 11,51")), "longitude,latitude"),
        (kml(polygon("10,50 11")), "longitude,latitude"),
        (kml(polygon("10,50 11,50")), "three points or more"),
        (kml("<LineString><coordinates>1,2</coordinates></LineString>"), "lines two"),
        (kml(polygon("10,50 11,50 11,nan")), "longitude,latitude"),
        (kml(polygon("10,50 11,50 11,1e999")), "longitude,latitude"),
        (kml("<name>nothing</name>"), "not empty"),
        (kml(polygon(), '<?xml version="1.0" encoding="klingon"?>'), "well-formed XML"),
        (b"\xff\xfe<\x00", "well-formed XML"),
        (b'{"type": "Polygon"', "body must be JSON"),
        (b"PK\x03\x04nonsense", "readable and not encrypted"),
        (zipped({"x.txt": b""}), "one shapefile"),
        (zipped({"x.shp": b"", "x.kml": b""}), "one shapefile"),
        (zipped({"x.kml": b"", "y.kml": b""}), "one .kml file"),
        (zipped({"x.shp": b"", "y.shp": b""}), "one .shp file"),
        (zipped({"x.shp": b"", "x.shx": b""}), r"\.shp, \.shx and \.prj"),
        (zipped({"x.shp": b"", "x.shx": b"", "x.prj": b""}), "layer with geometries"),
        (zipped({"x.gpkg": b"<vrt/>"}), "must be a GeoPackage"),
        (zipped({"x.kml": kml(polygon())}, zipfile.ZIP_BZIP2), "stored or deflated"),
        (b"SQLite format 3\0" + b"\0" * 5000, "GDAL can read"),
    ],
)
def test_what_is_no_area_or_would_do_harm_is_refused(data, words):
    with pytest.raises(QueryError, match=words):
        read_upload(data)


def test_a_bomb_is_refused_before_it_is_large():
    bomb = zipped({"x.kml": b" " * (archives.BYTES + 1)})
    assert len(bomb) < 100_000
    with pytest.raises(QueryError, match="at most 50,000,000 bytes when unpacked"):
        read_upload(bomb)


def test_parts_of_a_shapefile_are_bounded_together(monkeypatch):
    monkeypatch.setattr(archives, "BYTES", 1000)
    with pytest.raises(QueryError, match="at most 1,000 bytes when unpacked"):
        read_upload(zipped({"x.shp": b" " * 600, "x.shx": b" " * 600, "x.prj": b""}))


def test_an_archive_that_lies_about_its_sizes_is_refused():
    honest = zipped({"x.kml": b" " * 5000 + kml(polygon())})
    lying = honest.replace((5000 + len(kml(polygon()))).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != honest
    with pytest.raises(QueryError):
        read_upload(lying)


def test_an_archive_of_too_many_files_is_refused():
    with pytest.raises(QueryError, match="at most 1,000 files"):
        read_upload(zipped({f"{n}.txt": b"" for n in range(1001)}))


def test_an_encrypted_archive_is_refused():
    data = bytearray(zipped({"x.kml": kml(polygon())}))
    for at in (6, data.index(b"PK\x01\x02") + 8):
        data[at] |= 1
    with pytest.raises(QueryError, match="not encrypted"):
        read_upload(bytes(data))


def test_without_a_crs_a_shapefile_is_refused(tmp_path):
    files = contents(shapefile(tmp_path, SQUARE))
    with pytest.raises(QueryError, match=r"\.prj"):
        read_upload(zipped({name: data for name, data in files.items() if not name.endswith("prj")}))
    with pytest.raises(QueryError, match="coordinate reference system"):
        read_upload(zipped(files | {"shape.prj": b"nonsense"}))


def test_a_table_without_geometries_is_refused(tmp_path):
    path = tmp_path / "bare.gpkg"
    import pandas as pd
    import pyogrio

    pyogrio.write_dataframe(pd.DataFrame({"a": [1]}), path, driver="GPKG")
    with pytest.raises(QueryError, match="layer with geometries"):
        read_upload(path.read_bytes())


def test_too_many_vertices_and_features_are_refused(tmp_path, monkeypatch):
    many = shapely.segmentize(SQUARE, 3.9e-5)
    with pytest.raises(QueryError, match="at most 100,000 vertices"):
        read_upload(written(tmp_path, "many.gpkg", many))
    with pytest.raises(QueryError, match="at most 10,000 features"):
        read_upload(written(tmp_path, "points.gpkg", *shapely.points([[0, 0]] * 10_001)))
    monkeypatch.setattr(kml_module, "VERTICES", 4)
    with pytest.raises(QueryError, match="at most 4 vertices"):
        read_upload(kml(polygon(RING)))
    monkeypatch.setattr(kml_module, "FEATURES", 1)
    point = "<Point><coordinates>1,2</coordinates></Point>"
    with pytest.raises(QueryError, match="at most 1 features"):
        read_upload(kml(point * 2))


def test_a_file_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    data = written(tmp_path, "some.gpkg", SQUARE)
    monkeypatch.setattr(gdal, "SECONDS", 0.01)
    with pytest.raises(QueryError, match=r"read in 0\.01 seconds"):
        read_upload(data)


def test_a_damaged_file_is_refused_wherever_it_is_damaged(tmp_path):
    data = written(tmp_path, "some.gpkg", SQUARE)
    for start in range(100, len(data), len(data) // 5):
        broken = data[:start] + b"\xa5" * 400 + data[start + 400 :]
        try:
            read_upload(broken)
        except QueryError as fault:
            assert "/" not in str(fault)  # no path of the machine


def test_the_reading_process_sees_no_setting_of_the_service(tmp_path, monkeypatch):
    seen = {}
    run = gdal.subprocess.run
    monkeypatch.setenv("SYNTHMAP_SERVICE_DATABASE", "postgresql://user:secret@host/x")
    monkeypatch.setattr(gdal.subprocess, "run", lambda *a, **k: seen.update(k["env"]) or run(*a, **k))
    assert same(written(tmp_path, "some.gpkg", SQUARE))
    assert seen["GDAL_SKIP"]
    assert not any("SYNTHMAP" in key for key in seen)


def test_self_intersections_in_files_are_mended_and_said():
    shape = read_upload(kml(polygon("0,0 2,2 2,0 0,2 0,0")))
    assert shape.polygons().area == pytest.approx(2.0)
    assert "mended" in shape.notes[0]
