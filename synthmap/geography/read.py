"""Read zones from the public files people have: LODES crosswalks, tables, and GIS layers.

Ids stay text from end to end. A file that stores them as numbers is refused, because its leading
zeros are already lost; only CSV, which has no types, is read as text whatever it looks like.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.errors import GeographyError, VintageError
from synthmap.geography.canonical import canonical
from synthmap.geography.columns import column_names, is_csv, read_content
from synthmap.geography.zones import Zones, some_of
from synthmap.spec import Weights, ZonesSpec

CROSSWALK_IDS = {"tabblk2010": "2010", "tabblk2020": "2020"}
CROSSWALK_LEVELS = ("st", "cty", "trct", "bgrp")
LARGEST_TOTAL = 2**53


@dataclass(frozen=True)
class _Layout:
    """Which columns of the zones file say what; without coordinate columns, its geometry does."""

    id: str
    levels: tuple[str, ...]
    coordinates: tuple[str, str] | None
    weight: str | None
    crosswalk: bool


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
        has no coordinates or no weight, or the zones break a rule of `canonical`.
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

    *Shapes*: polygons of the layer, or of the separate file ``zones.shapes``, are kept to be drawn; nothing
    else depends on them.

    *Weights*: 1 for every zone if the spec names none. Whole numbers are kept. If any weight has a
    fraction, all are multiplied by the smallest power of ten (at least 1) that brings the largest
    to a million or more, then rounded half up.
    """
    names = column_names(spec.path, spec.layer)
    layout = _layout(spec, names)
    _check_vintages(spec, layout)
    wanted = [layout.id, *layout.levels, *(layout.coordinates or ())]
    wanted += [layout.weight] if layout.weight else []
    with ThreadPoolExecutor(1) as pool:  # two files, side by side
        beside = pool.submit(_weights_table, spec.weights) if spec.weights else None
        content = read_content(spec.path, spec.layer, names, wanted, geometry=not layout.coordinates)
        weights = beside.result() if beside else None
    table = content.table
    ids = _text(spec.path, table, layout.id)
    if len(ids) == 0:
        raise GeographyError(f"zones file ({spec.path}) must hold at least one zone; it has none")
    parents = [_text(spec.path, table, level) for level in layout.levels]
    if layout.crosswalk:
        parents = _without_nines(parents)
    shapes = _joined_shapes(spec, ids)
    if layout.coordinates is None:
        from synthmap.geography.shapes import points_inside, polygons

        longitude, latitude = points_inside(spec.path, ids, content)
        shapes = shapes or polygons(spec.path, ids, content)
    else:
        longitude, latitude = (
            _numbers(spec.path, table, name, ids, "zone without coordinates") for name in layout.coordinates
        )
    return canonical(
        ids=ids,
        longitude=longitude,
        latitude=latitude,
        weight=_weight(spec, layout, table, weights, ids),
        levels=layout.levels,
        parents=tuple(parents),
        vintage=spec.vintage,
        shapes=shapes,
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
    elif is_csv(spec.path):
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
    for name, other in (("weights", spec.weights), ("shapes", spec.shapes)):
        if other is not None and other.vintage != spec.vintage:
            raise VintageError(
                f"zones.{name}.vintage ({other.vintage}) must be zones.vintage ({spec.vintage}); "
                f"use {name} of the same zones"
            )


def _without_nines(parents: Sequence[pa.StringArray]) -> list[pa.StringArray]:
    """Return the parents with codes of nines only replaced by one of each coarser parent's own."""
    replaced: list[pa.StringArray] = []
    for names in parents:
        distinct = pc.unique(names)
        nines = distinct.filter(pc.match_substring_regex(distinct, "^9+$"))
        if len(nines) == 0:
            replaced.append(names)
            continue
        own = pc.binary_join_element_wise(replaced[-1], "none", ":") if replaced else "none"
        replaced.append(pc.if_else(pc.is_in(names, value_set=nines), own, names))
    return replaced


def _weight(
    spec: ZonesSpec, layout: _Layout, table: pa.Table, weights: pa.Table | None, ids: pa.StringArray
) -> NDArray[np.int64]:
    """Return the weight of every zone, from its own file, from a separate one, or 1."""
    if layout.weight is not None:
        return _whole(ids, _numbers(spec.path, table, layout.weight, ids, "zone without weight"))
    if spec.weights is not None and weights is not None:
        return _whole(ids, _joined_weight(spec.weights, weights, ids))
    return np.ones(len(ids), np.int64)


def _weights_table(spec: Weights) -> pa.Table:
    return read_content(spec.path, None, column_names(spec.path, None), [spec.id, spec.column]).table


def _joined_weight(spec: Weights, table: pa.Table, ids: pa.StringArray) -> NDArray[np.float64]:
    """Return the weight of every zone from the separate table, whose other ids do not matter."""
    place = _places(spec.path, _text(spec.path, table, spec.id), spec.id, ids, f"a weight in column {spec.column}")
    return _numbers(spec.path, table.take(place), spec.column, ids, "zone without weight")


def _joined_shapes(spec: ZonesSpec, ids: pa.StringArray) -> pa.Array | None:
    """Return the shape of every zone from the separate layer, whose other ids do not matter."""
    if spec.shapes is None:
        return None
    path, name = spec.shapes.path, spec.shapes.id
    found = read_content(path, spec.shapes.layer, column_names(path, spec.shapes.layer), [name], geometry=True)
    place = _places(path, _text(path, found.table, name), name, ids, "a shape")
    shapes = None if found.geometry is None else found.geometry[place.to_numpy()]
    from synthmap.geography.shapes import polygons

    return polygons(path, ids, replace(found, geometry=shapes))


def _places(path: Path, keys: pa.StringArray, name: str, ids: pa.StringArray, what: str) -> pa.Array:
    """Return the row of every zone in the other file, or refuse ids that are there twice or not at all."""
    counts = pc.value_counts(keys)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise GeographyError(f"{path}: ids of column {name} must be unique; not so {some_of(twice)}")
    place = pc.index_in(ids, value_set=keys)
    if place.null_count:
        missing = ids.filter(pc.is_null(place))
        raise GeographyError(f"{path}: every zone must have {what}; {len(missing)} are missing: {some_of(missing)}")
    return place


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
