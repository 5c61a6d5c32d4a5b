"""GeoPackage: one file with the three layers and a table about the release."""

from pathlib import Path

import pyarrow as pa

from synthmap.published.exports.about import about
from synthmap.published.exports.layers import LAYERS, layer
from synthmap.published.exports.ogr import write, write_layer
from synthmap.published.store import OpenedRelease
from synthmap.release.manifest import MANIFEST


def write_geopackage(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write the release to `path`: every row, those from everywhere else without geometry.

    The layer flows holds lines and points; QGIS shows them as two layers of one table.
    """
    told = about(opened)
    for place, name in enumerate(LAYERS):
        one = layer(opened, name)
        write_layer(
            one,
            path,
            "GPKG",
            layer=name,
            append=place > 0,
            dataset_options={"VERSION": "1.2"} if place == 0 else {},  # what GDAL 3.6 and QGIS 3.22 know
            layer_metadata=told,
            layer_options={"IDENTIFIER": one.title, "DESCRIPTION": f"{one.description} {told['citation']}"},
        )
    told["manifest"] = (opened.directory / MANIFEST).read_text(encoding="utf-8")
    rows = pa.table({"name": list(told), "value": list(told.values())})
    write(rows.to_reader(), path, "GPKG", layer="about", append=True, layer_options={"DESCRIPTION": told["citation"]})
