"""Read zones from the public files people have: LODES crosswalks, tables, and GIS layers.

Ids stay text from end to end. A file that stores them as numbers is refused, because its leading
zeros are already lost; only CSV, which has no types, is read as text whatever it looks like.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pyogrio
import pyproj
import shapely
from numpy.typing import NDArray

from synthmap.errors import GeographyError, VintageError
from synthmap.geography.zones import Zones, canonical, some_of
from synthmap.spec import Weights, ZonesSpec

CROSSWALK_IDS = {"tabblk2010": "2010", "tabblk2020": "2020"}
CROSSWALK_LEVELS = ("st", "cty", "trct", "bgrp")
LARGEST_TOTAL = 2**53
_GEOMETRY_TYPES = (0, 3, 4, 6)  # Point, Polygon, MultiPoint, MultiPolygon


@dataclass(frozen=True)
class _Layout:
    """Which columns of the zones file say what; without coordinate columns, its geometry does."""

    id: str
    levels: tuple[str, ...]
    coordinates: tuple[str, str] | None
    weight: str | None
    crosswalk: bool


@dataclass(frozen=True)
class _Content:
    """Columns of one file and, where asked for, its geometries and their CRS."""

    table: pa.Table
    geometry: NDArray[np.object_] | None = None
    crs: object = None


def read_zones(spec: ZonesSpec) -> Zones:
    """Return the zones that `spec` points to, in canonical order.

    Parameters
    ----------
    spec : ZonesSpec
        The ``[zones]`` section, with paths that exist from here. The ending of the path chooses the
        format: ``.csv`` or ``.csv.gz``, ``.parquet`` or ``.geoparquet``, anything else is opened as
        a GIS layer (shapefile, GeoPackage, GeoJSON, FlatGeobuf, …). All files are public.

    Returns
    -------
    Zones
        Points in degrees, WGS 84; weights as whole numbers.

    Raises
    ------
    GeographyError
        If a file is missing or unreadable, a column is missing, ids or parents are not text, a zone
        has no coordinates or no weight, or the zones break a rule of :func:`canonical`.
    VintageError
        If the weights, or the id column of a LODES crosswalk, belong to another vintage.

    Notes
    -----
    *LODES crosswalk*: a table with a column ``tabblk2010`` or ``tabblk2020``, unless the spec names
    another id. Its points are ``blklondd``, ``blklatdd``; its levels ``st``, ``cty``, ``trct`` and
    ``bgrp``, unless the spec names others. A code of nines only (``stplc`` 9999999) means that the
    block has no such parent; it becomes ``"<parent one level up>:none"``, or ``"none"`` at the
    coarsest level, so that blocks outside every town do not form one that spans counties.

    *Points*: longitude and latitude columns if the spec names them, else the geometry. A polygon
    gives a point inside it (a centroid may lie outside), computed in the layer's own CRS and then
    transformed to WGS 84.

    *Weights*: 1 for every zone if the spec names none. Whole numbers are kept. If any weight has a
    fraction, all are multiplied by the smallest power of ten (at least 1) that brings the largest
    to a million or more, then rounded half up.
    """
    names = _column_names(spec.path, spec.layer)
    layout = _layout(spec, names)
    _check_vintages(spec, layout)
    wanted = [layout.id, *layout.levels, *(layout.coordinates or ())]
    wanted += [layout.weight] if layout.weight else []
    content = _content(spec.path, spec.layer, names, wanted, geometry=not layout.coordinates)
    table = content.table
    ids = _text(spec.path, table, layout.id)
    if len(ids) == 0:
        raise GeographyError(f"zones file ({spec.path}) must hold at least one zone; it has none")
    parents = [_text(spec.path, table, level) for level in layout.levels]
    if layout.crosswalk:
        parents = _without_nines(parents)
    if layout.coordinates is None:
        longitude, latitude = _points(spec.path, ids, content)
    else:
        longitude, latitude = (
            _numbers(spec.path, table, name, ids, "zone without coordinates") for name in layout.coordinates
        )
    return canonical(
        ids=ids,
        longitude=longitude,
        latitude=latitude,
        weight=_weight(spec, layout, table, ids),
        levels=layout.levels,
        parents=tuple(parents),
        vintage=spec.vintage,
    )


def _layout(spec: ZonesSpec, names: Sequence[str]) -> _Layout:
    """Return which columns to read, after checking that the spec and the file agree on them."""
    found = [name for name in CROSSWALK_IDS if name in names]
    if spec.id is None and len(found) != 1:
        raise GeographyError(f"zones.id must name the id column of {spec.path}; columns found: {', '.join(names)}")
    identifier = spec.id or found[0]
    crosswalk = identifier in CROSSWALK_IDS
    if (spec.longitude is None) != (spec.latitude is None):
        raise GeographyError("zones.longitude and zones.latitude must be given together")
    coordinates = None
    if spec.longitude is not None and spec.latitude is not None:
        coordinates = (spec.longitude, spec.latitude)
    elif {"blklondd", "blklatdd"} <= set(names) and crosswalk:
        coordinates = ("blklondd", "blklatdd")
    elif _is_csv(spec.path):
        raise GeographyError(
            f"zones.longitude and zones.latitude must name columns of {spec.path}; columns found: {', '.join(names)}"
        )
    levels = CROSSWALK_LEVELS if crosswalk and spec.levels is None else tuple(spec.levels or ())
    if len(set(levels)) < len(levels):
        raise GeographyError(f"zones.levels ({', '.join(levels)}) must be different columns")
    return _Layout(identifier, levels, coordinates, spec.weight, crosswalk)


def _check_vintages(spec: ZonesSpec, layout: _Layout) -> None:
    """Refuse a crosswalk or a weights table of another vintage than the zones."""
    year = CROSSWALK_IDS.get(layout.id, "")
    if year not in spec.vintage:
        raise VintageError(
            f"zones.vintage ({spec.vintage}) must contain {year}: the column {layout.id} of "
            f"{spec.path} holds the blocks of {year}; name that vintage or use another crosswalk"
        )
    if spec.weights is not None and spec.weights.vintage != spec.vintage:
        raise VintageError(
            f"zones.weights.vintage ({spec.weights.vintage}) must be zones.vintage "
            f"({spec.vintage}); use weights counted on the same zones"
        )


def _without_nines(parents: Sequence[pa.StringArray]) -> list[pa.StringArray]:
    """Return the parents with codes of nines only replaced by one of each coarser parent's own."""
    replaced: list[pa.StringArray] = []
    for names in parents:
        none = pc.match_substring_regex(names, "^9+$")
        own: pa.StringArray | str = "none"
        if replaced:
            own = pc.binary_join_element_wise(replaced[-1], "none", ":")
        replaced.append(pc.if_else(none, own, names))
    return replaced


