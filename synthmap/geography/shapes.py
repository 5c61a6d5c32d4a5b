"""Geometries of zones: a point inside each, and polygons to draw, in WGS 84."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyproj
import shapely
from numpy.typing import NDArray

from synthmap.errors import GeographyError
from synthmap.geography.columns import Content, readable
from synthmap.geography.zones import some_of

_POINT, _POLYGON, _MULTIPOINT, _MULTIPOLYGON = 0, 3, 4, 6


def points_inside(path: Path, ids: pa.StringArray, content: Content) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of a point inside every geometry, degrees, WGS 84.

    The point is found in the layer's own CRS and then transformed; a centroid may lie outside.

    Raises
    ------
    GeographyError
        If there is no geometry or no CRS, or a geometry is missing, empty or neither points nor polygons.
    """
    geometry = _checked(path, ids, content)
    with readable(path):
        inner = shapely.point_on_surface(geometry)
        return _degrees(content.crs, np.column_stack([shapely.get_x(inner), shapely.get_y(inner)]))


def polygons(path: Path, ids: pa.StringArray, content: Content) -> pa.Array | None:
    """Return the geometries as WKB in WGS 84, two-dimensional and valid; None if all are points.

    Raises
    ------
    GeographyError
        As `points_inside`, and if a geometry cannot be drawn in degrees.
    """
    geometry = _checked(path, ids, content)
    flat = np.isin(shapely.get_type_id(geometry), (_POLYGON, _MULTIPOLYGON))
    if not flat.any():
        return None
    with readable(path):
        drawn = shapely.transform(
            shapely.force_2d(geometry), lambda xy: np.column_stack(_degrees(content.crs, xy)), include_z=False
        )
        broken = flat & ~shapely.is_valid(drawn)
        drawn[broken] = [_mended(shape) for shape in drawn[broken]]
    lost = shapely.is_missing(drawn) | shapely.is_empty(drawn) | ~np.isfinite(shapely.bounds(drawn)).all(axis=1)
    if lost.any():
        raise GeographyError(
            f"{path}: every zone must have an area on the globe; not so {some_of(ids.filter(pa.array(lost)))}"
        )
    return pa.array(shapely.to_wkb(drawn), pa.binary())


def _mended(shape: shapely.Geometry) -> shapely.Geometry:
    """Return the area of an invalid polygon as a valid one."""
    parts = shapely.get_parts(shapely.make_valid(shape))
    parts = shapely.get_parts(parts)  # of collections within
    return shapely.union_all(parts[shapely.get_dimensions(parts) == 2])


def _checked(path: Path, ids: pa.StringArray, content: Content) -> NDArray[np.object_]:
    """Return the geometries after checking that each is there and of a known kind."""
    geometry = content.geometry
    if geometry is None:
        raise GeographyError(f"{path} must have a geometry; without one name zones.longitude and zones.latitude")
    if content.crs is None:
        raise GeographyError(f"{path} must say its coordinate reference system (CRS); set it and save the file again")
    bare = ids.filter(pa.array(shapely.is_missing(geometry) | shapely.is_empty(geometry)))
    if len(bare):
        raise GeographyError(f"{path}: zone without coordinates: {len(bare)} geometries are empty: {some_of(bare)}")
    kinds = (_POINT, _POLYGON, _MULTIPOINT, _MULTIPOLYGON)
    odd = ids.filter(pa.array(~np.isin(shapely.get_type_id(geometry), kinds)))
    if len(odd):
        raise GeographyError(f"{path}: zones must be points or polygons; not so {some_of(odd)}")
    return geometry


def _degrees(crs: object, xy: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of points in `crs`."""
    known = pyproj.CRS.from_user_input(crs)
    x, y = xy[:, 0], xy[:, 1]
    if known.to_epsg() != 4326:  # GeoPandas and GDAL keep longitude first, whatever that CRS says
        x, y = pyproj.Transformer.from_crs(known, 4326, always_xy=True).transform(x, y)
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
