"""Polygons of zones, cut to a tile."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.published.places import Places
from synthmap.published.tiles_grid import BUFFER, COPIES, EXTENT, LATITUDE, Tile, world

_TOGETHER = 10_000  # shapes read at once


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
        shapes = _valid(shapely.simplify(shapes, tolerance))
        copies = np.concatenate([shapely.transform(shapes, _moved(copy * (EXTENT << tile.z))) for copy in COPIES])
        owner = np.tile(rows, len(COPIES))
        box = shapely.box(-BUFFER, -BUFFER, EXTENT + BUFFER, EXTENT + BUFFER)
        met = shapely.intersects(copies, box)
        cut = _valid(shapely.set_precision(shapely.intersection(copies[met], box), 1.0))
        parts, index = shapely.get_parts(cut, return_index=True)
        solid = (shapely.get_type_id(parts) == shapely.GeometryType.POLYGON) & ~shapely.is_empty(parts)
        zone, group = np.unique(owner[met][index[solid]], return_inverse=True)
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
        shapes = places.geometry(rows)
    except shapely.GEOSException:
        raise ReleaseCorruptError("every zone of a release must have a geometry; publish it again") from None
    west, _, east, _ = shapely.bounds(shapes).T
    wide = np.flatnonzero(east - west > 180)
    if wide.size:
        joined = shapely.transform(
            shapes[wide], lambda at: np.column_stack([at[:, 0] + 360 * (at[:, 0] < 0), at[:, 1]])
        )
        west, _, east, _ = shapely.bounds(joined).T
        shapes[wide] = np.where(east - west < 180, joined, shapes[wide])
    return shapes


def _within_latitudes(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes cut where the world's square ends."""
    _, south, _, north = shapely.bounds(shapes).T
    beyond = (south < -LATITUDE) | (north > LATITUDE)
    shapes[beyond] = shapely.intersection(_valid(shapes[beyond]), shapely.box(-540, -LATITUDE, 540, LATITUDE))
    return shapes


def _valid(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes with the invalid ones made valid."""
    broken = ~shapely.is_valid(shapes)
    shapes[broken] = shapely.make_valid(shapes[broken])
    return shapes


def _moved(east: float) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return what moves coordinates."""
    shift = np.array([east, 0.0])
    return lambda at: at + shift
