"""Shapes that people draw or send: checked, mended, in degrees of WGS 84 and cut at the antimeridian."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyproj
import shapely
from numpy.typing import NDArray
from pyproj.exceptions import ProjError
from shapely.errors import ShapelyError

from synthmap.errors import QueryError
from synthmap.published.areas.antimeridian import the_short_way, unwound, within_180
from synthmap.published.areas.mending import bounded, mended
from synthmap.published.boxes import crs_code

VERTICES = 100_000  # of all shapes together: bounds the seconds that their points take
FEATURES = 10_000
_FARTHEST = 540.0  # degrees east or west that a shape across the antimeridian may be written with
_FAR = 1e12  # in the units of any map
_UNDEFINED = "area must lie where its coordinate reference system is defined"
_CRS = "its coordinate reference system must be"
_EDGE_M = 1_000.0  # an edge of so many metres bends by some centimetres from one projection to another
_SHORT = "Edges longer than 180° of longitude were taken the short way, across the antimeridian."
_DEPTH = 20  # of collections in collections


@dataclass(frozen=True)
class Shape:
    """Simple geometries in WGS 84, longitude first, between -180 and 180 degrees.

    Attributes
    ----------
    parts : ndarray of shapely.Geometry
        Points, lines and valid polygons, none of them empty.
    description : str
    notes : tuple of str
        What was changed about what was sent.
    """

    parts: NDArray[np.object_]
    description: str
    notes: tuple[str, ...] = ()

    @property
    def flatter(self) -> bool:
        """Whether it has polygons and also points or lines."""
        dimensions = shapely.get_dimensions(self.parts)
        return bool((dimensions == 2).any() and (dimensions < 2).any())

    def polygons(self) -> shapely.Geometry:
        """Return its polygons as one.

        Raises
        ------
        QueryError
            If it has none.
        """
        flat = self.parts[shapely.get_dimensions(self.parts) == 2]
        if not flat.size:
            raise QueryError("area must have a polygon; around points and lines give buffer_m, in metres")
        return shapely.union_all(flat)


def make_shape(geometries: NDArray[np.object_], description: str, crs: Any = "OGC:CRS84") -> Shape:
    """Return geometries, given in a CRS with x first, as a shape.

    Self-intersections are mended, heights left out.

    Raises
    ------
    QueryError
        If there are too many geometries, vertices or edges that may cross, none at all, or one has no place on the
        globe.
    """
    if len(geometries) > FEATURES:
        raise QueryError(f"area must have at most {FEATURES:,} features; simplify it")
    flat = shapely.force_2d(geometries[~(shapely.is_missing(geometries) | shapely.is_empty(geometries))])
    _countable(flat)
    parts = shapely.get_parts(flat)
    while (shapely.get_type_id(parts) >= _COLLECTIONS).any():
        parts = shapely.get_parts(parts)
    _placed(parts, _FAR, _FAR)
    parts, turned = _in_degrees(parts, crs)
    _on_the_globe(parts)
    parts = _once(parts)
    bounded(parts)
    notes = [_SHORT] if turned else []
    broken = ~shapely.is_valid(parts)
    if broken.any():
        solid = broken & (shapely.get_dimensions(parts) == 2)  # a broken line is but a point
        parts = np.concatenate([parts[~broken], *map(mended, parts[solid])])
        notes.append("Self-intersections were mended: what lies in an odd number of rings is inside.")
    parts = within_180(parts)
    if not parts.size:
        raise QueryError("area must have a geometry that is not empty; what rings enclose twice is outside")
    return Shape(parts, description, tuple(notes))


_COLLECTIONS = 4  # from this type on, geometries have parts


def read_geojson(found: Any, description: str = "drawn area") -> Shape:
    """Return a GeoJSON geometry, Feature or FeatureCollection, as `json.loads` returns it, as a shape.

    Raises
    ------
    QueryError
        If it is none, or `make_shape` refuses it.
    """
    crs = _stated_crs(found)
    geometries = list(_geometries(found, 0))
    if len(geometries) > FEATURES:
        raise QueryError(f"area must have at most {FEATURES:,} features; simplify it")
    try:
        made = shapely.from_geojson([json.dumps(one, allow_nan=False) for one in geometries])
    except (ShapelyError, ValueError, RecursionError):
        raise QueryError("area must be GeoJSON: coordinates must be numbers, and rings closed") from None
    return make_shape(np.asarray(made, object), description, crs)


def _geometries(found: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the geometries of GeoJSON; a feature may have none."""
    if depth > _DEPTH:
        raise QueryError(f"area must be GeoJSON with collections no deeper than {_DEPTH}")
    match found:
        case {"type": "FeatureCollection", "features": list(features)}:
            if len(features) > FEATURES:
                raise QueryError(f"area must have at most {FEATURES:,} features; simplify it")
            for one in features:
                yield from _geometries(one, depth + 1)
        case {"type": "Feature", "geometry": None}:
            return
        case {"type": "Feature", "geometry": dict(geometry)}:
            yield from _geometries(geometry, depth + 1)
        case {"type": "GeometryCollection", "geometries": list(parts)}:
            for one in parts:
                yield from _geometries(one, depth + 1)
        case {"type": "Point" | "MultiPoint" | "LineString" | "MultiLineString" | "Polygon" | "MultiPolygon"}:
            yield {"type": found["type"], "coordinates": found.get("coordinates")}
        case _:
            raise QueryError("area must be a GeoJSON geometry, Feature or FeatureCollection")


