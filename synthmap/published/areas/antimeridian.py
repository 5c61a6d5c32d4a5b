"""Shapes across the antimeridian and around a pole: edges that take the short way, cuts at 180 degrees, extents."""

import math

import numpy as np
import shapely
from numpy.typing import NDArray

from synthmap.published.areas.mending import bounded, mended


def the_short_way(parts: NDArray[np.object_], turn: float = 360.0) -> tuple[NDArray[np.object_], bool]:
    """Return simple geometries whose edges of more than half a turn take the short way, and whether any had one.

    Those written with longitudes beyond 180 degrees, or with edges all round the globe, are as they are meant.

    Parameters
    ----------
    parts : ndarray of shapely.Geometry
    turn : float
        Around the globe, in the units of the longitudes.
    """
    west, _, east, _ = shapely.bounds(parts).T
    long = (east - west > turn / 2) & (np.maximum(-west, east) <= turn / 2)
    for at in np.flatnonzero(long):
        longest = max(np.abs(np.diff(xy[:, 0])).max(initial=0.0) for xy in _lines(parts[at]))
        long[at] = turn / 2 < longest < turn * (1 - 1e-9)
    return unwound(parts, turn, long), bool(long.any())


def unwound(
    parts: NDArray[np.object_], turn: float = 360.0, which: NDArray[np.bool_] | None = None
) -> NDArray[np.object_]:
    """Return simple geometries whose longitudes go on beyond half a turn where an edge would be longer than that."""
    out = parts.copy()
    west, _, east, _ = shapely.bounds(parts).T
    for at in np.flatnonzero(east - west > turn / 2 if which is None else which):
        lines = [np.column_stack([np.unwrap(xy[:, 0], period=turn), xy[:, 1]]) for xy in _lines(parts[at])]
        if shapely.get_dimensions(parts[at]) < 2:
            out[at] = shapely.LineString(lines[0])
            continue
        shell, *holes = (_around_a_pole(xy, turn) for xy in lines)
        holes = [np.add(xy, (turn * round((_middle(shell) - _middle(xy)) / turn), 0.0)) for xy in holes]
        if any(
            abs(xy[-1, 0] - xy[0, 0]) > turn / 2 for xy in lines[1:]
        ):  # at a pole, holes share an edge with the shell
            made = np.array([shapely.Polygon(xy) for xy in (shell, *holes)], object)
            bounded(made)
            solid, *hollow = (shapely.union_all(mended(one)) for one in made)
            out[at] = shapely.difference(solid, shapely.union_all(hollow))
        else:
            out[at] = shapely.Polygon(shell, holes)
    return np.asarray(shapely.get_parts(out), object)


def _lines(part: shapely.Geometry) -> list[NDArray[np.float64]]:
    """Return the coordinates of a line, or of the rings of a polygon, the outer one first."""
    rings = shapely.get_rings(part) if shapely.get_dimensions(part) == 2 else [part]
    return [shapely.get_coordinates(ring) for ring in rings]


def _middle(ring: NDArray[np.float64]) -> float:
    return float(ring[:, 0].min() + ring[:, 0].max()) / 2.0


def _around_a_pole(ring: NDArray[np.float64], turn: float) -> NDArray[np.float64]:
    """Return a ring that goes round the globe as one along the antimeridian and over the nearer pole; others as is."""
    whole_turn = turn * round((ring[-1, 0] - ring[0, 0]) / turn)
    if whole_turn == 0:
        return ring
    cut = turn * math.floor((ring[:, 0].min() + turn / 2) / turn) + turn / 2
    at = int(np.flatnonzero((ring[:-1, 0] <= cut) != (ring[1:, 0] <= cut))[0])
    (x, y), (x_end, y_end) = ring[at], ring[at + 1]
    latitude = y + (y_end - y) * (cut - x) / (x_end - x)
    pole = math.copysign(turn / 4, ring[:, 1].mean())
    rest = np.vstack([ring[at + 1 :], np.add(ring[1 : at + 1], (whole_turn, 0.0))])
    corners = [[cut + whole_turn, latitude], [cut + whole_turn, pole], [cut, pole], [cut, latitude]]
    return np.vstack([[[cut, latitude]], rest, corners])


def within_180(parts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return simple geometries cut at the antimeridian, so that all longitudes lie between -180 and 180."""
    bounds = shapely.bounds(parts)
    beyond = (bounds[:, 0] < -180.0) | (bounds[:, 2] > 180.0)
    if not beyond.any():
        return parts
    out, crossing = [parts[~beyond]], parts[beyond]
    for turn in (-360.0, 0.0, 360.0):
        window = shapely.box(turn - 180.0, -90.0, turn + 180.0, 90.0)
        pieces, of = shapely.get_parts(shapely.intersection(crossing, window), return_index=True)
        pieces, inner = shapely.get_parts(pieces, return_index=True)
        whole_ones = shapely.get_dimensions(pieces) == shapely.get_dimensions(crossing)[of[inner]]
        whole_ones &= ~shapely.is_empty(pieces)
        out.append(shapely.transform(pieces[whole_ones], lambda xy, turn=turn: xy - [turn, 0.0]))
    return np.concatenate(out)


def joined(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapes; those that span the globe only because they are cut at the antimeridian are joined beyond it."""
    out = shapes.copy()
    west, _, east, _ = shapely.bounds(shapes).T
    wide = np.flatnonzero(east - west > 180)
    if wide.size:
        moved = shapely.transform(shapes[wide], lambda at: np.column_stack([at[:, 0] + 360 * (at[:, 0] < 0), at[:, 1]]))
        west, _, east, _ = shapely.bounds(moved).T
        parts, of = shapely.get_parts(shapes[wide], return_index=True)
        left, _, right, _ = shapely.bounds(parts).T
        cut = (east - west < 180) & ~np.isin(np.arange(wide.size), of[right - left >= 360])
        out[wide[cut]] = moved[cut]
    return out


def whole(geometry: shapely.Geometry) -> tuple[float, float, float, float]:
    """Return west, south, east, north of a geometry; west is above east where it crosses the antimeridian."""
    bounds = shapely.bounds(shapely.get_parts(geometry))
    west, east = narrowest(bounds[:, 0], bounds[:, 2])
    return west, geometry.bounds[1], east, geometry.bounds[3]


def narrowest(west: NDArray[np.float64], east: NDArray[np.float64]) -> tuple[float, float]:
    """Return west and east of what some stretches span, the widest gap between them left out.

    Parameters
    ----------
    west, east : ndarray of float64, shape (stretches,)
        Degrees, from -180 on; an east beyond 180 crosses the antimeridian.

    Returns
    -------
    float, float
        West is above east if they cross the antimeridian.
    """
    beyond = east > 180.0
    low = np.concatenate([west, np.full(int(beyond.sum()), -180.0)])
    high = np.concatenate([np.minimum(east, 180.0), east[beyond] - 360.0])
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    gaps = low[1:] - reach[:-1]
    if gaps.size and gaps.max() > 360.0 - (reach[-1] - low[0]):  # the emptiest longitudes are not those at 180
        at = int(gaps.argmax())
        return float(low[at + 1]), float(reach[at])
    return float(low[0]), float(reach[-1])
