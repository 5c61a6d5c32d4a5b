import gzip

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely.geometry import LineString, Point, Polygon, box

from synthmap.errors import GeographyError, VintageError
from synthmap.geography.read import read_zones
from synthmap.spec import Weights, ZonesSpec

ROWS = "code,county,lon,lat,people\n001,01,1,50,5\n002,01,2,50,0\n013,02,3,51,7\n"
COLUMNS = {"id": "code", "longitude": "lon", "latitude": "lat", "vintage": "2020"}
HORSESHOE = Polygon([(0, 0), (9, 0), (9, 9), (8, 9), (8, 1), (1, 1), (1, 9), (0, 9)])


def table(folder, text=ROWS, name="zones.csv", **spec):
    path = folder / name
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if name.lower().endswith(".gz") else raw)
    return read_zones(ZonesSpec(path=path, **{**COLUMNS, **spec}))


def layer(folder, name="zones.gpkg", *, crs="EPSG:4326", geometry=None, read=None, **columns):
    path = folder / name
    columns = columns or {"code": ["001", "002"]}
    frame = gpd.GeoDataFrame(columns, geometry=geometry or [box(0, 50, 1, 51), box(1, 50, 2, 51)], crs=crs)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_file(path)
    return read_zones(ZonesSpec(path=path, **{"id": "code", "vintage": "2020", **(read or {})}))


def by_id(zones, values):
    return dict(zip(zones.ids.to_pylist(), np.asarray(values).tolist(), strict=True))


def rhode_island(data_folder, **spec):
    path = data_folder / "lodes7_ri_2019" / "ri_xwalk.csv.gz"
    return read_zones(ZonesSpec(path=path, **{"vintage": "2010", **spec}))


def population(data_folder, **spec):
    path = data_folder / "us_ri_block_pop_2010" / "ri_2010_block_pop_vap.csv.gz"
    return Weights(path=path, **{"id": "GEOID", "column": "pop", "vintage": "2010", **spec})


def test_a_crosswalk_with_population(data_folder):
    zones = rhode_island(data_folder, weights=population(data_folder))
    assert len(zones) == 25181
    assert zones.levels == ("st", "cty", "trct", "bgrp")
    assert [len(set(p.to_pylist())) for p in zones.parents] == [2, 6, 246, 817]
    assert zones.parents[1].to_pylist().count("25005") == 2
    assert zones.weight.sum() == 1_052_567
    assert all(len(i) == 15 for i in zones.ids.to_pylist())


def test_a_crosswalk_of_2020(data_folder):
    path = data_folder / "lodes8_dc_2023" / "dc_xwalk.csv.gz"
    zones = read_zones(ZonesSpec(path=path, vintage="blocks of 2020"))
    assert len(zones) == zones.weight.sum() == 6012
    assert (np.abs(zones.longitude + 77) < 0.2).all()
    with pytest.raises(VintageError, match=r"vintage \(2010\) must contain 2020: the column tabblk2020"):
        read_zones(ZonesSpec(path=path, vintage="2010"))
    with pytest.raises(VintageError):  # also when the id is named
        read_zones(ZonesSpec(path=path, id="tabblk2020", vintage="2010"))


def test_nines_mean_no_parent(data_folder):
    zones = rhode_island(data_folder, levels=["cty", "tsub"])
    assert {f"{county}:none" for county in zones.parents[0].to_pylist()} == set(zones.parents[1].to_pylist())
    assert set(rhode_island(data_folder, levels=["tsub"]).parents[0].to_pylist()) == {"none"}


def test_metropolitan_areas_that_cross_states_are_not_below_states(data_folder):
    with pytest.raises(GeographyError, match="every cbsa must lie in one st; 1 lie in several: '39300'"):
        rhode_island(data_folder, levels=["st", "cbsa"])


def test_nines_are_codes_in_other_tables(tmp_path):
    assert "99" in table(tmp_path, ROWS.replace("01,1", "99,1"), levels=["county"]).parents[0].to_pylist()


