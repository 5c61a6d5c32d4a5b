"""FlatGeobuf: one layer a file, with a spatial index, to be read in pieces over HTTP."""

from pathlib import Path

import shapely

from synthmap.published.exports.about import about
from synthmap.published.exports.layers import layer
from synthmap.published.exports.ogr import write_layer
from synthmap.published.exports.rows import from_elsewhere
from synthmap.published.store import OpenedRelease

OMITTED = (
    "Rows from everywhere else (elsewhere; {workers:,} workers) have no geometry, which the spatial index of "
    "FlatGeobuf cannot hold."
)


def write_flatgeobuf(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write the layer `part` to `path`; rows without geometry are left out, and the file says so."""
    one = layer(opened, part)
    omits = opened.manifest.zones.elsewhere is not None and part != "destinations"
    told = about(opened, OMITTED.format(workers=from_elsewhere(opened)) if omits else "")
    write_layer(
        one,
        path,
        "FlatGeobuf",
        layer=part,
        wanted=lambda shapes: ~shapely.is_missing(shapes),
        layer_metadata=told,
        layer_options={
            "TITLE": f"{one.title}: {told['title']}",
            "DESCRIPTION": " ".join([one.description, told.get("omitted", ""), told["citation"]]),
            "TEMPORARY_DIR": str(path.parent),
        },
    )
