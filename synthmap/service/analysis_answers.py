"""What an analysis found as JSON or CSV, with its citation."""

from datetime import date
from typing import Any

import polars as pl
import shapely
import shapely.geometry

from synthmap.analysis.area.result import ABOUT, Analysis, Named, figure
from synthmap.published.answers import source
from synthmap.published.figure_errors import EXPLAINED
from synthmap.published.store import OpenedRelease

_METRE = 1e-5  # degrees
_DECIMALS = 6


def as_json(found: Analysis, on: date) -> dict[str, Any]:
    """Return what an analysis found as one object, without links."""
    rows = [
        dict(key)
        | {name: figure(one, row, found.segments) for name, one in found.others.items()}
        | figure(found.figures, row, found.segments)
        for row, key in enumerate(found.keys)
    ]
    compared = {} if found.before is None else {"compared_with": source(found.before)}
    return (
        source(found.opened)
        | compared
        | {
            "citation": found.cited(on),
            "analysis": found.name,
            "analysis_title": found.title,
            "parameters": dict(found.parameters),
            "areas": [as_area(found.opened, one) for one in found.areas],
            "segments": list(found.segments),
            "warnings": found.warnings(),
            "expected_error": EXPLAINED,
            "rows": rows,
        }
        | ({"sums": {name: figure(one, 0, found.segments) for name, one in found.sums.items()}} if found.sums else {})
    )


def as_area(opened: OpenedRelease, named: Named) -> dict[str, Any]:
    """Return what is told of an area."""
    area = named.area
    zones = len(opened.places)
    return {
        "name": named.name,
        "end": named.end,
        "description": area.description,
        "rule": area.rule,
        "zones": area.count,
        "zones_of_release": zones,
        "share_of_zones": area.count / zones if zones else None,
        "bbox": area.extent(opened),
        "geometry": None if area.geometry is None else _drawn(area.geometry),
        "notes": list(area.notes),
    }


def as_csv(found: Analysis, on: date) -> bytes:
    """Return RFC 4180 text: one row a figure, ids in quotes and as they are.

    The last two columns are the same in all rows, so that they stay with any of them: warnings with what is to be known
    about the areas, and the citation.
    """
    told = zip(ABOUT, (" ".join(found.cautions()), found.cited(on)), strict=True)
    frame = found.frame().with_columns(pl.lit(text).alias(name) for name, text in told)
    return frame.write_csv(quote_style="non_numeric", line_terminator="\r\n").encode()


def _drawn(geometry: shapely.Geometry) -> dict[str, Any]:
    """Return polygons as GeoJSON, without what nobody sees."""
    simple = geometry.simplify(_METRE)
    shown: dict[str, Any] = shapely.geometry.mapping(shapely.set_precision(simple, 10.0**-_DECIMALS))
    return shown