def _weight(spec: ZonesSpec, layout: _Layout, table: pa.Table, ids: pa.StringArray) -> NDArray[np.int64]:
    """Return the weight of every zone, from its own file, from a separate one, or 1."""
    if layout.weight is not None:
        return _whole(ids, _numbers(spec.path, table, layout.weight, ids, "zone without weight"))
    if spec.weights is not None:
        return _whole(ids, _joined_weight(spec.weights, ids))
    return np.ones(len(ids), np.int64)


def _joined_weight(weights: Weights, ids: pa.StringArray) -> NDArray[np.float64]:
    """Return the weight of every zone from the separate table, whose other ids do not matter."""
    names = _column_names(weights.path, None)
    table = _content(weights.path, None, names, [weights.id, weights.column]).table
    keys = _text(weights.path, table, weights.id)
    counts = pc.value_counts(keys)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise GeographyError(f"{weights.path}: ids of column {weights.id} must be unique; not so {some_of(twice)}")
    place = pc.index_in(ids, value_set=keys)
    if place.null_count:
        missing = ids.filter(pc.is_null(place))
        raise GeographyError(
            f"{weights.path}: every zone must have a weight in column {weights.column}; "
            f"{len(missing)} are missing: {some_of(missing)}"
        )
    return _numbers(weights.path, table.take(place), weights.column, ids, "zone without weight")


