"""What changed in an area from one release to another, beside the noise of both."""

from collections.abc import Callable

import polars as pl

from synthmap.analysis.area.figures import same_release
from synthmap.analysis.area.inflow_outflow import LABELS, inflow_outflow_figures
from synthmap.analysis.area.result import Analysis, Named
from synthmap.errors import QueryError
from synthmap.published.areas.area import Area
from synthmap.published.store import OpenedRelease

TITLE = "Change between two releases"


def time(before: OpenedRelease, after: OpenedRelease, area: Area) -> Analysis:
    """Return the inflow and outflow of an area in two releases, and their differences.

    Parameters
    ----------
    before, after : OpenedRelease
        Two releases of the same zones.
    area : Area
        Made with either.

    Returns
    -------
    Analysis
        Of the release `after`. Keys as `inflow_outflow`; its figures are the differences (after minus before), with the
        errors of both together; further figures ``before`` and ``after``.

    Raises
    ------
    QueryError
        If the releases are the same, or their zones are of other vintages, levels or ids.
    ReleaseCorruptError
        If their files cannot be read.
    """
    comparable(before, after)
    same_release(after, area)
    old, new = inflow_outflow_figures(before, area), inflow_outflow_figures(after, area)
    notes = ["Errors of the two releases are taken as independent. A difference below its expected error says nothing."]
    if before.manifest.segments != after.manifest.segments:
        notes.append("The releases have different segments: only all workers are compared.")
        old, new = old.columns(1), new.columns(1)
    return Analysis(
        "time", TITLE, after, (Named("area", None, area),),
        {"releases": {"before": before.id, "after": after.id}, "years": {"before": before.manifest.year,
                                                                         "after": after.manifest.year}},
        tuple({"figure": name, "label": label} for name, label in LABELS.items()),
        new.minus(old), {"before": old, "after": new}, tuple(notes),
    )  # fmt: skip


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
