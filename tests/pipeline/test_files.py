"""The zones of a release are GeoParquet as GeoPandas would write it."""

import io
import json

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from shapely import MultiPolygon, Point, box

from pipelines.files import write_zones
from synthmap.geography.canonical import canonical
from synthmap.geography.region import make_region

SHAPES = {
    "points": None,
    "polygons": [box(0, 50, 1, 51), box(1, 50, 2, 51), box(2, 50, 3, 51.5)],
    "of several kinds": [Point(0.5, 50.5), box(1, 50, 2, 51), MultiPolygon([box(2, 50, 3, 51), box(4, 49, 5, 50)])],
}


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_geopandas_reads_the_zones_and_would_write_the_same(tmp_path, shapes, elsewhere):
    ids = ["a", "ü", "c"]
    longitude, latitude = np.array([0.5, 1.5, 2.5]), np.array([50.5, 50.25, 50.75])
    wkb = None if shapes is None else pa.array(shapely.to_wkb(np.array(shapes, object)), pa.binary())
    zones = canonical(
        ids=pa.array(ids), longitude=longitude, latitude=latitude, weight=np.array([3, 0, 5]), levels=("county",),
        parents=(pa.array(["x", "y", "x"]),), vintage="2020", shapes=wkb,
    )  # fmt: skip
    path = tmp_path / "zones.parquet"
    write_zones(path, make_region(zones), elsewhere=elsewhere)
    found = gpd.read_parquet(path)
    assert list(found.columns) == ["id", "county", "weight", "longitude", "latitude", "geometry"]
    assert found["id"].tolist() == [*sorted(ids), *["elsewhere"] * elsewhere]
    drawn = shapely.points(longitude, latitude) if shapes is None else shapes
    here = found.set_index("id").loc[ids]
    assert [one.equals(other) for one, other in zip(here.geometry, drawn, strict=True)] == [True] * 3
    assert (here["weight"].tolist(), here["county"].tolist()) == ([3, 0, 5], ["x", "y", "x"])
    assert (here["longitude"].tolist(), here["latitude"].tolist()) == (longitude.tolist(), latitude.tolist())
    last = found.iloc[-1]
    assert not elsewhere or (last.weight == 0 and last[["county", "longitude", "latitude", "geometry"]].isna().all())
    again = io.BytesIO()
    found.to_parquet(again)
    mine, theirs = (json.loads(pq.read_schema(one).metadata[b"geo"]) for one in (path, again))
    del theirs["creator"]
    assert mine == theirs
