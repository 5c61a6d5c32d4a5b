"""The files of a release: the OD table in parts, the zones, the plan."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.geography.arrays import row_sums, rows_at
from synthmap.geography.region import Region
from synthmap.geography.zones import Zones
from synthmap.mechanism.plan import Plan
from synthmap.mechanism.table import SyntheticCounts

ROW_GROUP = 131_072
_KINDS = {0: "Point", 3: "Polygon", 4: "MultiPoint", 6: "MultiPolygon"}  # of shapely's numbers for types
_WKB_POINT = np.dtype([("little_endian", "u1"), ("kind", "<u4"), ("longitude", "<f8"), ("latitude", "<f8")])


def write_part(path: Path, table: SyntheticCounts, region: Region, segments: tuple[str, ...]) -> None:
    """Write a part of the OD table, sorted by destination and origin: those two, count, segments, interval of count."""
    place = region.position[table.destination] * np.int64(region.position.size) + region.position[table.origin]
    order = np.argsort(place)  # each occurs once
    workers = rows_at(table.workers, order)
    columns = {
        "origin": region.names.take(pa.array(table.origin[order])),
        "destination": region.names.take(pa.array(table.destination[order])),
        "count": row_sums(workers),
    }
    if segments:
        columns |= {name: workers[:, i] for i, name in enumerate(segments)}
    if table.interval is not None:
        columns |= {"low": table.interval[order, 0], "high": table.interval[order, 1]}
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=ROW_GROUP)


def write_zones(path: Path, region: Region, *, elsewhere: bool) -> None:
    """Write the zones as GeoParquet, WGS 84: polygons where they are known, else points.

    The columns longitude and latitude are the internal points; everywhere else gets a row without either.
    """
    zones = region.zones
    geometry = _points(zones.longitude, zones.latitude) if zones.shapes is None else zones.shapes
    parents = dict(zip(zones.levels, zones.parents, strict=True))
    numbers = {"weight": zones.weight, "longitude": zones.longitude, "latitude": zones.latitude}
    table = pa.table({"id": zones.ids, **parents, **numbers, "geometry": geometry})
    table = table.take(pa.array(np.argsort(region.position[:-1])))
    if elsewhere:
        extra = pa.table({"id": region.names[-1:].cast(zones.ids.type), "weight": pa.array([0], pa.int64())})
        table = pa.concat_tables([table, extra], promote_options="default")
    table = table.replace_schema_metadata({"geo": json.dumps(_geo(zones))})
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)


def _points(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> pa.Array:
    """Return points as well-known binary (OGC 06-103r4, 8.2), without an object for each."""
    points = np.zeros(longitude.size, _WKB_POINT)
    points["little_endian"], points["kind"] = 1, 1
    points["longitude"], points["latitude"] = longitude, latitude
    fixed = pa.binary(_WKB_POINT.itemsize)
    return pa.FixedSizeBinaryArray.from_buffers(fixed, points.size, [None, pa.py_buffer(points)]).cast(pa.binary())


def _geo(zones: Zones) -> dict[str, Any]:
    """Return what GeoParquet 1.1.0 says of a file whose column `geometry` is well-known binary in WGS 84."""
    import pyproj
    import shapely

    kinds = ["Point"]
    bounds = [edge(axis) for edge in (np.min, np.max) for axis in (zones.longitude, zones.latitude)]
    if zones.shapes is not None:
        shapes = shapely.from_wkb(zones.shapes.to_numpy(zero_copy_only=False))
        kinds = sorted(_KINDS[kind] for kind in np.unique(shapely.get_type_id(shapes)).tolist())
        bounds = shapely.total_bounds(shapes).tolist()
    crs = pyproj.CRS.from_epsg(4326).to_json_dict()
    for member in crs["datum_ensemble"]["members"]:
        member.pop("id", None)  # which older PROJ does not know there; GeoPandas leaves them out, too
    column = {"encoding": "WKB", "geometry_types": kinds, "crs": crs, "bbox": [float(edge) for edge in bounds]}
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}


def write_plan(path: Path, plan: Plan, region: Region) -> None:
    """Write the plan, one row a destination in the order of ids: public, enough to certify the noise again."""
    table = plan.to_table()
    table = table.set_column(0, "destination", region.names.take(pa.array(plan.destination)))
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)