def test_both_block_vintages_in_one_file(tmp_path):
    with pytest.raises(GeographyError, match="columns found: tabblk2010, tabblk2020"):
        table(tmp_path, "tabblk2010,tabblk2020\na,b\n", id=None)


@pytest.mark.parametrize("name", ["zones.csv", "zones.csv.gz", "ZONES.CSV", "ZONES.CSV.GZ"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_csv_table(tmp_path, name, mark):
    zones = table(tmp_path, mark + ROWS.encode(), name, levels=["county"], weight="people")
    assert by_id(zones, zones.weight) == {"001": 5, "002": 0, "013": 7}
    assert by_id(zones, zones.longitude) == {"001": 1, "002": 2, "013": 3}
    assert sorted(zones.parents[0].to_pylist()) == ["01", "01", "02"]
    assert zones.vintage == "2020"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_parquet_table(tmp_path, kind):
    ids = pa.chunked_array([pa.array(["01"]), pa.array(["02"])]).cast(kind)
    content = {
        "code": ids,
        "county": ids,
        "lon": [1, 2],
        "lat": [3.5, 4],
        "people": pa.array([4, 5], pa.int16()),
    }
    pq.write_table(pa.table(content), tmp_path / "z.parquet")
    spec = ZonesSpec(path=tmp_path / "z.parquet", levels=["county"], weight="people", **COLUMNS)
    zones = read_zones(spec)
    assert isinstance(zones.ids, pa.StringArray)
    assert by_id(zones, zones.weight) == {"01": 4, "02": 5}


@pytest.mark.parametrize("column", ["code", "county"])
@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0]])
def test_numbers_as_ids_are_refused(tmp_path, column, values):
    content = {"code": ["1", "2"], "county": ["1", "2"], "lon": [1, 2], "lat": [3, 4], column: values}
    pq.write_table(pa.table(content), tmp_path / "z.parquet")
    with pytest.raises(GeographyError, match=f"must be text; those of column {column} are numbers .*zeros"):
        read_zones(ZonesSpec(path=tmp_path / "z.parquet", levels=["county"], **COLUMNS))
    for name in ("z.gpkg", "z.geojson"):
        ids = {"code": ["1", "2"], "county": ["1", "2"], column: values}
        with pytest.raises(GeographyError, match=f"column {column} are numbers"):
            layer(tmp_path, name, **ids, read={"levels": ["county"]})


def test_alphanumeric_ids_and_odd_text_survive(tmp_path):
    zones = table(tmp_path, 'code,lon,lat\nNA,1,1\n 0A ,2,2\n"é,\n1",3, +3\n1e3,4,4\n')
    assert set(zones.ids.to_pylist()) == {"NA", " 0A ", "é,\n1", "1e3"}


def test_without_weights_every_zone_counts_one(tmp_path):
    assert table(tmp_path).weight.tolist() == [1, 1, 1]


def test_fractions_are_scaled_and_rounded_half_up(tmp_path):
    text = "code,lon,lat,w\na,1,1,0.25\nb,2,2,12.5\nc,3,3,0\nd,4,4,0.0000125\n"
    zones = table(tmp_path, text, weight="w")
    assert by_id(zones, zones.weight) == {"a": 25_000, "b": 1_250_000, "c": 0, "d": 1}
    zones = table(tmp_path, "code,lon,lat,w\na,1,1,2000000.5\nb,2,2,1.0\n", weight="w")
    assert by_id(zones, zones.weight) == {"a": 2_000_001, "b": 1}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (("1", "-1"), "at least 0; not so for 'b'"),
        (("1", "nan"), "zone without weight: 1 have no value in column w: 'b'"),
        (("1", ""), "no value in column w: 'b'"),
        (("1", "inf"), "no value in column w: 'b'"),
        (("1", "x"), "column w must hold numbers"),
        (("0", "0"), r"sum of zone weights \(0\) must be above 0"),
        (("1", "1e17"), r"sum of zone weights \(1e\+17\)"),
    ],
)
def test_weights_that_cannot_be(tmp_path, weights, message):
    a, b = weights
    with pytest.raises(GeographyError, match=message):
        table(tmp_path, f"code,lon,lat,w\na,1,1,{a}\nb,2,2,{b}\n", weight="w")


