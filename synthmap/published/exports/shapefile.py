"""Shapefiles, zipped: names of ten characters, text of 254 bytes, 2 GB a file, one kind of geometry a layer."""

import re
import unicodedata
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from synthmap.published.exports.about import readme
from synthmap.published.exports.errors import COUNT_ERROR
from synthmap.published.exports.layers import LAYERS, Layer, layer, unique
from synthmap.published.exports.limits import check_shapefile, digits, text_bytes
from synthmap.published.exports.ogr import write_layer
from synthmap.published.store import OpenedRelease

_SHORT = {
    "destination": "dest", "distance_km": "km", "from_elsewhere": "from_else", "prior_share": "prior_shr",
    "expected_error": "exp_error",
}  # fmt: skip
_NAME = 10
_HELD = (
    "Shapefiles hold field names of 10 characters, text of 254 bytes and files of 2 GB. A layer has one kind of "
    "geometry: flows are lines, those from everywhere else without shape; flows_points are flows within a zone; "
    "all together are the table."
)


def write_shapefile(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write a zip archive of shapefiles with a README to `path`.

    Raises
    ------
    ExportError
        If an id or the table is larger than the format holds.
    """
    check_shapefile(opened)
    ids, texts = text_bytes(opened, ["id"]), text_bytes(opened, ["id", *opened.places.levels])
    fields = []
    made: list[Path] = []
    for name in LAYERS:
        one = layer(opened, name)
        short = _names(one.schema.names)
        fields += [f"{name}.{new}: {old}" for new, old in zip(short, one.schema.names, strict=True)]
        made += _write(_fitted(one, short, ids if name == "flows" else texts, digits(opened)), path.parent)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr("README.txt", readme(opened, _HELD, COUNT_ERROR, "Fields\n" + "\n".join(fields)))
        for file in sorted(made):
            archive.write(file, file.name)
            file.unlink()


def _names(names: list[str]) -> list[str]:
    """Return field names: ASCII, a letter first, at most ten characters, no two alike."""
    plain = []
    for name in names:
        text = unicodedata.normalize("NFKD", _SHORT.get(name, name)).encode("ascii", "ignore").decode()
        text = re.sub(r"\W", "_", text)
        plain.append(text if text[:1].isalpha() else f"f{text}")
    return unique(plain, lambda name, end: name[: _NAME - len(end)] + end)


def _fitted(one: Layer, names: list[str], text: int, figures: int) -> Layer:
    """Return the layer with other names of its columns, and widths that OGR need not widen on the way."""
    widths = {pa.string(): text, pa.int64(): figures}
    fields = [
        pa.field(name, kind, metadata={"GDAL:OGR:width": str(widths[kind])} if kind in widths else None)
        for name, kind in zip(names, one.schema.types, strict=True)
    ]
    return replace(one, schema=pa.schema(fields))


def _write(one: Layer, directory: Path) -> list[Path]:
    """Write the shapefiles of a layer, points apart where there are others too; return their files."""
    kinds = {one.name: one.geometry_type}
    if one.geometry_type == "Unknown":
        kinds = {one.name: "LineString" if one.name == "flows" else "MultiPolygon", f"{one.name}_points": "Point"}
    for name, kind in kinds.items():
        only = None if len(kinds) == 1 else _points if kind == "Point" else _others
        write_layer(
            one, directory / f"{name}.shp", "ESRI Shapefile", geometry_type=kind, wanted=only,
            layer=name, encoding="UTF-8", layer_options={"2GB_LIMIT": "YES"},
        )  # fmt: skip
    return [file for name in kinds for file in directory.glob(f"{name}.*")]


def _points(shapes: NDArray[np.object_]) -> NDArray[np.bool_]:
    return np.asarray(shapely.get_type_id(shapes) == shapely.GeometryType.POINT)


def _others(shapes: NDArray[np.object_]) -> NDArray[np.bool_]:
    return ~_points(shapes)
