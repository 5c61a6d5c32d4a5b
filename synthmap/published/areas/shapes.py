"""Shapes that people draw or send: checked, mended, in degrees of WGS 84 and cut at the antimeridian."""

import json
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
from synthmap.published.boxes import crs_code

VERTICES = 100_000  # of all shapes together: bounds the seconds that their points take
FEATURES = 10_000
_FARTHEST = 540.0  # degrees east or west that a shape across the antimeridian may be written with
_CRS = "its coordinate reference system must be"
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
        If there are too many geometries or vertices, none at all, or one has no place on the globe.
    """
    if len(geometries) > FEATURES:
        raise QueryError(f"area must have at most {FEATURES:,} features; simplify it")
    flat = shapely.force_2d(geometries[~(shapely.is_missing(geometries) | shapely.is_empty(geometries))])
    _countable(flat)
    placed = _in_degrees(flat, crs)
    parts = shapely.get_parts(placed)
    while (shapely.get_type_id(parts) >= _COLLECTIONS).any():
        parts = shapely.get_parts(parts)
    _on_the_globe(parts)
    notes = []
    broken = ~shapely.is_valid(parts)
    if broken.any():
        parts = np.concatenate([parts[~broken], *(_mended(one) for one in parts[broken])])
        notes.append("Self-intersections were mended: what lies in an odd number of rings is inside.")
    parts = within_180(parts)
    if not parts.size:
        raise QueryError("area must have a geometry that is not empty")
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


def _in_degrees(geometries: NDArray[np.object_], crs: Any) -> NDArray[np.object_]:
    """Return geometries in WGS 84; in degrees already, they may go beyond 180."""
    try:
        known = pyproj.CRS.from_user_input(crs)
    except ProjError:
        raise QueryError(f"area: {_CRS} one that PROJ knows; save it in WGS 84") from None
    if known.is_geographic and "WGS 84" in known.name:
        return geometries
    if not (known.is_geographic or known.is_projected):
        raise QueryError(f"area: {_CRS} one of a map or of degrees; save it in WGS 84")
    transformer = pyproj.Transformer.from_crs(known, "OGC:CRS84", always_xy=True)

    def moved(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(transformer.transform(xy[:, 0], xy[:, 1]))

    try:
        return np.asarray(shapely.transform(geometries, moved), object)
    except (ProjError, ShapelyError):
        raise QueryError("area must lie where its coordinate reference system is defined") from None


def _on_the_globe(parts: NDArray[np.object_]) -> None:
    """Refuse coordinates that are none."""
    xy = shapely.get_coordinates(parts)
    if not np.isfinite(xy).all() or (np.abs(xy[:, 0]) > _FARTHEST).any() or (np.abs(xy[:, 1]) > 90.0).any():
        raise QueryError(
            "area must have longitudes between -180 and 180 (across the antimeridian: up to 540) and latitudes between "
            "-90 and 90, in degrees, longitude first; a file must state any other coordinate reference system"
        )


def _mended(shape: shapely.Geometry) -> NDArray[np.object_]:
    """Return what an invalid geometry encloses; nothing if that is nothing."""
    parts = shapely.get_parts(shapely.get_parts(shapely.make_valid(shape)))
    return np.asarray(parts[shapely.get_dimensions(parts) == shapely.get_dimensions(shape)], object)


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


def whole(geometry: shapely.Geometry) -> tuple[float, float, float, float]:
    """Return west, south, east, north of a geometry; west is above east where it crosses the antimeridian."""
    bounds = shapely.bounds(shapely.get_parts(geometry))
    west, south, east, north = geometry.bounds
    order = np.argsort(bounds[:, 0], kind="stable")
    reach = np.maximum.accumulate(bounds[order, 2])
    gaps = bounds[order[1:], 0] - reach[:-1]
    if gaps.size and gaps.max() > 360.0 - (east - west):  # the emptiest longitudes are not those at 180
        at = int(gaps.argmax())
        west, east = float(bounds[order[at + 1], 0]), float(reach[at])
    return west, south, east, north