def test_a_separate_table_of_weights(tmp_path):
    pq.write_table(pa.table({"key": ["013", "001", "999", "002"], "n": [3, 1, 9, 2]}), tmp_path / "w.parquet")
    weights = Weights(path=tmp_path / "w.parquet", id="key", column="n", vintage="2020")
    zones = table(tmp_path, weights=weights)
    assert by_id(zones, zones.weight) == {"001": 1, "002": 2, "013": 3}
    with pytest.raises(VintageError, match=r"weights.vintage \(2020\) must be zones.vintage \(2010\)"):
        table(tmp_path, weights=weights, vintage="2010")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("001,1\n", "2 are missing: '002', '013'"),
        ("001,1\n002,1\n013,1\n013,2\n", "unique; not so '013'"),
        ("1,1\n2,1\n13,1\n", "3 are missing"),
        ("001,1\n002,\n013,1\n", "no value in column n: '002'"),
    ],
)
def test_separate_weights_must_fit(tmp_path, rows, message):
    (tmp_path / "w.csv").write_text("key,n\n" + rows)
    weights = Weights(path=tmp_path / "w.csv", id="key", column="n", vintage="2020")
    with pytest.raises(GeographyError, match=message):
        table(tmp_path, weights=weights)


def test_the_vintage_of_weights_of_blocks(data_folder):
    with pytest.raises(VintageError, match=r"weights.vintage \(2020\)"):
        rhode_island(data_folder, weights=population(data_folder, vintage="2020"))


def test_british_polygons_and_centroids_agree(data_folder):
    folder = data_folder / "uk_leeds_msoa_2011"
    areas = read_zones(ZonesSpec(path=folder / "od_data_zones.geojson", id="geo_code", vintage="2011"))
    points = read_zones(
        ZonesSpec(path=folder / "od_data_centroids.csv", **{**COLUMNS, "id": "geo_code", "vintage": "2011"})
    )
    assert (len(areas), len(points)) == (106, 107)
    at = points.find(areas.ids)
    assert (at >= 0).all()
    assert np.abs(points.longitude[at] - areas.longitude).max() < 0.05
    shapes = gpd.read_file(folder / "od_data_zones.geojson").set_index("geo_code").geometry
    inner = gpd.points_from_xy(areas.longitude, areas.latitude)
    assert all(shapes.loc[i].contains(p) for i, p in zip(areas.ids.to_pylist(), inner, strict=True))


def test_tracts_of_a_shapefile_with_another_datum(data_folder):
    path = data_folder / "us_ri_tracts_2023" / "tl_2023_44_tract.shp"
    spec = {"path": path, "id": "GEOID", "levels": ["STATEFP", "COUNTYFP"], "vintage": "2020"}
    zones = read_zones(ZonesSpec(**spec))
    assert len(zones) == 250
    assert (np.abs(zones.longitude + 71.5) < 0.5).all()
    named = read_zones(ZonesSpec(**spec, longitude="INTPTLON", latitude="INTPTLAT"))  # text such as "+41.5"
    apart = np.abs(named.latitude - zones.latitude[zones.find(named.ids)])
    assert np.median(apart) < 0.01  # tracts of water have inner points far apart


@pytest.mark.parametrize("name", ["z.gpkg", "z.geojson", "z.fgb", "z.shp", "z.parquet"])
def test_formats_of_layers(tmp_path, name):
    zones = layer(tmp_path, name, code=["001", "002"], c=["01", "01"], w=[3, 4], read={"levels": ["c"], "weight": "w"})
    assert by_id(zones, zones.weight) == {"001": 3, "002": 4}
    assert by_id(zones, zones.longitude) == {"001": 0.5, "002": 1.5}
    assert zones.parents[0].to_pylist() == ["01", "01"]


