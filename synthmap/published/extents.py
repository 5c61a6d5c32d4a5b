"""Where the zones of a release lie: west, south, east and north; west is above east across the antimeridian."""

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from synthmap.published.areas.antimeridian import joined, narrowest
from synthmap.published.store import OpenedRelease, unharmed

_TOGETHER = 10_000  # shapes read at once


Bounds = tuple[float, float, float, float]


class _Extent(Bounds):
    nbytes = 100


def extent(opened: OpenedRelease) -> Bounds:
    """Return west, south, east and north of the zones of a release, the widest gap between them left out.

    They are in the head of its GeoParquet file; only where these span half the globe, all zones are looked at.
    """

    def read() -> _Extent:
        with unharmed(opened.id):
            path = opened.file("zones.parquet")
            head = pq.read_schema(path).metadata or {}
            geo = json.loads(head.get(b"geo", b"{}"))
            bbox = geo.get("columns", {}).get("geometry", {}).get("bbox")
            if not bbox or bbox[2] - bbox[0] > 180.0:
                bounds = np.concatenate([np.empty((0, 4)), *map(_bounds, pq.ParquetFile(path).iter_batches(
                    _TOGETHER, columns=["geometry"]))])  # fmt: skip
                (west, east), south, north = narrowest(bounds[:, 0], bounds[:, 2]), bounds[:, 1], bounds[:, 3]
                bbox = west, south.min(), east, north.max()
        return _Extent(round(float(edge), 7) for edge in bbox)

    return opened.memory.get((opened.etag, "extent"), read)


def _bounds(batch: Any) -> NDArray[np.float64]:
    bounds = shapely.bounds(joined(shapely.from_wkb(batch["geometry"].to_numpy(zero_copy_only=False))))
    return np.asarray(bounds[~np.isnan(bounds[:, 0])])


def width(west: float, east: float) -> float:
    """Return how many degrees of longitude lie between west and east."""
    return east - west if west <= east else east - west + 360.0


def middle(west: float, east: float) -> float:
    """Return the longitude in the middle between west and east."""
    return (west + width(west, east) / 2.0 + 180.0) % 360.0 - 180.0
