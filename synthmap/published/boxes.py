"""Boxes in any coordinate reference system, and which points lie in one."""

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from synthmap.errors import QueryError

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_NAMED = re.compile(
    r"(?:https?://www\.opengis\.net/def/crs/EPSG/[\w.]+/|EPSG:|urn:ogc:def:crs:EPSG:[\w.]*:)([0-9]{1,6})"
)
_IS_CRS84 = re.compile(
    r"https?://www\.opengis\.net/def/crs/OGC/(?:1\.3|0)/CRS84|(?:OGC:)?CRS84|urn:ogc:def:crs:OGC:.*:CRS84"
)


@dataclass(frozen=True)
class Box:
    """A box, its numbers in the order of the axes of its CRS.

    Attributes
    ----------
    bounds : tuple of float
        Least first, least second, greatest first, greatest second coordinate; a least longitude above the greatest
        crosses the antimeridian.
    crs : str
        ``OGC:CRS84`` or ``EPSG:…``.
    """

    bounds: tuple[float, float, float, float]
    crs: str

    def holds(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points, given in the box's CRS, lie in it; one without coordinates does not."""
        low, left, high, right = self.bounds
        return _between(first, low, high) & _between(second, left, right)


def _between(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    if low > high:
        return np.asarray((values >= low) | (values <= high))
    return np.asarray((values >= low) & (values <= high))


def crs_code(name: str) -> str:
    """Return ``OGC:CRS84`` or ``EPSG:…`` for a CRS named as OGC does (URI, URN) or in short.

    Raises
    ------
    QueryError
        If it is not known to PROJ, or has no two horizontal axes.
    """
    if _IS_CRS84.fullmatch(name):
        return "OGC:CRS84"
    epsg = _NAMED.fullmatch(name)
    if epsg is None or _around(code := f"EPSG:{int(epsg[1])}") is None:
        raise QueryError(f"coordinate reference system ({name}) must be {CRS84} or EPSG:… of a map or of degrees")
    return code


@lru_cache(maxsize=256)
def _around(code: str) -> tuple[bool, bool] | None:
    """Return which axes of a CRS are longitudes, None if it is unknown or has no two horizontal axes."""
    try:
        crs = CRS(code)
    except ProjError:
        return None
    if len(crs.axis_info) != 2 or not (crs.is_geographic or crs.is_projected):
        return None
    first, second = (crs.is_geographic and axis.direction == "east" for axis in crs.axis_info)
    return first, second


def make_box(numbers: tuple[float, ...], crs: str) -> Box:
    """Return the box with these numbers (four, or six with heights, which do not matter), in the CRS called `crs`.

    Raises
    ------
    QueryError
        If the CRS is unknown, or a least coordinate is above the greatest (but for longitudes).
    """
    code = crs_code(crs)
    low, left, high, right = numbers if len(numbers) == 4 else (*numbers[:2], *numbers[3:5])
    around = _around(code) or (False, False)
    if (low > high and not around[0]) or (left > right and not around[1]):
        raise QueryError("bbox must have the least coordinates first, in the order of the axes of its CRS")
    return Box((low, left, high, right), code)


@dataclass(frozen=True)
class Projected:
    """Points in a CRS, in the order of its axes; infinite where it has none."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        return self.first.nbytes + self.second.nbytes


def project(longitude: NDArray[np.float64], latitude: NDArray[np.float64], crs: str) -> Projected:
    """Return points (degrees, WGS 84) in the CRS that `crs_code` returned."""
    if crs == "OGC:CRS84":
        return Projected(longitude, latitude)
    first, second = Transformer.from_crs("OGC:CRS84", crs, always_xy=False).transform(longitude, latitude)
    return Projected(np.asarray(first), np.asarray(second))
