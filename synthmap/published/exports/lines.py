"""What a flow looks like on a map: a line between internal points, or a point where both are one."""

import numpy as np
import shapely
from numpy.typing import NDArray

from synthmap.geography.sphere import arc_km, unit_vectors
from synthmap.published.places import Places


def desire_lines(places: Places, origin: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return one geometry a flow, in degrees, WGS 84.

    A line of no length is invalid, so a flow within a zone, or between zones of one point, is a point. A flow
    from everywhere else has none. One that takes the short way over the antimeridian is cut there.

    Parameters
    ----------
    places : Places
    origin, destination : ndarray of int64, shape (flows,)
        Rows of `places`; -1 is everywhere else.
    """
    ends = np.stack([_points(places, origin), _points(places, destination)], axis=1)
    x = ends[:, :, 0]  # what lies on the antimeridian lies on either side of it: take that of the other end
    for one, other in ((0, 1), (1, 0)):
        x[:, one] = np.where(np.abs(x[:, one]) == 180, np.copysign(180, x[:, other]), x[:, one])
    out = np.full(len(ends), None, object)
    known = (origin >= 0) & (destination >= 0)
    same = (ends[:, 0] == ends[:, 1]).all(axis=1)
    across = np.abs(x[:, 0] - x[:, 1]) > 180
    out[known & same] = shapely.points(ends[known & same, 0])
    out[known & ~same & ~across] = shapely.linestrings(ends[known & ~same & ~across])
    out[known & across] = _cut(ends[known & across])
    return out


def _points(places: Places, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return internal points, shape (rows, 2)."""
    return np.stack([places.longitude[rows], places.latitude[rows]], axis=1)


def _cut(ends: NDArray[np.float64]) -> NDArray[np.object_]:
    """Return lines over the antimeridian as two lines each, one on either side."""
    side = np.where(ends[:, 0, 0] > 0, 180.0, -180.0)  # the side on which the first end lies
    length = 360 - np.abs(ends[:, 0, 0] - ends[:, 1, 0])
    share = (180 - np.abs(ends[:, 0, 0])) / length
    latitude = ends[:, 0, 1] + share * (ends[:, 1, 1] - ends[:, 0, 1])
    first = np.stack([ends[:, 0], np.stack([side, latitude], axis=1)], axis=1)
    second = np.stack([np.stack([-side, latitude], axis=1), ends[:, 1]], axis=1)
    halves = np.stack([shapely.linestrings(first), shapely.linestrings(second)], axis=1)
    lines: NDArray[np.object_] = shapely.multilinestrings(halves)
    return lines


def distance_km(places: Places, origin: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return great-circle km between internal points, shape (flows,), to the metre; NaN where an end is elsewhere."""
    km = arc_km(*(unit_vectors(*_points(places, end).T) for end in (origin, destination)))
    out: NDArray[np.float64] = np.where((origin < 0) | (destination < 0), np.nan, np.round(km, 3))
    return out
