"""Shapefiles and GeoPackages, read by GDAL in a process of its own: ``python -m synthmap.published.areas.gdal``.

What people send is parsed by much code in C. There it has little memory, little time, no file to write, and answers
with nothing but geometries.
"""

import json
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import shapely

from synthmap.errors import QueryError
from synthmap.published.areas.mending import bounded
from synthmap.published.areas.shapes import FEATURES, VERTICES, Shape, make_shape

SECONDS = 20.0
MEMORY = 2**30  # of address space; its libraries take less than half of it
_LAYERS = 50
_UNREADABLE = "area must be a shapefile or GeoPackage that GDAL can read; save it again, or as GeoJSON"
_QUIET = {"GDAL_SKIP": "SQLite VRT OGR_VRT", "GDAL_PAM_ENABLED": "NO", "OPENBLAS_NUM_THREADS": "1"}


def read_with_gdal(data: bytes, description: str) -> Shape:
    """Return the geometries of a GeoPackage, or of a shapefile in a zip archive, as a shape.

    Raises
    ------
    QueryError
        If GDAL cannot read it in its bounds, it states no CRS, or `make_shape` refuses it.
    """
    try:
        done = subprocess.run(  # noqa: S603  # our own module
            [sys.executable, "-m", __name__],
            input=data,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={key: value for key, value in os.environ.items() if not key.startswith("SYNTHMAP_")} | _QUIET,
        )
    except subprocess.TimeoutExpired:
        raise QueryError(f"area must be read in {SECONDS:g} seconds; simplify it") from None
    try:
        layers = json.loads(done.stdout)
    except ValueError:
        layers = None
    if done.returncode or layers is None:
        raise QueryError(_UNREADABLE)
    if "error" in layers:
        raise QueryError(str(layers["error"]))
    shapes = [
        make_shape(np.asarray(shapely.from_wkb([bytes.fromhex(one) for one in layer["wkb"]]), object), "", layer["crs"])
        for layer in layers["layers"]
    ]
    notes = dict.fromkeys(note for one in shapes for note in one.notes)
    parts = np.concatenate([one.parts for one in shapes])
    if len(shapes) > 1:  # each by itself has been looked at
        bounded(parts)
    return Shape(parts, description, tuple(notes))


def _read(data: bytes) -> dict[str, Any]:
    """Return the layers of a file, as hexadecimal WKB with their CRS; in the process of its own."""
    import pyogrio

    layers = [name for name, kind in pyogrio.list_layers(data).tolist() if kind is not None]
    if not layers:
        return {"error": "area must have a layer with geometries"}
    if len(layers) > _LAYERS:
        return {"error": f"area must have at most {_LAYERS} layers; save those that are needed"}
    out, features, vertices = [], 0, 0
    for name in layers:
        meta, _, geometry, _ = pyogrio.raw.read(data, layer=name, columns=[], max_features=FEATURES + 1, force_2d=True)
        found = shapely.from_wkb(geometry)
        found = found[~(shapely.is_missing(found) | shapely.is_empty(found))]
        features, vertices = features + found.size, vertices + int(shapely.get_num_coordinates(found).sum())
        if features > FEATURES:
            return {"error": f"area must have at most {FEATURES:,} features; simplify it"}
        if vertices > VERTICES:
            return {"error": f"area must have at most {VERTICES:,} vertices; simplify it"}
        if found.size and meta["crs"] is None:
            return {"error": "area must state its coordinate reference system (a shapefile in its .prj file)"}
        if found.size:
            out.append({"crs": meta["crs"], "wkb": [one.hex() for one in shapely.to_wkb(found)]})
    return {"layers": out} if out else {"error": "area must have a geometry that is not empty"}


def _bound() -> None:
    """Bound what this process may take."""
    with suppress(ImportError):  # where the system has no such bounds, time alone is bounded
        import resource

        for what, most in (
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_CPU, int(SECONDS)),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ValueError, OSError):  # bounded more tightly already
                resource.setrlimit(what, (most, most))


def main(source: BinaryIO, sink: BinaryIO) -> int:
    """Answer what is sent with its layers, or with why it has none; 1 if it cannot be read."""
    _bound()
    warnings.simplefilter("ignore")
    try:
        found = _read(source.read())
    except Exception:  # GDAL's texts may name places of this machine
        return 1
    sink.write(json.dumps(found).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
