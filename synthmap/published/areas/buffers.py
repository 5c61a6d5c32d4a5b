"""What lies within metres of points, lines and polygons: distances in a projection around them, true over any edge."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.geography.sphere import EARTH_KM, arc_km, unit_vectors
from synthmap.published.areas.antimeridian import within_180
from synthmap.published.areas.mending import edges, meeting

FARTHEST_M = 1_000_000.0  # of a buffer, and of a shape from its middle: distances are right to half a per cent
_EDGE = 0.1  # degrees: longer edges are divided, as they are straight in degrees, not in the projection
_VERTICES = 1_000_000  # that dividing adds at most
_OUTLINED = 2_000  # parts whose outlines are joined for a picture
_NEAR = 500_000  # pairs of edges of single parts that are so near that their outlines may cross: a second, and 100 MB
_ROUGH = 0.01  # of a distance: what GEOS, too, leaves out of a line before it draws the outline
_SLIT_M = 0.5
_QUARTER = 32  # vertices of a quarter of a circle


@dataclass(frozen=True)
class Ring:
    """What lies between two distances from something.

    Attributes
    ----------
    inside : ndarray of bool, shape (points,)
        Which of the points asked about do.
    """

    inside: NDArray[np.bool_]
    _middle: tuple[float, float]
    _parts: NDArray[np.object_]
    _buffer_m: float
    _inner_m: float

    def outline(self) -> shapely.Geometry | None:
        """Return it as polygons in degrees, cut at the antimeridian; None where that would take too long.

        That is where it is made of too many parts, or where a line runs to and fro too often within its distance.
        """
        if self._parts.size > _OUTLINED or not all(map(self._drawable, {self._buffer_m, self._inner_m} - {0.0})):
            return None
        outline = shapely.union_all(shapely.buffer(self._parts, self._buffer_m, quad_segs=_QUARTER))
        if self._inner_m > 0:
            inner = shapely.union_all(shapely.buffer(self._parts, self._inner_m, quad_segs=_QUARTER))
            outline = shapely.difference(outline, inner)
        return self._in_degrees(outline)

    def _drawable(self, distance: float) -> bool:
        """Return whether the outlines of single parts cross themselves seldom enough; one of all of them does."""
        near = 0
        for part in self._parts:
            lines = shapely.get_rings(part) if shapely.get_dimensions(part) == 2 else np.array([part], object)
            rough = shapely.simplify(lines, _ROUGH * distance)
            for one, _ in meeting(edges(rough, distance), distance):
                near += one.size
                if near > _NEAR:
                    return False
        return True

    @cached_property
    def _projection(self) -> pyproj.Transformer:
        return _projection(*self._middle)

    def _in_degrees(self, outline: shapely.Geometry) -> shapely.Geometry:
        """Return polygons of the projection in degrees.

        The meridian opposite to the middle is a straight line in the projection, behind each pole. A slit along it
        makes what reaches over a pole a polygon in degrees, too.
        """
        longitude = self._middle[0]
        reach = 4.0 * FARTHEST_M
        for pole, sign in ((90.0, 1.0), (-90.0, -1.0)):
            y = float(self._projection.transform(longitude, pole)[1])
            if abs(y) < reach:
                slit = shapely.box(-_SLIT_M, min(y, sign * reach), _SLIT_M, max(y, sign * reach))
                outline = shapely.difference(outline, slit)
        outline = shapely.segmentize(outline, max(1_000.0, self._buffer_m / _QUARTER))

        def moved(xy: NDArray[np.float64]) -> NDArray[np.float64]:
            x, y = self._projection.transform(xy[:, 0], xy[:, 1], direction="INVERSE")
            return np.column_stack([longitude + (np.asarray(x) - longitude + 180.0) % 360.0 - 180.0, y])

        parts = shapely.make_valid(shapely.get_parts(shapely.transform(outline, moved)))
        parts = within_180(shapely.get_parts(shapely.get_parts(parts)))
        return shapely.union_all(parts[shapely.get_dimensions(parts) == 2])


def around(
    parts: NDArray[np.object_],
    longitude: NDArray[np.float64],
    latitude: NDArray[np.float64],
    *,
    buffer_m: float,
    inner_m: float = 0.0,
) -> Ring:
    """Return which points lie within `buffer_m` metres of any part, and not within `inner_m` of one.

    Parameters
    ----------
    parts : ndarray of shapely.Geometry
        Points, lines and polygons, degrees of WGS 84.
    longitude, latitude : ndarray of float64, shape (points,)
        Degrees; NaN is nowhere.
    buffer_m, inner_m : float
        Metres; an `inner_m` of 0 leaves nothing out.

    Raises
    ------
    QueryError
        If a distance is out of range, or the parts lie farther apart than distances can be measured in one projection.

    Notes
    -----
    Distances are measured in an azimuthal equidistant projection of the WGS 84 ellipsoid around the middle of the
    parts; at a distance r from it they are too long across by r²/6R², at most 0.4 %.
    """
    if not 0 < buffer_m <= FARTHEST_M:
        raise QueryError(f"buffer_m ({buffer_m:g}) must be above 0 and at most {FARTHEST_M:,.0f} metres")
    if not 0 <= inner_m < buffer_m:
        raise QueryError(f"inner_m ({inner_m:g}) must be at least 0 and below buffer_m")
    step = max(_EDGE, float(shapely.length(parts).sum()) / _VERTICES)
    parts = np.asarray(shapely.segmentize(parts, step), object)
    middle, radius_km = _middle(shapely.get_coordinates(parts))
    if 1e3 * radius_km > FARTHEST_M:
        raise QueryError(
            f"area must lie within {FARTHEST_M / 1e3:,.0f} km of its middle for a buffer around it; choose a part of it"
        )
    projection = _projection(*middle)

    def moved(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(projection.transform(xy[:, 0], xy[:, 1]))

    flat = np.asarray(shapely.transform(parts, moved), object)
    inside = np.zeros(longitude.size, np.bool_)
    points = unit_vectors(longitude, latitude)
    centre = unit_vectors(np.array([middle[0]]), np.array([middle[1]]))[0]
    near = np.flatnonzero(arc_km(points, centre) <= 1.01 * (radius_km + buffer_m / 1e3) + 1.0)  # NaN is not near
    projected = shapely.points(moved(np.column_stack([longitude[near], latitude[near]])))
    tree = shapely.STRtree(flat)
    inside[near[np.unique(tree.query(projected, "dwithin", buffer_m)[0])]] = True
    if inner_m > 0:
        inside[near[np.unique(tree.query(projected, "dwithin", inner_m)[0])]] = False
    return Ring(inside, middle, flat, buffer_m, inner_m)


def _middle(xy: NDArray[np.float64]) -> tuple[tuple[float, float], float]:
    """Return a point in the middle of others, degrees, and how far the farthest is from it, km."""
    vectors = unit_vectors(xy[:, 0], xy[:, 1])
    middle = vectors.min(axis=0) + vectors.max(axis=0)
    length = float(np.linalg.norm(middle))
    if length < 1e-6:  # they surround the globe
        return (0.0, 0.0), math.pi * EARTH_KM
    middle /= length
    longitude, latitude = math.degrees(math.atan2(middle[1], middle[0])), math.degrees(math.asin(middle[2]))
    return (longitude, latitude), float(arc_km(vectors, middle).max())


def _projection(longitude: float, latitude: float) -> pyproj.Transformer:
    local = pyproj.CRS.from_dict(
        {"proj": "aeqd", "lon_0": longitude, "lat_0": latitude, "datum": "WGS84", "units": "m"}
    )
    return pyproj.Transformer.from_crs("OGC:CRS84", local, always_xy=True)
