"""Columns, and geometries, of the public files people have: CSV, Parquet, GIS layers. Ids stay text.

The libraries of GIS are imported where a file needs them: they take as long to load as a small release to make.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.errors import GeographyError


@dataclass(frozen=True)
class Content:
    """Columns of one file and, where asked for, its geometries and their CRS."""

    table: pa.Table
    geometry: NDArray[np.object_] | None = None
    crs: object = None


def is_csv(path: Path) -> bool:
    """Return whether the file is CSV, plain or gzipped."""
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def is_parquet(path: Path) -> bool:
    """Return whether the file is Parquet."""
    return path.suffix.lower() in (".parquet", ".geoparquet")


_FAULTS = (OSError, EOFError, ValueError, zlib.error, csv.Error, pa.ArrowException)


def _faults_of_gis() -> tuple[type[Exception], ...]:
    import pyogrio.errors
    import pyproj.exceptions
    import shapely

    return (
        pyogrio.errors.DataSourceError,
        pyogrio.errors.DataLayerError,
        shapely.GEOSException,
        pyproj.exceptions.ProjError,
    )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn every fault of a reading library into one error that names the file."""
    try:
        yield
    except Exception as fault:
        if not isinstance(fault, _FAULTS + _faults_of_gis()):
            raise
        reason = str(fault).strip().split("\n")[0]
        raise GeographyError(
            f"{path} must be a readable file in the format of its ending, text in UTF-8: {reason}"
        ) from None


def column_names(path: Path, layer: str | None) -> list[str]:
    """Return the names of the columns in the file."""
    if not path.exists():
        raise GeographyError(f"{path} must be a file; there is none of that name")
    with readable(path):
        if is_csv(path):
            return _csv_header(path)
        if is_parquet(path):
            return [str(name) for name in pq.read_schema(path).names]
        import pyogrio

        layers = [str(name) for name in pyogrio.list_layers(path)[:, 0]]
        if layer is None and len(layers) > 1:
            raise GeographyError(f"{path} must have one layer; name one as zones.layer: {', '.join(layers)}")
        return [str(name) for name in pyogrio.read_info(path, layer=layer)["fields"]]


def _csv_header(path: Path) -> list[str]:
    """Return the first line of a CSV file, split; a byte order mark is no part of it."""
    opened = gzip.open if _is_gzip(path) else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
        names = next(csv.reader(lines), [])
    if not names:
        raise GeographyError(f"{path} must start with a line of column names; it is empty")
    if len(set(names)) < len(names):
        raise GeographyError(f"{path}: column names must be unique")
    return names


def read_content(
    path: Path, layer: str | None, names: list[str], wanted: list[str], *, geometry: bool = False
) -> Content:
    """Return the `wanted` columns, CSV as text and others as stored, and perhaps the geometries."""
    columns = list(dict.fromkeys(wanted))
    missing = [name for name in columns if name not in names]
    if missing:
        raise GeographyError(f"{path} must have the column {', '.join(missing)}; columns found: {', '.join(names)}")
    with readable(path):
        if is_csv(path):
            return Content(_csv(path, columns))
        found = (
            _parquet(path, columns, geometry=geometry)
            if is_parquet(path)
            else _layer(path, layer, columns, geometry=geometry)
        )
        found.table.validate(full=True)  # neither library looks whether text is UTF-8
        return found


def _csv(path: Path, columns: list[str]) -> pa.Table:
    """Return columns of a CSV file as text, nothing interpreted."""
    with pa.input_stream(path, compression="gzip" if _is_gzip(path) else None) as stream:
        return pacsv.read_csv(
            stream,
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=False,
            ),
        )


def _parquet(path: Path, columns: list[str], *, geometry: bool) -> Content:
    """Return columns of a Parquet file, with geometries if it is a GeoParquet file."""
    table = pq.read_table(path, columns=columns, partitioning=None)
    if not geometry or b"geo" not in (pq.read_schema(path).metadata or {}):
        return Content(table)
    import geopandas as gpd

    points = gpd.read_parquet(path).geometry
    return Content(table, points.to_numpy(), points.crs)


def _layer(path: Path, layer: str | None, columns: list[str], *, geometry: bool) -> Content:
    """Return columns, and perhaps geometries, of a GIS layer."""
    import pyogrio
    import shapely

    meta, table = pyogrio.read_arrow(path, layer=layer, columns=columns, read_geometry=geometry)
    name = meta["geometry_name"] or "wkb_geometry"
    if not geometry or name not in table.column_names:
        return Content(table)
    shapes = shapely.from_wkb(table.column(name).to_numpy())
    return Content(table.drop_columns([name]), shapes, meta["crs"])
