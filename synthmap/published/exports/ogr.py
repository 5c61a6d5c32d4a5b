"""Layers written by OGR, streamed, so that memory does not grow with the release."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio
import shapely
from numpy.typing import NDArray

from synthmap.errors import ReleaseError
from synthmap.published.exports.layers import Batch, Layer

_GEOMETRY = "geometry"  # carries geometries to OGR, which gives it the name of the format
Wanted = Callable[[NDArray[np.object_]], NDArray[np.bool_]]


def write_layer(
    one: Layer, path: Path, driver: str, *, geometry_type: str | None = None, wanted: Wanted | None = None, **how: Any
) -> None:
    """Write a layer, or the rows whose geometries are `wanted`.

    Raises
    ------
    ReleaseCorruptError
        If the release cannot be read.
    ReleaseError
        If the file cannot be written.
    """
    schema = one.schema.append(pa.field(_GEOMETRY, pa.binary()))
    faults: list[BaseException] = []  # what OGR would swallow

    def stream() -> Iterator[pa.RecordBatch]:
        try:
            for batch in one.batches():
                table, shapes = chosen(batch, wanted)
                wkb = pa.array(shapely.to_wkb(shapes), pa.binary())
                yield pa.RecordBatch.from_arrays([*table.columns, wkb], schema=schema)
        except BaseException as fault:
            faults.append(fault)
            raise

    options = {
        "geometry_name": _GEOMETRY,
        "geometry_type": geometry_type or one.geometry_type,
        "crs": "EPSG:4326",
    } | how
    write(pa.RecordBatchReader.from_batches(schema, stream()), path, driver, faults, **options)


def write(
    rows: pa.RecordBatchReader, path: Path, driver: str, faults: list[BaseException] | None = None, **how: Any
) -> None:
    """Write Arrow batches as one layer; of two causes the first is raised."""
    try:
        pyogrio.write_arrow(rows, path, driver=driver, **how)
    except (RuntimeError, OSError) as fault:  # pyogrio's own are RuntimeErrors
        if faults:
            raise faults[0] from None
        raise ReleaseError(f"{path.name} must be writable: {str(fault).splitlines()[0]}") from None


def chosen(batch: Batch, wanted: Wanted | None) -> Batch:
    """Return the rows whose geometries are `wanted`; all if that is None."""
    table, shapes = batch
    if wanted is None:
        return batch
    keep = wanted(shapes)
    return table.filter(pa.array(keep)), shapes[keep]