@pytest.mark.parametrize("name", ["z.gpkg", "z.parquet"])
def test_a_projected_layer_and_a_point_inside_not_a_centroid(tmp_path, name):
    far = Polygon([(x * 1000 + 500_000, y * 1000 + 5_500_000) for x, y in HORSESHOE.exterior.coords])
    zones = layer(tmp_path, name, crs="EPSG:32631", geometry=[far, Point(500_000, 5_500_000)])
    assert np.allclose(zones.latitude, 49.65, atol=0.1)
    back = gpd.GeoSeries(gpd.points_from_xy(zones.longitude, zones.latitude), crs=4326).to_crs(32631)
    place = zones.ids.to_pylist().index("001")
    assert far.contains(back[place])
    assert not far.contains(far.centroid)


def test_a_layer_without_crs(tmp_path):
    with pytest.raises(GeographyError, match="must say its coordinate reference system"):
        layer(tmp_path, "z.parquet", crs=None)
    layer(tmp_path, "z.shp")
    (tmp_path / "z.prj").unlink()
    with pytest.raises(GeographyError, match="must say its coordinate reference system"):
        read_zones(ZonesSpec(path=tmp_path / "z.shp", id="code", vintage="2020"))


@pytest.mark.parametrize("name", ["z.gpkg", "z.geojson", "z.parquet"])
@pytest.mark.parametrize("bare", [None, Point(), Polygon()])
def test_empty_geometry_is_a_zone_without_coordinates(tmp_path, name, bare):
    with pytest.raises(GeographyError, match="zone without coordinates: 1 geometries are empty: '002'"):
        layer(tmp_path, name, geometry=[Point(1, 1), bare])


def test_lines_are_no_zones(tmp_path):
    with pytest.raises(GeographyError, match="points or polygons; not so '001'"):
        layer(tmp_path, geometry=[LineString([(0, 0), (1, 1)]), Point(1, 1)])


def test_one_of_several_layers(tmp_path):
    frame = gpd.GeoDataFrame({"code": ["1"]}, geometry=[Point(1, 2)], crs=4326)
    for name in ("wards", "tracts"):
        frame.to_file(tmp_path / "z.gpkg", layer=name)
    spec = {"path": tmp_path / "z.gpkg", "id": "code", "vintage": "1"}
    assert len(read_zones(ZonesSpec(**spec, layer="tracts"))) == 1
    with pytest.raises(GeographyError, match=r"name one as zones.layer: wards, tracts"):
        read_zones(ZonesSpec(**spec))
    with pytest.raises(GeographyError, match="must be a readable file"):
        read_zones(ZonesSpec(**spec, layer="blocks"))


def test_tables_without_geometry(tmp_path):
    pq.write_table(pa.table({"code": ["1"], "lon": [1.0]}), tmp_path / "z.parquet")
    with pytest.raises(GeographyError, match="must have a geometry; without one name zones"):
        read_zones(ZonesSpec(path=tmp_path / "z.parquet", id="code", vintage="1"))
    frame = gpd.GeoDataFrame(pd.DataFrame({"code": ["1"]}), geometry=[None], crs=4326)
    frame.to_file(tmp_path / "z.gpkg")
    with pytest.raises(GeographyError, match="zone without coordinates"):
        read_zones(ZonesSpec(path=tmp_path / "z.gpkg", id="code", vintage="1"))


