"""How far, and in which direction, people commute from or to an area."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.area.bands import SECTORS, Bands, Compass
from synthmap.analysis.area.figures import elsewhere_code, estimated, joined, same_release, shares, total_of
from synthmap.analysis.area.result import OUTSIDE, Analysis, Named
from synthmap.errors import QueryError
from synthmap.published.areas.area import Area
from synthmap.published.figure_errors import figure_errors
from synthmap.published.store import OpenedRelease
from synthmap.published.tally import tally

End = Literal["home", "work"]
DIRECTION = "Distance and direction"
PROFILE = "Area profile"
_SAME, _AWAY = "same_zone", "elsewhere"


def distance_direction(opened: OpenedRelease, area: Area, *, end: End, bands: Bands | None = None) -> Analysis:
    """Return the workers of an area by distance and direction of their other end.

    Parameters
    ----------
    opened : OpenedRelease
    area : Area
    end : {"home", "work"}
        Which end of the commute is in the area; directions are from there to the other end.
    bands : Bands, optional
        OnTheMap's 10, 25 and 50 miles unless given.

    Returns
    -------
    Analysis
        Keys ``direction``, ``from``, ``to`` (in the units of the bands) and ``share``: 8 sectors by all bands, then
        flows inside one zone (no direction), those from everywhere else (no place), and all. Sums are by sector.

    Raises
    ------
    QueryError
        If the area is not one of this release, or `end` is neither.
    ReleaseCorruptError
        If its files cannot be read.
    """
    bands = bands or Bands()
    compass, away, wide = Compass(opened), elsewhere_code(opened), len(bands)
    cells = len(SECTORS) * wide

    def key_of(o: NDArray[Any], d: NDArray[Any]) -> NDArray[Any]:
        here, there = (d, o) if end == "work" else (o, d)
        key = compass.sector(here, there) * wide + compass.band(bands, o, d)
        return np.where(o == away, cells + 1, np.where(o == d, cells, key))

    keys: list[dict[str, Any]] = [
        {"direction": sector, "from": start, "to": stop} for sector in SECTORS for start, stop in bands.edges()
    ]
    keys += [{"direction": name, "from": None, "to": None} for name in (_SAME, _AWAY, "all")]
    sectors = {sector: slice(at * wide, (at + 1) * wide) for at, sector in enumerate(SECTORS)}
    return _by_key(opened, area, end, bands, ("distance-direction", DIRECTION), key_of, keys, summed=sectors)


def area_profile(opened: OpenedRelease, area: Area, *, end: End, bands: Bands | None = None) -> Analysis:
    """Return the workers at one end of commutes that is in an area: all, by distance of the other end, by segment.

    Parameters
    ----------
    opened : OpenedRelease
    area : Area
    end : {"home", "work"}
        Which end of the commute is in the area.
    bands : Bands, optional
        OnTheMap's 10, 25 and 50 miles unless given.

    Returns
    -------
    Analysis
        Keys ``group`` (distance, same_zone, elsewhere, total), ``label``, ``from``, ``to`` and ``share``. What stays in
        one zone is part of the first band as well; bands and elsewhere add up to the total.

    Raises
    ------
    QueryError
        If the area is not one of this release, or `end` is neither.
    ReleaseCorruptError
        If its files cannot be read.
    """
    bands = bands or Bands()
    compass, away, wide = Compass(opened), elsewhere_code(opened), len(bands)

    def key_of(o: NDArray[Any], d: NDArray[Any]) -> NDArray[Any]:
        return np.where(o == away, wide + 1, np.where(o == d, wide, compass.band(bands, o, d)))

    keys: list[dict[str, Any]] = [
        {"group": "distance", "label": bands.label(band), "from": start, "to": stop}
        for band, (start, stop) in enumerate(bands.edges())
    ]
    for group, label in ((_SAME, "within one zone"), (_AWAY, "from outside the map"), ("total", "all")):
        keys.append({"group": group, "label": label, "from": None, "to": None})
    return _by_key(opened, area, end, bands, ("area-profile", PROFILE), key_of, keys, by_distance=True)


def _by_key(
    opened: OpenedRelease,
    area: Area,
    end: End,
    bands: Bands,
    names: tuple[str, str],
    key_of: Any,
    keys: list[dict[str, Any]],
    *,
    by_distance: bool = False,
    summed: Mapping[str, slice] = MappingProxyType({}),
) -> Analysis:
    """Return workers by key; the last three keys are within one zone, from everywhere else, and all.

    Where keys are of distances alone, the first also holds what is within one zone. `summed` says of which keys there
    are sums.
    """
    same_release(opened, area)
    if end not in ("home", "work"):
        raise QueryError(f"end ({end}) must be home or work: which end of a commute is in the area")
    errors, inside = figure_errors(opened), area.zones
    chosen: dict[str, Any] = {"destinations": inside} if end == "work" else {"origins": inside}
    at = inside if end == "work" else np.ones(inside.size, np.bool_)
    found = tally(opened, len(keys) - 1, key_of, **chosen)
    sums = errors.grouped(np.where(at, 0, -1), 1)
    home = errors.shapes(np.where(inside, 0, -1), 1) if end == "home" else None
    whole = found.sum(axis=0, keepdims=True)
    total = total_of(errors, found, inside) if end == "work" else estimated(errors, whole, sums, home)
    if by_distance:
        found[0] += found[-2]
    possible = np.full(len(keys), end == "work" or inside.any())
    possible[-2] = end == "work" and elsewhere_code(opened) >= 0
    figures = estimated(errors, found, sums, home, whole.sum(axis=(0, 2)) if by_distance else None)
    figures = joined(figures, total).where(possible)
    parts = {name: found[of].sum(axis=0, keepdims=True) for name, of in summed.items()}
    rows = tuple(row | {"share": share} for row, share in zip(keys, shares(figures), strict=True))
    return Analysis(
        *names,
        opened,
        (Named("area", end, area),),
        {"end": end, **bands.parameters},
        rows,
        figures,
        notes=(OUTSIDE,) if area.count and end == "home" else (),
        sums={name: estimated(errors, part, sums, home).where(possible[-1]) for name, part in parts.items()},
    )
