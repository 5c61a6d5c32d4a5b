"""Where the residents of an area work, and where those who work in it live: units of any level, the largest first."""

from typing import Any, Literal

import numpy as np

from synthmap.analysis.area.figures import estimated, joined, same_release, shares, total_of
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


def _ranked(opened: OpenedRelease, area: Area, name: Literal["destinations", "origins"], by: str, top: int) -> Analysis:
    same_release(opened, area)
    if not 1 <= top <= MOST:
        raise QueryError(f"top ({top}) must be between 1 and {MOST:,}")
    units, errors, inside = units_of(opened, by), figure_errors(opened), area.zones
    of, worked_in = units.of.astype(np.int64), name == "origins"
    chosen: dict[str, Any] = {"destinations": inside} if worked_in else {"origins": inside}
    every = tally(opened, len(units), lambda o, d: of[o if worked_in else d], columns=1, grouped=False, **chosen)
    sums = every.sum(axis=(1, 2))
    best = np.argsort(-sums, kind="stable")[:top]
    best = best[sums[best] > 0]
    row_of = np.full(len(units), best.size, np.int64)
    row_of[best] = np.arange(best.size)
    found = tally(opened, best.size + 1, lambda o, d: row_of[of[o if worked_in else d]], **chosen)
    whole = found.sum(axis=0, keepdims=True)
    if worked_in:
        sums = errors.grouped(np.where(inside, 0, -1), 1)
        figures, total = estimated(errors, found, sums), total_of(errors, found, inside)
    else:
        figures = estimated(errors, found, errors.grouped(row_of[of], best.size + 1))
        total = estimated(errors, whole, errors.grouped(np.zeros(inside.size, np.int64), 1))
    figures = joined(figures, total)
    rows: list[dict[str, Any]] = [
        {"rank": at + 1, "id": unit, "group": "unit", "longitude": _known(x), "latitude": _known(y)}
        for at, (unit, x, y) in enumerate(
            zip(units.ids(best), units.longitude[best].tolist(), units.latitude[best].tolist(), strict=True)
        )
    ]
    rows += [
        {"rank": None, "id": None, "group": group, "longitude": None, "latitude": None} for group in ("others", "total")
    ]
    keys = tuple(row | {"share": share} for row, share in zip(rows, shares(figures), strict=True))
    end = "work" if worked_in else "home"
    notes = (OUTSIDE,) if area.count and not worked_in else ()
    parameters = {"end": end, "by": by, "top": top}
    return Analysis(name, TITLES[name], opened, (Named("area", end, area),), parameters, keys, figures, notes=notes)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