def _whole(ids: pa.StringArray, weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return non-negative weights as whole numbers, scaled first if any has a fraction."""
    below = ids.filter(pa.array(weight < 0))
    if len(below):
        raise GeographyError(f"zone weights must be at least 0; not so for {some_of(below)}")
    total = float(weight.sum())
    if not 0 < total < LARGEST_TOTAL:
        raise GeographyError(f"the sum of zone weights ({total:g}) must be above 0 and below 2^53")
    if (weight != np.floor(weight)).any():
        scale = 1.0
        while weight.max() * scale < 1e6 and total * scale < 1e10:
            scale *= 10
        weight = np.floor(weight * scale + 0.5)
    return weight.astype(np.int64)


def _points(path: Path, ids: pa.StringArray, content: _Content) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of a point inside every geometry, degrees, WGS 84."""
    geometry = content.geometry
    if geometry is None:
        raise GeographyError(f"{path} must have a geometry; without one name zones.longitude and zones.latitude")
    if content.crs is None:
        raise GeographyError(f"{path} must say its coordinate reference system (CRS); set it and save the file again")
    bare = ids.filter(pa.array(shapely.is_missing(geometry) | shapely.is_empty(geometry)))
    if len(bare):
        raise GeographyError(f"{path}: zone without coordinates: {len(bare)} geometries are empty: {some_of(bare)}")
    odd = ids.filter(pa.array(~np.isin(shapely.get_type_id(geometry), _GEOMETRY_TYPES)))
    if len(odd):
        raise GeographyError(f"{path}: zones must be points or polygons; not so {some_of(odd)}")
    with _readable(path):
        inner = shapely.point_on_surface(geometry)
        x, y = shapely.get_x(inner), shapely.get_y(inner)
        crs = pyproj.CRS.from_user_input(content.crs)
        if crs.to_epsg() == 4326:
            return x, y  # GeoPandas and GDAL keep longitude first, whatever the CRS says
        x, y = pyproj.Transformer.from_crs(crs, 4326, always_xy=True).transform(x, y)
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _text(path: Path, table: pa.Table, name: str) -> pa.StringArray:
    """Return an id column as one array of text, or refuse numbers."""
    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        what = "numbers" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "not text"
        raise GeographyError(
            f"{path}: ids must be text; those of column {name} are {what} ({kind}), leading zeros "
            f"may be lost; write the column as text from the original source"
        )
    whole = column.cast(pa.string()).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _numbers(path: Path, table: pa.Table, name: str, ids: pa.StringArray, problem: str) -> NDArray[np.float64]:
    """Return a column as float64; a zone whose value is missing or is no number is a fault."""
    column = table.column(name)
    try:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(column), characters="+")
            column = pc.if_else(pc.equal(plain, ""), pa.scalar(None, plain.type), plain)
        values = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        raise GeographyError(
            f"{path}: column {name} must hold numbers with a decimal point; it does not everywhere"
        ) from None
    values = np.asarray(values, dtype=np.float64)
    missing = ids.filter(pa.array(~np.isfinite(values)))
    if len(missing):
        raise GeographyError(f"{path}: {problem}: {len(missing)} have no value in column {name}: {some_of(missing)}")
    return values


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".geoparquet")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn every fault of a reading library into one error that names the file."""
    faults = (
        OSError, EOFError, ValueError, zlib.error, csv.Error, pa.ArrowException,
        pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, shapely.GEOSException,
        pyproj.exceptions.ProjError,
    )  # fmt: skip
    try:
        yield
    except faults as fault:
        reason = str(fault).strip().split("\n")[0]
        raise GeographyError(
            f"{path} must be a readable file in the format of its ending, text in UTF-8: {reason}"
        ) from None


def _column_names(path: Path, layer: str | None) -> list[str]:
    """Return the names of the columns in the file."""
    if not path.exists():
        raise GeographyError(f"{path} must be a file; there is none of that name")
    with _readable(path):
        if _is_csv(path):
            return _csv_header(path)
        if _is_parquet(path):
            return [str(name) for name in pq.read_schema(path).names]
        layers = [str(name) for name in pyogrio.list_layers(path)[:, 0]]
        if layer is None and len(layers) > 1:
            raise GeographyError(f"{path} must have one layer; name one as zones.layer: {', '.join(layers)}")
        return [str(name) for name in pyogrio.read_info(path, layer=layer)["fields"]]


def _csv_header(path: Path) -> list[str]:
    """Return the first line of a CSV file, split; a byte order mark is no part of it."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
        names = next(csv.reader(lines), [])
    if not names:
        raise GeographyError(f"{path} must start with a line of column names; it is empty")
    if len(set(names)) < len(names):
        raise GeographyError(f"{path}: column names must be unique")
    return names


def _content(path: Path, layer: str | None, names: list[str], wanted: list[str], *, geometry: bool = False) -> _Content:
    """Return the `wanted` columns, CSV as text and others as stored, and perhaps the geometries."""
    columns = list(dict.fromkeys(wanted))
    missing = [name for name in columns if name not in names]
    if missing:
        raise GeographyError(f"{path} must have the column {', '.join(missing)}; columns found: {', '.join(names)}")
    with _readable(path):
        if _is_csv(path):
            return _Content(_csv(path, columns))
        if _is_parquet(path):
            return _parquet(path, columns, geometry=geometry)
        return _layer(path, layer, columns, geometry=geometry)


def _csv(path: Path, columns: list[str]) -> pa.Table:
    """Return columns of a CSV file as text, nothing interpreted."""
    return pacsv.read_csv(
        path,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=False,
        ),
    )


def _parquet(path: Path, columns: list[str], *, geometry: bool) -> _Content:
    """Return columns of a Parquet file, with geometries if it is a GeoParquet file."""
    table = pq.read_table(path, columns=columns, partitioning=None)
    if not geometry or b"geo" not in (pq.read_schema(path).metadata or {}):
        return _Content(table)
    points = gpd.read_parquet(path).geometry
    return _Content(table, points.to_numpy(), points.crs)


def _layer(path: Path, layer: str | None, columns: list[str], *, geometry: bool) -> _Content:
    """Return columns, and perhaps geometries, of a GIS layer."""
    meta, table = pyogrio.read_arrow(path, layer=layer, columns=columns, read_geometry=geometry)
    name = meta["geometry_name"] or "wkb_geometry"
    if not geometry or name not in table.column_names:
        return _Content(table)
    shapes = shapely.from_wkb(table.column(name).to_numpy())
    return _Content(table.drop_columns([name]), shapes, meta["crs"])
