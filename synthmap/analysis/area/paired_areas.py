"""Flows between two areas, in both directions and within each."""

import numpy as np

from synthmap.analysis.area.figures import estimated, joined, same_release
from synthmap.analysis.area.result import Analysis, Named
from synthmap.errors import QueryError
from synthmap.published.areas.area import Area
from synthmap.published.figure_errors import figure_errors
from synthmap.published.store import OpenedRelease
from synthmap.published.tally import tally

TITLE = "Flows between two areas"
LABELS = {
    "a_to_b": "Living in a, employed in b",
    "b_to_a": "Living in b, employed in a",
    "within_a": "Living and employed in a",
    "within_b": "Living and employed in b",
}


def paired_areas(opened: OpenedRelease, a: Area, b: Area) -> Analysis:
    """Return how many workers commute from one area to another, back, and within each.

    Parameters
    ----------
    opened : OpenedRelease
    a, b : Area
        Without a zone in common.

    Returns
    -------
    Analysis
        Keys ``figure`` (see `LABELS`) and ``label``.

    Raises
    ------
    QueryError
        If the areas overlap, or one is not of this release.
    ReleaseCorruptError
        If its files cannot be read.
    """
    same_release(opened, a, b)
    if common := int((a.zones & b.zones).sum()):
        raise QueryError(f"areas a and b must have no zone in common; they share {common:,}")
    errors = figure_errors(opened)
    side = np.where(a.zones, 0, np.where(b.zones, 1, -1))
    both = side >= 0
    found = tally(opened, 4, lambda o, d: 2 * side[o] + side[d], origins=both, destinations=both)
    to_a, to_b = (errors.grouped(np.where(area.zones, 0, -1), 1) for area in (a, b))
    from_a, from_b = (errors.shapes(np.where(area.zones, 0, -1), 1) for area in (a, b))
    figures = joined(
        estimated(errors, found[1:2], to_b, from_a).where(a.zones.any()),
        estimated(errors, found[2:3], to_a, from_b).where(b.zones.any()),
        estimated(errors, found[:1], to_a, from_a),
        estimated(errors, found[3:], to_b, from_b),
    )
    keys = tuple({"figure": name, "label": label} for name, label in LABELS.items())
    return Analysis("paired-areas", TITLE, opened, (Named("a", None, a), Named("b", None, b)), {}, keys, figures)