@pytest.mark.parametrize(
    ("text", "spec", "message"),
    [
        (ROWS, {"id": None}, "zones.id must name .*columns found: code, county, lon, lat, people"),
        (ROWS, {"id": "geoid"}, "must have the column geoid; columns found: code, county"),
        (ROWS, {"levels": ["state", "tract"]}, "must have the column state, tract; columns found"),
        (ROWS, {"levels": ["county", "county"]}, r"zones.levels \(county, county\) must be different"),
        (ROWS, {"longitude": None}, "must be given together"),
        (ROWS, {"longitude": None, "latitude": None}, "must name columns of .*found: code, county"),
        ("code,lon,lat\n", {}, "at least one zone"),
        ("", {}, "must start with a line of column names"),
        ("code,code,lon,lat\n1,1,1,1\n", {}, "column names must be unique"),
        ("code,lon,lat\na,1,1\nb,,2\n", {}, "zone without coordinates: 1 have no value in column lon: 'b'"),
        ("code,lon,lat\na,1,1\nb,1,95\n", {}, "1 zones have none or others: 'b'"),
        ('code,lon,lat\na,"1,5",1\n', {}, "column lon must hold numbers with a decimal point"),
        ("code,lon,lat\na,1,1\na,1,1\n", {}, "unique; 1 occur more than once: 'a'"),
        ("code,lon,lat\n,1,1\n", {}, "every zone must have an id"),
        ("code,lon,lat\na,1\n", {}, "must be a readable file"),
        ("code,lon,lat\né,1,1\n".encode("latin-1"), {}, "text in UTF-8"),
        ("codé,lon,lat\na,1,1\n".encode("latin-1"), {}, "text in UTF-8"),
        (
            "code,up,county,lon,lat\na,1,c,1,1\nb,2,c,1,1\n",
            {"levels": ["up", "county"]},
            "county must lie in one up",
        ),
        ("code,county,lon,lat\na,,1,1\n", {"levels": ["county"]}, "parent at level county; missing for 'a'"),
    ],
)
def test_faults_of_a_csv_table(tmp_path, text, spec, message):
    with pytest.raises(GeographyError, match=message):
        table(tmp_path, text, **spec)


@pytest.mark.parametrize("name", ["z.csv", "z.csv.gz", "z.parquet", "z.gpkg", "z.geojson", "z.shp"])
def test_files_that_are_missing_or_corrupt(tmp_path, name):
    spec = ZonesSpec(path=tmp_path / name, **COLUMNS)
    with pytest.raises(GeographyError, match="must be a file; there is none"):
        read_zones(spec)
    spec.path.write_bytes(b"\x1f\x8b\x00 nothing of any use \xff")
    with pytest.raises(GeographyError, match="must be a readable file"):
        read_zones(spec)


@pytest.mark.parametrize("good, bad", [(0.5, b""), (0.0, b"\xff" * 200), (1.0, b"hello"), (0.3, b"\xff" * 200)])
def test_a_gzip_that_is_cut_or_cannot_be_unpacked(tmp_path, good, bad):
    whole = gzip.compress("".join(f"{i},{i % 90},{i * 7 % 90}\n" for i in range(50_000)).encode())
    told = gzip.compress(b"code,lon,lat\n") + whole[: max(10, int(len(whole) * good))]
    (tmp_path / "z.csv.gz").write_bytes(told + bad)
    with pytest.raises(GeographyError, match="must be a readable file"):
        read_zones(ZonesSpec(path=tmp_path / "z.csv.gz", **COLUMNS))


@pytest.mark.parametrize("name", ["zones.parquet", "zones.geojson"])
def test_text_that_is_not_utf8_is_refused_also_where_no_library_looks(tmp_path, name):
    columns = {"code": ["001", "002"], "county": ["a1", "a2"]}
    if name.endswith("parquet"):
        values = pa.table({**columns, "lon": [1.0, 2.0], "lat": [50.0, 50.0]})
        pq.write_table(values, tmp_path / name, compression="none", use_dictionary=False, write_statistics=False)
        options = {"longitude": "lon", "latitude": "lat"}
    else:
        gpd.GeoDataFrame(columns, geometry=[box(0, 50, 1, 51), box(1, 50, 2, 51)], crs=4326).to_file(tmp_path / name)
        options = {}
    data = (tmp_path / name).read_bytes()
    assert b"a1" in data
    (tmp_path / name).write_bytes(data.replace(b"a1", b"\xe11"))
    with pytest.raises(GeographyError, match="text in UTF-8"):
        read_zones(ZonesSpec(path=tmp_path / name, id="code", levels=["county"], vintage="2020", **options))
