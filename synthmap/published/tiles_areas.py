"""Polygons of zones, cut to a tile."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import shapely
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.published.areas.antimeridian import joined
from synthmap.published.places import Places
from synthmap.published.tiles_grid import BUFFER, COPIES, EXTENT, LATITUDE, Tile, world

_TOGETHER = 10_000  # shapes read at once
_BOX = shapely.box(-BUFFER, -BUFFER, EXTENT + BUFFER, EXTENT + BUFFER)


@dataclass(frozen=True)
class Areas:
    """The zones that are drawn as polygons.

    Attributes
    ----------
    places : Places
    boxes : ndarray of float64, shape (zones, 4)
        Smallest x and y and largest x and y in the world's square; NaN where a zone is only a point.
    """

    places: Places
    boxes: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory beside the shapes, which `places` keeps."""
        return self.boxes.nbytes

    def near(self, tile: Tile) -> NDArray[np.int64]:
        """Return the zones whose box touches a tile or its buffer."""
        return np.flatnonzero(tile.meets(self.boxes))

    def drawn(
        self, tile: Tile, rows: NDArray[np.int64], tolerance: float
    ) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Return polygons on the whole units of a tile, and the zone of each; what has no area there is left out.

        They are simplified by `tolerance` units before they are cut, so that neighbouring tiles agree, and outer rings
        have positive area, rows growing southwards, as the Mapbox Vector Tile specification 2.1 wants.
        """
        shapes = _within_latitudes(_whole(self.places, rows))
        shapes = shapely.transform(shapes, lambda at: tile.local(np.column_stack(world(at[:, 0], at[:, 1]))))
        shapes, owner = _copies(tile, _simplified(shapes, tolerance), rows)
        parts, index = shapely.get_parts(_on_units(_cut(shapes, _BOX)), return_index=True)
        solid = (shapely.get_type_id(parts) == shapely.GeometryType.POLYGON) & ~shapely.is_empty(parts)
        zone, group = np.unique(owner[index[solid]], return_inverse=True)
        order = np.argsort(group, kind="stable")
        parts = shapely.orient_polygons(parts[solid][order], exterior_cw=False)
        return zone, shapely.multipolygons(parts, indices=group[order])


def areas(places: Places) -> Areas:
    """Return the polygons of the zones.

    Raises
    ------
    ReleaseCorruptError
        If a geometry cannot be read.
    """
    boxes = np.full((len(places), 4), np.nan)
    for start in range(0, len(places), _TOGETHER):
        rows = np.arange(start, min(start + _TOGETHER, len(places)))
        shapes = _whole(places, rows)
        flat = shapely.get_dimensions(shapes) == 2
        west, south, east, north = shapely.bounds(shapes[flat]).T
        boxes[rows[flat]] = np.column_stack([*world(west, north), *world(east, south)])
    return Areas(places, boxes)


def _whole(places: Places, rows: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return shapes in degrees; one that spans the globe only because it crosses the antimeridian is joined there."""
    try:
        return joined(places.geometry(rows))
    except shapely.GEOSException:
        raise ReleaseCorruptError("every zone of a release must have a geometry; publish it again") from None


def _within_latitudes(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes cut where the world's square ends."""
    return _cut(shapes, shapely.box(-540, -LATITUDE, 540, LATITUDE))


def _cut(shapes: NDArray[np.object_], box: shapely.Polygon) -> NDArray[np.object_]:
    """Return what of shapes lies in a box; those wholly inside are left as they are."""
    bounds, (west, south, east, north) = shapely.bounds(shapes).T, box.bounds
    out = ~((bounds[0] >= west) & (bounds[1] >= south) & (bounds[2] <= east) & (bounds[3] <= north))
    shapes[out] = shapely.intersection(_valid(shapes[out]), box)
    return shapes


def _valid(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes with the invalid ones made valid, areas only."""
    broken = ~shapely.is_valid(shapes)
    shapes[broken] = shapely.make_valid(shapes[broken], method="structure", keep_collapsed=False)
    return shapes


def _simplified(shapes: NDArray[np.object_], tolerance: float) -> NDArray[np.object_]:
    """Return shapes with fewer vertices, valid; the slow way, which never crosses a shape with itself, where needed."""
    fast: NDArray[np.object_] = shapely.simplify(shapes, tolerance, preserve_topology=False)
    crossed = ~shapely.is_valid(fast)
    fast[crossed] = shapely.simplify(_valid(shapes[crossed]), tolerance)
    return fast


def _copies(
    tile: Tile, shapes: NDArray[np.object_], rows: NDArray[np.int64]
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the shapes that a tile sees, at every place where the world is repeated, and the row of each."""
    west, _, east, _ = shapely.bounds(shapes).T
    seen, owners = [], []
    for copy in COPIES:
        shift = np.array([float(copy * (EXTENT << tile.z)), 0.0])
        there = (west + shift[0] <= EXTENT + BUFFER) & (east + shift[0] >= -BUFFER)
        seen.append(shapes[there] if copy == 0 else shapely.transform(shapes[there], partial(np.add, shift)))
        owners.append(rows[there])
    return np.concatenate(seen), np.concatenate(owners)


def _on_units(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes with their vertices on whole units, and valid; the slow way, by snapping, where rounding breaks."""
    rounded: NDArray[np.object_] = shapely.transform(shapes, np.round)
    broken = ~shapely.is_valid(rounded)
    rounded[broken] = _valid(shapely.set_precision(shapes[broken], 1.0))
    return rounded
