"""What changed in an area from one release to another, beside the noise of both."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import polars as pl

from synthmap.analysis.area.bands import Bands
from synthmap.analysis.area.distance import End, area_profile, distance_direction
from synthmap.analysis.area.figures import Figures, same_release
from synthmap.analysis.area.inflow_outflow import inflow_outflow
from synthmap.analysis.area.ranked import END, TOP, Ranking, figures_of, keys_of, unit_sums, within_reach
from synthmap.analysis.area.result import Analysis, Named
from synthmap.errors import QueryError
from synthmap.published.areas.area import Area
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease

Compared = Literal["inflow-outflow", "area-profile", "distance-direction", "destinations", "origins"]
TITLE = "Change between two releases"
CLEAR = 2.0  # expected errors from which on a difference is more than noise
Both = tuple[Figures, Figures]


def time(
    before: OpenedRelease,
    after: OpenedRelease,
    area: Area,
    *,
    of: Compared = "inflow-outflow",
    end: End | None = None,
    bands: Bands | None = None,
    by: str = ZONE,
    top: int = TOP,
) -> Analysis:
    """Return the figures of an analysis of an area in two releases, and their differences.

    Parameters
    ----------
    before, after : OpenedRelease
        Two releases of the same zones.
    area : Area
        Made with either.
    of : str
        The analysis that is compared.
    end, bands
        Of an area profile, or of distance and direction; these need the end.
    by, top
        Of destinations or origins; ranked by the larger figure of the two.

    Returns
    -------
    Analysis
        Of the release `after`. Keys as of the analysis, and ``within_noise``: whether the difference is below twice its
        expected error. Its figures are the differences (after minus before), with the errors of both together; further
        figures ``before`` and ``after``.

    Raises
    ------
    QueryError
        If the releases are the same, or their zones are of other vintages, levels or ids; if no end is told; or as the
        analysis.
    ReleaseCorruptError
        If their files cannot be read.
    """
    comparable(before, after)
    same_release(after, area)
    if of in ("destinations", "origins"):
        keys, (old, new), where, parameters = _ranked(before, after, area, of, by, top)
    else:
        keys, (old, new), where, parameters = _of_rows(before, after, area, of, end, bands)
    notes = [
        "Errors of the two releases are taken as independent. A difference below twice its expected error is within "
        "noise: it is no sign of a change. What the same prior bends in both alike cancels out, so it may be surer."
    ]
    if before.manifest.segments != after.manifest.segments:
        notes.append("The releases have different segments: only all workers are compared.")
        old, new = old.columns(1), new.columns(1)
    change = new.minus(old)
    noise = (np.abs(change.workers[:, 0]) < CLEAR * change.error[:, 0]).tolist()
    told = tuple(dict(key) | {"within_noise": one} for key, one in zip(keys, noise, strict=True))
    about = {
        "of": of,
        **parameters,
        "releases": {"before": before.id, "after": after.id},
        "years": {"before": before.manifest.year, "after": after.manifest.year},
    }
    place = (Named("area", where, area),)
    both = {"before": old, "after": new}
    return Analysis("time", TITLE, after, place, about, told, change, both, tuple(notes), before)


Compares = tuple[list[Mapping[str, Any]], Both, str | None, Mapping[str, Any]]


def _of_rows(
    before: OpenedRelease, after: OpenedRelease, area: Area, of: Compared, end: End | None, bands: Bands | None
) -> Compares:
    """Return keys, figures, end and parameters of an analysis that has the same rows in all releases."""

    def told() -> End:
        if end is None:
            raise QueryError(f"end must be given with {of}: home or work, which end of a commute is in the area")
        return end

    run: dict[str, Callable[[OpenedRelease], Analysis]] = {
        "inflow-outflow": lambda opened: inflow_outflow(opened, area),
        "area-profile": lambda opened: area_profile(opened, area, end=told(), bands=bands),
        "distance-direction": lambda opened: distance_direction(opened, area, end=told(), bands=bands),
    }
    if of not in run:
        raise QueryError(f"of ({of}) must be one of {', '.join((*run, *END))}")
    old, new = run[of](before), run[of](after)
    keys: list[Mapping[str, Any]] = [
        {name: value for name, value in key.items() if name != "share"} for key in new.keys
    ]
    return keys, (old.figures, new.figures), new.areas[0].end, new.parameters


def _ranked(before: OpenedRelease, after: OpenedRelease, area: Area, of: Ranking, by: str, top: int) -> Compares:
    """Return the same of units ranked by the larger of their two figures."""
    within_reach(top)
    larger = np.maximum(*(unit_sums(opened, area, of, by) for opened in (before, after)))
    best = np.argsort(-larger, kind="stable")[:top]
    best = best[larger[best] > 0]
    old, new = (figures_of(opened, area, of, by, best) for opened in (before, after))
    keys: list[Mapping[str, Any]] = list(keys_of(after, by, best))
    return keys, (old, new), END[of], {"end": END[of], "by": by, "top": top}


def comparable(before: OpenedRelease, after: OpenedRelease) -> None:
    """Refuse two releases whose zones are not the same.

    Raises
    ------
    QueryError
        If one is the other, or vintages, levels or zones differ.
    """
    if before.id == after.id:
        raise QueryError(f"other ({after.id}) must be another release than the first")
    one, two = before.manifest.zones, after.manifest.zones
    rules: tuple[tuple[str, Callable[[], bool]], ...] = (
        (f"the same vintage of zones ({one.vintage}, not {two.vintage})", lambda: one.vintage == two.vintage),
        (f"the same levels ({', '.join(one.levels)}, not {', '.join(two.levels)})", lambda: one.levels == two.levels),
        ("the same zones, in the same parents", lambda: _zones(before).equals(_zones(after))),
        ("the same places outside the map", lambda: one.elsewhere == two.elsewhere),
    )
    for rule, holds in rules:
        if not holds():
            raise QueryError(f"releases {before.id} and {after.id} must have {rule}; compare releases that do")


def _zones(opened: OpenedRelease) -> pl.DataFrame:
    return opened.places.table.select("id", *opened.places.levels)


def in_order(one: OpenedRelease, other: OpenedRelease) -> tuple[OpenedRelease, OpenedRelease]:
    """Return two releases by year, then by when they were made."""
    first, second = sorted((one, other), key=lambda each: (each.manifest.year or 0, each.manifest.created, each.id))
    return first, second
