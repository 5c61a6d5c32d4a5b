"""The tile grid WebMercatorQuad: where a point lies in the world's square, and in one tile of it."""

from typing import NamedTuple

import numpy as np
from morecantile import TileMatrixSet, tms
from numpy.typing import NDArray

from synthmap.published.extents import Bounds

TMS: TileMatrixSet = tms.get("WebMercatorQuad")
MAXZOOM = 14  # a unit of a tile is then 0.6 m; clients enlarge these tiles when they zoom in further
EXTENT = 4096  # units along the side of a tile
BUFFER = 128  # units that a tile reaches beyond its border, so that circles and outlines there are drawn whole
LATITUDE = 85.0511287798066  # where the world's square ends
COPIES = (-1, 0, 1)  # the world lies beside itself: what crosses the antimeridian is seen at both ends


def world(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return x and y in the world's square, 0 to 1, from its north-western corner.

    Longitudes beyond ±180 lie beyond 0 to 1. Latitudes beyond ±85.0511 are put on the border of the square.
    """
    x = np.asarray(longitude, np.float64) / 360 + 0.5
    angle = np.radians(np.clip(latitude, -LATITUDE, LATITUDE))
    y = 0.5 - np.arcsinh(np.tan(angle)) / (2 * np.pi)
    return x, np.clip(y, 0.0, 1.0)


def point(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return x and y of points, at least 0 and below 1, so that each lies in one tile of a zoom."""
    x, y = world(longitude, latitude)
    return x % 1.0, np.minimum(y, np.nextafter(1.0, 0.0))


def shown(bounds: Bounds) -> Bounds:
    """Return what of an extent tiles show; west may be above east."""
    west, south, east, north = bounds
    return west, min(max(south, -LATITUDE), LATITUDE), east, min(max(north, -LATITUDE), LATITUDE)


def flat(bounds: Bounds) -> Bounds:
    """Return an extent for those who know none across the antimeridian: all round where something may lie there."""
    west, south, east, north = bounds
    return bounds if 0 <= east - west <= 180 else (-180.0, south, 180.0, north)


class Tile(NamedTuple):
    """A tile: zoom, column from the west, row from the north."""

    z: int
    x: int
    y: int

    @property
    def exists(self) -> bool:
        """Whether the grid has this tile, down to `MAXZOOM`."""
        return 0 <= self.z <= MAXZOOM and 0 <= self.x < 1 << self.z and 0 <= self.y < 1 << self.z

    def box(self, buffer: float = BUFFER) -> tuple[float, float, float, float]:
        """Return the smallest x and y and the largest x and y, with `buffer` units around."""
        side, more = 2.0**-self.z, buffer / EXTENT
        return (self.x - more) * side, (self.y - more) * side, (self.x + 1 + more) * side, (self.y + 1 + more) * side

    def holds(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points lie in this tile; a point lies in one tile of a zoom."""
        scale = float(1 << self.z)
        found: NDArray[np.bool_] = (np.floor(x * scale) == self.x) & (np.floor(y * scale) == self.y)
        return found

    def meets(self, boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which boxes (…, 4), anywhere round the globe, touch this tile or its buffer."""
        west, north, east, south = self.box()
        found: NDArray[np.bool_] = (boxes[:, 1] <= south) & (boxes[:, 3] >= north)
        low, high = boxes[found, 0], boxes[found, 2]
        across = np.zeros(low.size, np.bool_)
        for copy in COPIES:
            across |= (low <= east + copy) & (high >= west + copy)
        found[found] = across
        return found

    def touched(self, lines: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which lines (…, 2 ends, 2 coordinates), round the globe, reach into this tile or its buffer."""
        low, high = np.minimum(lines[:, 0], lines[:, 1]), np.maximum(lines[:, 0], lines[:, 1])
        near = np.flatnonzero(self.meets(np.hstack([low, high])))
        found = np.zeros(len(lines), np.bool_)
        for copy in COPIES:
            start, stop = inside(lines[near] - (copy, 0), self.box())
            found[near] |= start <= stop
        return found

    def local(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates (…, 2) in units of this tile, from its north-western corner, not rounded."""
        return (xy * float(1 << self.z) - (self.x, self.y)) * EXTENT


def cells(x: NDArray[np.float64], y: NDArray[np.float64], zoom: int) -> NDArray[np.int64]:
    """Return the tile of a zoom that holds each point, as row × 2^zoom + column."""
    side = 1 << zoom
    found: NDArray[np.int64] = np.floor(y * side).astype(np.int64) * side + np.floor(x * side).astype(np.int64)
    return found


def inside(lines: NDArray[np.float64], box: tuple[float, float, float, float]) -> tuple[NDArray[np.float64], ...]:
    """Return from where to where each line lies in a box, as shares of its length; start above stop: nowhere.

    Notes
    -----
    Liang and Barsky's clipping: along each axis the line is inside from one crossing to the other.
    """
    start, stop = np.zeros(len(lines)), np.ones(len(lines))
    for axis in (0, 1):
        at, step = lines[:, 0, axis], lines[:, 1, axis] - lines[:, 0, axis]
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (box[axis] - at) / step, (box[axis + 2] - at) / step
        along = step == 0
        within = (at >= box[axis]) & (at <= box[axis + 2])
        start = np.maximum(start, np.where(along, np.where(within, 0.0, 2.0), np.fmin(one, other)))
        stop = np.minimum(stop, np.where(along, 1.0, np.fmax(one, other)))
    return start, stop
