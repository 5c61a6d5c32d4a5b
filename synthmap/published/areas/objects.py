"""Areas as JSON says them: GeoJSON, zone ids, or what lies around one of these."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from synthmap.errors import QueryError
from synthmap.published.areas.area import Area, area_around, area_of_shape, area_of_zones
from synthmap.published.areas.shapes import Shape, read_geojson
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease

_FORMS = (
    'area must be GeoJSON, {"zones": [ids], "level": …} or {"around": GeoJSON or zones, "buffer_m": metres, '
    '"inner_m": metres}'
)


def read_json(text: bytes) -> Any:
    """Return what JSON says.

    Raises
    ------
    QueryError
        If it is not JSON in UTF-8, holds numbers that are none, or is too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise QueryError("body must be JSON in UTF-8, with finite numbers") from None


def area_from(
    opened: OpenedRelease, found: Any, *, buffer_m: float | None = None, inner_m: float | None = None
) -> Area:
    """Return the area that a JSON object says, or what lies around it.

    Parameters
    ----------
    opened : OpenedRelease
    found : Any
        As `read_json` returns it.
    buffer_m, inner_m : float, optional
        Metres; for an object that says none itself.

    Raises
    ------
    QueryError
        If it is no area, or one that this release does not have.
    """
    match found:
        case {"around": base, **more} if set(more) <= {"buffer_m", "inner_m"}:
            if buffer_m is not None or inner_m is not None:
                raise QueryError("buffer_m must be given once: in the area or as a parameter")
            return buffered(opened, _base(opened, base), _metres(more, "buffer_m"), _metres(more, "inner_m"))
        case {"zones": _} | {"type": _}:
            return buffered(opened, _base(opened, found), buffer_m, inner_m)
    raise QueryError(_FORMS)


def buffered(opened: OpenedRelease, base: Shape | Area, buffer_m: float | None, inner_m: float | None = None) -> Area:
    """Return an area as it is, or what lies around it where `buffer_m` says so.

    Raises
    ------
    QueryError
        If `inner_m` comes without `buffer_m`, or the shape does not make an area.
    """
    if buffer_m is not None:
        return area_around(opened, base, buffer_m=buffer_m, inner_m=inner_m or 0.0)
    if inner_m is not None:
        raise QueryError("inner_m must come with buffer_m, the outer distance of the ring")
    return base if isinstance(base, Area) else area_of_shape(opened, base)


def _base(opened: OpenedRelease, found: Any) -> Shape | Area:
    match found:
        case {"zones": list(ids), **more} if set(more) <= {"level"}:
            level = more.get("level", ZONE)
            if not isinstance(level, str) or not all(isinstance(one, str) and _is_text(one) for one in ids):
                raise QueryError("area: zones must be a list of ids as text, level the name of a level")
            return area_of_zones(opened, tuple(ids), level)
        case {"type": _}:
            return read_geojson(found)
    raise QueryError(_FORMS)


def _is_text(text: str) -> bool:
    """Return whether there is no half of a character in a text."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _metres(found: Mapping[Any, Any], name: str) -> float | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e308:
        raise QueryError(f"area: {name} must be a number of metres")
    return float(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
