"""Polygons are kept to be drawn; points are not."""

import geopandas as gpd
import pytest
import shapely
from shapely.geometry import Point, Polygon, box

from synthmap.errors import GeographyError, VintageError
from synthmap.geography.read import read_zones
from synthmap.spec import ZonesSpec


def layer(folder, *, geometry, crs="EPSG:4326", **spec):
    gpd.GeoDataFrame({"code": ["001", "002"]}, geometry=geometry, crs=crs).to_file(folder / "zones.gpkg")
    return read_zones(ZonesSpec(path=folder / "zones.gpkg", id="code", vintage="2020", **spec))


def of(zones):
    return dict(zip(zones.ids.to_pylist(), shapely.from_wkb(zones.shapes.to_numpy(zero_copy_only=False)), strict=True))


def test_polygons_are_kept_in_degrees_whatever_the_crs(tmp_path):
    squares = gpd.GeoSeries([box(0, 50, 1, 51), box(1, 50, 2, 51)], crs=4326)
    zones = layer(tmp_path, crs="EPSG:3857", geometry=list(squares.to_crs(3857)))
    for name, square in zip(("001", "002"), squares, strict=True):
        assert of(zones)[name].symmetric_difference(square).area < 1e-9


def test_points_alone_have_no_shapes(tmp_path):
    assert layer(tmp_path, geometry=[Point(0, 50), Point(1, 50)]).shapes is None


def test_a_bow_tie_is_mended_and_height_is_left_out(tmp_path):
    bow = Polygon([(0, 50, 7), (1, 51, 7), (1, 50, 7), (0, 51, 7)])
    shape = of(layer(tmp_path, geometry=[bow, box(1, 50, 2, 51)]))["001"]
    assert shape.is_valid
    assert not shape.has_z
    assert shape.area == pytest.approx(0.5)


def test_shapes_come_from_another_file_by_id(tmp_path):
    shapes = {"x": box(0, 50, 1, 51), "001": box(0, 50, 1, 51), "002": box(1, 50, 2, 51)}
    frame = gpd.GeoDataFrame({"key": list(shapes)}, geometry=list(shapes.values()), crs=4326)
    frame.to_file(tmp_path / "shapes.gpkg")
    spec = {"path": tmp_path / "shapes.gpkg", "id": "key", "vintage": "2020"}
    zones = layer(tmp_path, geometry=[Point(1.5, 50.5), Point(0.5, 50.5)], shapes=spec)
    assert zones.longitude[zones.ids.to_pylist().index("001")] == 1.5
    assert of(zones)["002"].equals(shapes["002"])
    for change, match in (({"vintage": "2010"}, "zones.shapes.vintage"), ({"id": "no"}, "must have the column no")):
        with pytest.raises((GeographyError, VintageError), match=match):
            layer(tmp_path, geometry=[Point(1, 50), Point(0, 50)], shapes=spec | change)


def test_every_zone_needs_a_shape_and_only_one(tmp_path):
    spec = {"path": tmp_path / "shapes.gpkg", "id": "key", "vintage": "2020"}
    for keys, match in ((["001", "x"], "every zone must have a shape; 1 are missing: '002'"),
                        (["001", "001"], "must be unique; not so '001'")):  # fmt: skip
        frame = gpd.GeoDataFrame({"key": keys}, geometry=[box(0, 50, 1, 51)] * 2, crs=4326)
        frame.to_file(tmp_path / "shapes.gpkg")
        with pytest.raises(GeographyError, match=match):
            layer(tmp_path, geometry=[Point(1, 50), Point(0, 50)], shapes=spec)
