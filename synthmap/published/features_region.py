"""Regions that features are asked to meet, and which segments meet a box; all in the axes of one CRS."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.errors import GEOSException

from synthmap.errors import QueryError
from synthmap.published.boxes import make_box

Bounds = tuple[float, float, float, float]
"""Least first, least second, greatest first, greatest second coordinate."""

_FAR = 1e9  # no coordinate is farther: keeps products finite
NOWHERE = 16  # the side of what has no coordinates


@dataclass(frozen=True)
class Region:
    """A box, two where it crosses the antimeridian, or a shape.

    Attributes
    ----------
    crs : str
        ``OGC:CRS84`` or ``EPSG:…``; numbers are in the order of its axes.
    boxes : tuple of Bounds
        What lies in none of them is not in the region.
    shape : bytes, optional
        WKB of the shape, if it is not just the boxes.
    """

    crs: str
    boxes: tuple[Bounds, ...]
    shape: bytes | None = None


def box_region(numbers: tuple[float, ...], crs: str) -> Region:
    """Return the region of a ``bbox`` of four or six numbers; heights do not matter.

    Raises
    ------
    QueryError
        If a least coordinate is above the greatest, unless they are longitudes.
    """
    bounds = make_box(numbers, crs).bounds
    first, second, third, fourth = (min(max(value, -_FAR), _FAR) for value in bounds)
    if first > third:
        boxes: tuple[Bounds, ...] = ((first, second, 180.0, fourth), (-180.0, second, third, fourth))
    elif second > fourth:
        boxes = ((first, second, third, 180.0), (first, -180.0, third, fourth))
    else:
        boxes = ((first, second, third, fourth),)
    return Region(crs, boxes)


def shape_region(geometry: dict[str, Any], crs: str) -> Region:
    """Return the region of a GeoJSON geometry.

    Raises
    ------
    QueryError
        If it is none, or is empty.
    """
    try:
        shape = shapely.from_geojson(json.dumps(geometry))
        valid = bool(shapely.is_valid(shape))
    except (GEOSException, ValueError, TypeError):
        raise QueryError("filter: a geometry must have finite coordinates and closed rings") from None
    if not valid or shape.is_empty or not np.isfinite(shapely.bounds(shape)).all():
        raise QueryError("filter: a geometry must be valid, finite and not empty")
    low, left, high, right = (min(max(float(value), -_FAR), _FAR) for value in shapely.bounds(shape))
    return Region(crs, ((low, left, high, right),), shapely.to_wkb(shape))


def sides(first: NDArray[np.float64], second: NDArray[np.float64], box: Bounds) -> NDArray[np.uint8]:
    """Return on which sides of a box points lie: 0 in it, else the sum of 1, 2, 4, 8 for sides, or `NOWHERE`."""
    out = (first < box[0]) + 2 * (first > box[2]) + 4 * (second < box[1]) + 8 * (second > box[3])
    out[~(np.isfinite(first) & np.isfinite(second))] = NOWHERE
    return np.asarray(out, dtype=np.uint8)


def segments_meet(
    ends: NDArray[np.float64], from_sides: NDArray[np.uint8], to_sides: NDArray[np.uint8], box: Bounds
) -> NDArray[np.bool_]:
    """Return which segments, given by their ends, shape (segments, 2, 2), and `sides`, have a point in a box.

    Notes
    -----
    By the separating axis theorem: a segment and a box are apart exactly if they are along an axis of the box or along
    the normal of the segment. Borders belong to the box.
    """
    apart = ((from_sides & to_sides) | ((from_sides | to_sides) & NOWHERE)) != 0
    meet: NDArray[np.bool_] = ~apart & ((from_sides == 0) | (to_sides == 0))
    open_ = np.flatnonzero(~apart & ~meet)
    (x, y), (dx, dy) = ends[open_, 0].T, (ends[open_, 1] - ends[open_, 0]).T
    middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    half = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    away = np.abs(dx * (middle[1] - y) - dy * (middle[0] - x))
    meet[open_] = away <= np.abs(dx) * half[1] + np.abs(dy) * half[0]
    return meet
