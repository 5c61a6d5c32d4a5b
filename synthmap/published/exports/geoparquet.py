"""GeoParquet 1.1: one layer a file, WKB, with the box of every row beside it."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import shapely
from numpy.typing import NDArray

from synthmap.published.exports.about import about
from synthmap.published.exports.layers import layer
from synthmap.published.exports.rows import ROWS
from synthmap.published.store import OpenedRelease

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_BOX = pa.struct([(side, pa.float64()) for side in _SIDES])


def write_geoparquet(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write the layer `part` to `path`: every row, those from everywhere else with a null geometry and box."""
    one = layer(opened, part)
    schema = one.schema.append(pa.field("geometry", pa.binary())).append(pa.field("bbox", _BOX))
    kinds: set[str] = set()
    extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for table, shapes in one.batches():
            bounds = shapely.bounds(shapes)
            known = ~shapely.is_missing(shapes)
            if known.any():
                extent[:2] = np.minimum(extent[:2], bounds[known, :2].min(axis=0))
                extent[2:] = np.maximum(extent[2:], bounds[known, 2:].max(axis=0))
                kinds |= {str(kind) for kind in _names(shapes[known])}
            columns = [*table.columns, pa.array(shapely.to_wkb(shapes), pa.binary()), _boxes(bounds, known)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema), row_group_size=ROWS)
        about_geometry = {
            "encoding": "WKB",
            "geometry_types": sorted(kinds),
            "crs": pyproj.CRS("OGC:CRS84").to_json_dict(),
            "edges": "planar",
            "covering": {"bbox": {side: ["bbox", side] for side in _SIDES}},
        }
        if kinds:
            about_geometry["bbox"] = extent.tolist()
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about_geometry}}
        told = about(opened) | {"description": one.description}
        writer.add_key_value_metadata({"geo": json.dumps(geo)} | told)


def _names(shapes: NDArray[np.object_]) -> list[str]:
    """Return the types that occur, in the words of GeoParquet."""
    _, first = np.unique(shapely.get_type_id(shapes), return_index=True)
    return [shape.geom_type for shape in shapes[first]]


def _boxes(bounds: NDArray[np.float64], known: NDArray[np.bool_]) -> pa.StructArray:
    """Return bounds as structs, null where there is no geometry."""
    return pa.StructArray.from_arrays(
        [pa.array(bounds[:, i], from_pandas=True) for i in range(4)], fields=list(_BOX), mask=pa.array(~known)
    )
