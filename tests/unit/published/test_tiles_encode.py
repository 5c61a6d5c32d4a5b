"""Tiles as bytes, read back by mapbox-vector-tile's decoder."""

import mapbox_vector_tile
import numpy as np
import polars as pl
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.published import tiles_encode
from synthmap.published.tiles_encode import (
    LINE,
    POINT,
    POLYGON,
    TileLayer,
    encode,
    line_commands,
    point_commands,
    polygon_commands,
)

UNIT = st.integers(-64, 4160)
SPOT = st.tuples(UNIT, UNIT)


def decoded(data):
    return mapbox_vector_tile.decode(data, default_options={"y_coord_down": True})


def layer(name, kind, commands, strength=None, **values):
    number = len(commands)
    values = pl.DataFrame({"id": [str(i) for i in range(number)]} | values)
    strength = np.arange(number) if strength is None else np.array(strength)
    return TileLayer(name, kind, np.arange(number), commands, values, strength)


def points(number):
    """Commands of so many points."""
    return point_commands(np.zeros((number, 2)), np.arange(number))


@settings(deadline=None)
@given(st.lists(st.lists(SPOT, min_size=1, max_size=3), min_size=1))
def test_points_come_back_each_owner_with_all_its_parts(features):
    owner = np.repeat(np.arange(len(features)), [len(parts) for parts in features])
    at = np.array([spot for parts in features for spot in parts], float)
    found = decoded(encode([layer("p", POINT, point_commands(at, owner))]))["p"]["features"]
    parts = [
        one["geometry"]["coordinates"] if one["geometry"]["type"] == "MultiPoint" else [one["geometry"]["coordinates"]]
        for one in found
    ]
    assert [[tuple(spot) for spot in part] for part in parts] == features
    assert [one["id"] for one in found] == list(range(len(features)))


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(SPOT, SPOT).filter(lambda ends: ends[0] != ends[1]), min_size=1, max_size=3), min_size=1
    )
)
def test_lines_come_back_each_owner_with_all_its_parts(features):
    owner = np.repeat(np.arange(len(features)), [len(parts) for parts in features])
    lines = np.array([part for parts in features for part in parts], float)
    found = decoded(encode([layer("l", LINE, line_commands(lines, owner))]))["l"]["features"]
    parts = [
        one["geometry"]["coordinates"]
        if one["geometry"]["type"] == "MultiLineString"
        else [one["geometry"]["coordinates"]]
        for one in found
    ]
    assert [[tuple(map(tuple, ends)) for ends in part] for part in parts] == features


def test_polygons_come_back_with_their_holes():
    ring = shapely.box(0, 0, 100, 100, ccw=True)
    shape = shapely.multipolygons(
        [shapely.orient_polygons(ring - shapely.box(10, 10, 20, 30)), shapely.box(200, 0, 300, 9)]
    )
    (one,) = decoded(encode([layer("a", POLYGON, polygon_commands(np.array([shape])))]))["a"]["features"]
    assert shapely.geometry.shape(one["geometry"]).equals(shape)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.integers(0, 2**53)), min_size=1))
def test_properties_come_back_text_as_text(rows):
    names, counts = map(list, zip(*rows, strict=True))
    spots = points(len(rows))
    data = encode([layer("p", POINT, spots, title=names, count=counts, other=counts[::-1])])
    found = [one["properties"] for one in decoded(data)["p"]["features"]]
    assert [(one["title"], one["count"]) for one in found] == rows
    assert [one["other"] for one in found] == counts[::-1]
    assert all(isinstance(one["id"], str) for one in found)


def test_nothing_is_no_bytes():
    assert (
        encode([layer("p", POINT, []), layer("l", LINE, line_commands(np.empty((0, 2, 2)), np.empty(0, np.int64)))])
        == b""
    )


@pytest.mark.parametrize("limit", [1_000, 5_000, 50_000])
def test_a_tile_too_large_loses_its_weakest_features_and_keeps_its_order(monkeypatch, limit):
    monkeypatch.setattr(tiles_encode, "TILE_BYTES", limit)
    strength = np.random.default_rng(0).permutation(3_000)
    data = encode([layer("p", POINT, points(3_000), strength, count=strength)])
    assert len(data) <= limit
    counts = [one["properties"]["count"] for one in decoded(data)["p"]["features"]]
    assert len(counts) > limit / 100
    assert sorted(counts) == list(range(3_000 - len(counts), 3_000))
    assert counts == [count for count in strength.tolist() if count >= 3_000 - len(counts)]


def test_even_one_feature_may_be_too_large(monkeypatch):
    monkeypatch.setattr(tiles_encode, "TILE_BYTES", 1_000)
    assert encode([layer("p", POINT, points(1), title=["x" * 5_000])]) == b""
