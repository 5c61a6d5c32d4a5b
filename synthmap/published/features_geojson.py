"""Features as GeoJSON text."""

import numpy as np
import polars as pl
import shapely
from numpy.typing import NDArray

from synthmap.published.boxes import CRS84
from synthmap.published.features_crs import code_of
from synthmap.published.features_layer import Layer


def write_features(layer: Layer, rows: NDArray[np.int64], crs: str = CRS84) -> list[str]:
    """Return the features at `rows`, ascending, each as a GeoJSON object without its last brace.

    Parameters
    ----------
    layer : Layer
    rows : ndarray of int64
    crs : str
        URI of a declared CRS; coordinates are in the order of its axes, rounded to about a centimetre.
    """
    if rows.size == 0:
        return []
    frame, shapes = layer.read(rows, code_of(layer.opened, crs, "crs"))
    properties = frame.select(pl.struct(pl.all()).struct.json_encode())[:, 0]
    geometries = shapely.to_geojson(shapes)
    return [
        f'{{"type":"Feature","id":"{row}","geometry":{shape or "null"},"properties":{values}'
        for row, shape, values in zip(rows.tolist(), geometries, properties, strict=True)
    ]
