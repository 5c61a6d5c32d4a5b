"""Polygons that cross themselves: mended, within bounds of time and memory, which grow with how often edges cross."""

from collections.abc import Iterator

import numpy as np
import shapely
from numpy.typing import NDArray

from synthmap.errors import QueryError

CROSSING = 50_000  # pairs of edges: mending and joining shapes takes seconds, and 200 MB, for so many
NEAR = 10_000_000  # pairs of edges whose boxes meet: looking at so many takes some seconds
_LONG = 4.0  # times the mean edge: longer ones are divided, as their boxes are mostly empty
_AT_ONCE = 1_000_000  # pairs looked at together

Lines = NDArray[np.float64]  # shape (edges, 2 ends, 2)


def bounded(parts: NDArray[np.object_]) -> None:
    """Refuse lines and polygons that cross each other, or themselves, too often to be mended or joined.

    Parameters
    ----------
    parts : ndarray of shapely.Geometry
        Simple geometries with finite coordinates.

    Raises
    ------
    QueryError
        If more than `CROSSING` pairs of edges cross, or more than `NEAR` are so near that they might.
    """
    ends, crossing, near = edges(parts), 0, 0
    for one, other in meeting(ends):
        crossing += int(_cross(ends[one], ends[other]).sum())
        near += one.size
        if crossing > CROSSING or near > NEAR:
            raise QueryError(
                f"area must have edges that cross each other less often (at most {CROSSING:,} times); simplify it, or "
                "send fewer shapes"
            )


def mended(polygon: shapely.Geometry) -> NDArray[np.object_]:
    """Return valid polygons of what lies in an odd number of a polygon's rings; none if that is nothing.

    A hole that is given twice counts once. `shapely.make_valid` takes a minute for a ring of 300 edges in a tangle.
    """
    rings = np.append(polygon.exterior, _distinct(shapely.get_rings(polygon)[1:]))
    faces = shapely.get_parts(shapely.polygonize([shapely.union_all(rings)]))
    at = shapely.get_coordinates(shapely.point_on_surface(faces))
    every = shapely.multipolygons(shapely.polygons(rings))
    shapely.prepare(every)  # it is then asked by counting edges on the way out, whether it is valid or not,
    shapely.contains_xy(every, 0.0, 0.0)  # but for the first time, when GEOS looks whether any polygon has the point
    inside = shapely.contains_xy(every, at[:, 0], at[:, 1])
    return np.asarray(shapely.get_parts(shapely.coverage_union_all(faces[inside])), object)


def _distinct(rings: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return rings without those that are others again, from another vertex on or the other way round."""
    _, first = np.unique(shapely.to_wkb(shapely.normalize(shapely.polygons(rings))), return_index=True)
    return rings[np.sort(first)]


def edges(parts: NDArray[np.object_], least: float = 0.0) -> Lines:
    """Return the edges of lines and polygons; those much longer than others are divided, if longer than `least`."""
    dimensions = shapely.get_dimensions(parts)
    lines = np.concatenate([parts[dimensions == 1], shapely.get_rings(parts[dimensions == 2])])
    length, vertices = float(shapely.length(lines).sum()), int(shapely.get_num_coordinates(lines).sum())
    if not length > 0.0:
        return np.empty((0, 2, 2))
    lines = shapely.segmentize(lines, max(_LONG * length / vertices, least))
    xy, line = shapely.get_coordinates(lines, return_index=True)
    return np.asarray(np.stack([xy[:-1], xy[1:]], axis=1)[line[1:] == line[:-1]])


def meeting(ends: Lines, reach: float = 0.0) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs of edges whose boxes, each wider by `reach` on all sides, meet; each pair once, some at a time."""
    low, high = ends.min(axis=1) - reach, ends.max(axis=1) + reach
    boxes = shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1])
    tree, step = shapely.STRtree(boxes), max(1, _AT_ONCE // max(1, len(ends)))
    for start in range(0, len(ends), step):
        one, other = tree.query(boxes[start : start + step])
        one += start
        yield one[one < other], other[one < other]


def _cross(a: Lines, b: Lines) -> NDArray[np.bool_]:
    """Return which edges cross each other inside of both; what only touches takes no room."""
    return _apart(a, b) & _apart(b, a)


def _apart(line: Lines, ends: Lines) -> NDArray[np.bool_]:
    """Return whether both ends of others lie on different sides of lines."""
    step = (line[:, 1] - line[:, 0])[:, None]
    to = ends - line[:, :1]
    side = step[..., 0] * to[..., 1] - step[..., 1] * to[..., 0]
    return np.asarray((side > 0).any(axis=1) & (side < 0).any(axis=1))
