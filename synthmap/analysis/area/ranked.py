"""Where the residents of an area work, and where those who work in it live: units of any level, the largest first."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.area.figures import Figures, estimated, joined, parts_of, same_release, shares, total_of
from synthmap.analysis.area.result import OUTSIDE, Analysis, Named
from synthmap.errors import QueryError
from synthmap.published.areas.area import Area
from synthmap.published.figure_errors import figure_errors
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of
from synthmap.published.tally import tally

TITLES = {"destinations": "Where residents of the area work", "origins": "Where workers of the area live"}
TOP, MOST = 10, 1_000
END = {"destinations": "home", "origins": "work"}  # of a commute at which the area is
Ranking = Literal["destinations", "origins"]


def destinations(opened: OpenedRelease, area: Area, *, by: str = ZONE, top: int = TOP) -> Analysis:
    """Return the units of a level where most of those who live in an area work.

    Parameters
    ----------
    opened : OpenedRelease
    area : Area
        Where people live.
    by : str
        A level of the release.
    top : int
        How many units, at most; equal ones in the order of ids.

    Returns
    -------
    Analysis
        Keys ``rank``, ``id``, ``group`` (unit, others, total), ``longitude``, ``latitude``, ``share``. Units without
        any of these workers are no rows.

    Raises
    ------
    QueryError
        If there is no such level, `top` is out of range, or the area is not one of this release.
    ReleaseCorruptError
        If its files cannot be read.
    """
    return _ranked(opened, area, "destinations", by, top)


def origins(opened: OpenedRelease, area: Area, *, by: str = ZONE, top: int = TOP) -> Analysis:
    """Return the units of a level where most of those who work in an area live.

    As `destinations`, with the area where people work. The unit ``elsewhere`` is all places outside the map.
    """
    return _ranked(opened, area, "origins", by, top)


def _ranked(opened: OpenedRelease, area: Area, name: Ranking, by: str, top: int) -> Analysis:
    same_release(opened, area)
    within_reach(top)
    sums = unit_sums(opened, area, name, by)
    best = np.argsort(-sums, kind="stable")[:top]
    best = best[sums[best] > 0]
    figures = figures_of(opened, area, name, by, best)
    keys = tuple(key | {"share": share} for key, share in zip(keys_of(opened, by, best), shares(figures), strict=True))
    end = END[name]
    notes = (OUTSIDE,) if area.count and end == "home" else ()
    parameters = {"end": end, "by": by, "top": top}
    return Analysis(name, TITLES[name], opened, (Named("area", end, area),), parameters, keys, figures, notes=notes)


def within_reach(top: int) -> None:
    """Refuse to rank none, or too many.

    Raises
    ------
    QueryError
        If `top` is out of range.
    """
    if not 1 <= top <= MOST:
        raise QueryError(f"top ({top}) must be between 1 and {MOST:,}")


def unit_sums(opened: OpenedRelease, area: Area, name: Ranking, by: str) -> NDArray[np.int64]:
    """Return the workers that are ranked, of every unit of a level."""
    units = units_of(opened, by)
    of, origins_are = units.of.astype(np.int64), name == "origins"
    found = tally(
        opened, len(units), lambda o, d: of[o if origins_are else d], columns=1, grouped=False, **_chosen(area, name)
    )
    return np.asarray(found.sum(axis=(1, 2)))


def figures_of(opened: OpenedRelease, area: Area, name: Ranking, by: str, best: NDArray[np.int64]) -> Figures:
    """Return the figures of some units, given by their codes, then those of all others, then the total."""
    units, errors, inside = units_of(opened, by), figure_errors(opened), area.zones
    of, origins_are = units.of.astype(np.int64), name == "origins"
    row_of = np.full(len(units), best.size, np.int64)
    row_of[best] = np.arange(best.size)
    found = tally(opened, best.size + 1, lambda o, d: row_of[of[o if origins_are else d]], **_chosen(area, name))
    if origins_are:
        sums = errors.grouped(np.where(inside, 0, -1), 1)
        figures = estimated(errors, found, sums, errors.shapes(row_of[of], best.size + 1))
        total = total_of(errors, found, inside)
        return joined(parts_of(figures, total, np.bincount(row_of[of], minlength=len(figures)) > 0), total)
    home = errors.shapes(np.where(inside, 0, -1), 1)
    figures = estimated(errors, found, errors.grouped(row_of[of], best.size + 1), home)
    whole, everywhere = found.sum(axis=0, keepdims=True), errors.grouped(np.zeros(inside.size, np.int64), 1)
    return joined(figures, estimated(errors, whole, everywhere, home)).where(inside.any())


def keys_of(opened: OpenedRelease, by: str, best: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return what the rows of `figures_of` are about."""
    units = units_of(opened, by)
    places = zip(
        units.ids(best.astype(np.uint32)), units.longitude[best].tolist(), units.latitude[best].tolist(), strict=True
    )
    rows: list[dict[str, Any]] = [
        {"rank": at + 1, "id": unit, "group": "unit", "longitude": _known(x), "latitude": _known(y)}
        for at, (unit, x, y) in enumerate(places)
    ]
    return rows + [
        {"rank": None, "id": None, "group": group, "longitude": None, "latitude": None} for group in ("others", "total")
    ]


def _chosen(area: Area, name: Ranking) -> dict[str, Any]:
    return {"destinations" if name == "origins" else "origins": area.zones}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
