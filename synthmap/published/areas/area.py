"""An area of a release: which zones it is, why, and what to call it."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import shapely
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.published.areas.antimeridian import whole, within_180
from synthmap.published.areas.buffers import around
from synthmap.published.areas.shapes import Shape
from synthmap.published.extents import extent, width
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of
from synthmap.published.units import Units

BY_ID = "The zones of the units named."
BY_POINT = "A zone belongs to the area if its internal point lies in it; the edge never divides one."
_NAMED = 5  # units named in a description


@dataclass(frozen=True)
class Area:
    """Some zones of a release.

    Attributes
    ----------
    description : str
        For a citation: what was chosen.
    rule : str
        Which zones belong to it, in words.
    zones : ndarray of bool, shape (codes,)
        Which zones they are; everywhere else is never one.
    geometry : shapely.Geometry, optional
        Its outline in WGS 84, degrees, cut at the antimeridian; None for units named by id.
    notes : tuple of str
        What a reader must know about it.
    """

    description: str
    rule: str
    zones: NDArray[np.bool_]
    geometry: shapely.Geometry | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many zones it has."""
        return int(self.zones.sum())

    def extent(self, opened: OpenedRelease) -> tuple[float, float, float, float] | None:
        """Return west, south, east, north of its outline, or of its zones' points; None where it has neither.

        West is above east where it crosses the antimeridian.
        """
        if self.geometry is not None and not self.geometry.is_empty:
            return whole(self.geometry)
        units = units_of(opened, ZONE)
        if not self.zones.any():
            return None
        return whole(shapely.multipoints(np.column_stack([units.longitude[self.zones], units.latitude[self.zones]])))


def area_of_zones(opened: OpenedRelease, ids: tuple[str, ...], level: str = ZONE) -> Area:
    """Return the area that units of a level make up.

    Raises
    ------
    QueryError
        If there is no such level or unit, or no id is given.
    """
    if not ids:
        raise QueryError("area must name at least one zone")
    units = units_of(opened, level)
    codes, known = units.find(pl.Series(ids, dtype=pl.String))
    if not known.all():
        units.codes(tuple(np.array(ids, object)[~known]), "zone")  # says which
    elsewhere = opened.manifest.zones.elsewhere
    if elsewhere is not None and elsewhere in ids:
        raise QueryError(f"zone ({elsewhere}) must be on the map; it stands for all places outside")
    chosen = np.zeros(len(units), np.bool_)
    chosen[codes] = True
    return Area(_described(tuple(dict.fromkeys(ids)), level), BY_ID, chosen[units.of])


def area_of_shape(opened: OpenedRelease, shape: Shape) -> Area:
    """Return the zones whose internal points lie in a drawn or uploaded polygon.

    Raises
    ------
    QueryError
        If it has no polygon.
    """
    polygons = shape.polygons()
    zones, notes = _inside(opened, polygons), list(shape.notes)
    if shape.flatter:
        notes.append("Points and lines beside the polygons were left out; with buffer_m they count.")
    return _checked(opened, Area(f"{shape.description}, {_size(polygons)}", BY_POINT, zones, polygons, tuple(notes)))


def area_around(opened: OpenedRelease, base: Shape | Area, *, buffer_m: float, inner_m: float = 0.0) -> Area:
    """Return the zones whose internal points lie within `buffer_m` metres of something, but not within `inner_m`.

    Parameters
    ----------
    opened : OpenedRelease
    base : Shape or Area
        Points, lines, polygons; or zones, by their polygons where the release has them, else by their points.
    buffer_m, inner_m : float
        Metres. Without `inner_m` (0) the base itself is part of the area; with it, the area is a ring.

    Raises
    ------
    QueryError
        If a distance is out of range, or the base spans too much of the globe.
    """
    shape = base if isinstance(base, Shape) else _shape_of(opened, base)
    units = units_of(opened, ZONE)
    ring = around(shape.parts, units.longitude, units.latitude, buffer_m=buffer_m, inner_m=inner_m)
    near, far = _metres(inner_m), _metres(buffer_m)
    words = f"within {far} of" if inner_m == 0 else f"more than {near} and up to {far} from"
    rule = (
        f"A zone belongs to the area if its internal point lies {words} what was chosen, measured in an azimuthal "
        "equidistant projection around it."
    )
    return _checked(opened, Area(f"{words} {shape.description}", rule, ring.inside, ring.outline(), shape.notes))


def _checked(opened: OpenedRelease, area: Area) -> Area:
    """Return the area with notes that explain why it may be empty."""
    if area.count:
        return area
    notes = [*area.notes, "No zone's internal point lies in the area: all figures are 0."]
    west, south, east, north = extent(opened)
    there = within_180(np.array([shapely.box(west, south, west + width(west, east), north)], object))
    outline = area.geometry
    if outline is not None and not outline.is_empty and not shapely.intersects(outline, there).any():
        notes.append(
            f"The area lies outside of the release, whose zones are between {west:.4g}° and {east:.4g}° east and "
            f"{south:.4g}° and {north:.4g}° north."
        )
    return Area(area.description, area.rule, area.zones, area.geometry, tuple(notes))


def _inside(opened: OpenedRelease, polygons: shapely.Geometry) -> NDArray[np.bool_]:
    """Return which zones' points lie in polygons, or on their edge."""
    units = units_of(opened, ZONE)
    west, south, east, north = polygons.bounds
    x, y = units.longitude, units.latitude
    out: NDArray[np.bool_] = np.asarray((x >= west) & (x <= east) & (y >= south) & (y <= north))
    near = np.flatnonzero(out)
    shapely.prepare(polygons)
    out[near] = shapely.intersects_xy(polygons, x[near], y[near])
    if west <= -180.0 or east >= 180.0:  # both longitudes name the same meridian
        edge = np.flatnonzero(np.abs(x) == 180.0)
        out[edge] |= shapely.intersects_xy(polygons, -x[edge], y[edge])
    return out


def _shape_of(opened: OpenedRelease, area: Area) -> Shape:
    """Return the polygons (or points) of an area's zones."""
    units = units_of(opened, ZONE)
    codes = np.flatnonzero(area.zones)
    rows = opened.places.ids.search_sorted(units.names.gather(codes)).to_numpy().astype(np.int64)
    return Shape(opened.places.geometry(rows), area.description)


def zone_ids(units: Units, area: Area) -> list[str]:
    """Return the ids of an area's zones."""
    found: list[str] = units.names.filter(area.zones).to_list()
    return found


def _described(ids: tuple[str, ...], level: str) -> str:
    shown = ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else "")
    return f"{level} {shown}" if len(ids) == 1 else f"{len(ids):,} units of level {level}: {shown}"


def _metres(value: float) -> str:
    """Return a distance in words; no comma, which divides thousands for some and decimals for others."""
    return f"{value / 1e3:.15g} km" if value >= 1e3 else f"{value:.15g} m"


def _size(polygons: shapely.Geometry) -> str:
    west, south, east, north = whole(polygons)
    return f"{west:.4f}° to {east:.4f}° east, {south:.4f}° to {north:.4f}° north"