def _stated_crs(found: Any) -> str:
    """Return the CRS that GeoJSON of 2008 states; without one it is WGS 84 (RFC 7946)."""
    match found:
        case {"crs": None}:
            return "OGC:CRS84"
        case {"crs": {"properties": {"name": str(name)}}}:
            return crs_code(name)
        case {"crs": _}:
            raise QueryError('area: crs must be {"type": "name", "properties": {"name": …}}, or left out')
    return "OGC:CRS84"


def _countable(geometries: NDArray[np.object_]) -> None:
    vertices = int(shapely.get_num_coordinates(geometries).sum())
    if vertices > VERTICES:
        raise QueryError(f"area must have at most {VERTICES:,} vertices; simplify it")


def _in_degrees(parts: NDArray[np.object_], crs: Any) -> tuple[NDArray[np.object_], bool]:
    """Return simple geometries in WGS 84, perhaps beyond 180, and whether edges were turned the short way."""
    try:
        known = pyproj.CRS.from_user_input(crs)
    except ProjError:
        raise QueryError(f"area: {_CRS} one that PROJ knows; save it in WGS 84") from None
    if not (known.is_geographic or known.is_projected):
        raise QueryError(f"area: {_CRS} one of a map or of degrees; save it in WGS 84")
    unit, turned = known.axis_info[0].unit_conversion_factor, False  # radians or metres
    if known.is_geographic:
        parts, turned = the_short_way(parts, turn=2.0 * math.pi / unit)
        if "WGS 84" in known.name:
            return parts, turned
    else:
        parts = _divided(parts, _EDGE_M / unit)
    transformer = pyproj.Transformer.from_crs(known, "OGC:CRS84", always_xy=True)

    def moved(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(transformer.transform(xy[:, 0], xy[:, 1]))

    try:
        parts = np.asarray(shapely.transform(parts, moved), object)
    except (ProjError, ShapelyError):
        raise QueryError(_UNDEFINED) from None
    _on_the_globe(parts)
    return unwound(parts), turned


def _divided(parts: NDArray[np.object_], edge: float) -> NDArray[np.object_]:
    """Return geometries whose edges, straight on their map, are short enough to be so in degrees, too."""
    length = float(shapely.length(parts).sum())
    return np.asarray(shapely.segmentize(parts, max(edge, length / VERTICES)), object)


def _on_the_globe(parts: NDArray[np.object_]) -> None:
    """Refuse coordinates that are none."""
    _placed(parts, _FARTHEST, 90.0)


def _placed(parts: NDArray[np.object_], x: float, y: float) -> None:
    """Refuse coordinates that are beyond x or y, or no numbers."""
    if not (np.abs(shapely.get_coordinates(parts)) <= (x, y)).all():
        raise QueryError(
            "area must have longitudes between -180 and 180 (across the antimeridian: up to 540) and latitudes between "
            "-90 and 90, in degrees, longitude first; a file must state any other coordinate reference system"
        )


def _once(parts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return each geometry once: files may tell the same for each of many years."""
    return parts[np.sort(np.unique(shapely.to_wkb(parts), return_index=True)[1])]
