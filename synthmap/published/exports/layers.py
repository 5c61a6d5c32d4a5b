"""The three layers that GIS formats carry: flows, origins and destinations."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.exports.errors import COUNT_ERROR, errors_of_flows, errors_of_residents
from synthmap.published.exports.lines import desire_lines, distance_km
from synthmap.published.exports.rows import Totals, chunks, totals
from synthmap.published.od_errors import ERROR
from synthmap.published.places import Places
from synthmap.published.store import OpenedRelease

RESERVED = (
    "geometry",
    "geom",
    "bbox",
    "fid",
    "ogc_fid",
)  # columns of the formats themselves, and of those who read them
LAYERS = ("flows", "origins", "destinations")
_ZONES = 16_384  # of a batch; polygons are large
_POINTS, _AREAS = {"Point", "MultiPoint"}, {"Polygon", "MultiPolygon"}

Batch = tuple[pa.RecordBatch, NDArray[np.object_]]


@dataclass(frozen=True)
class Layer:
    """One layer, made while it is read.

    Attributes
    ----------
    name : str
    title, description : str
        For people.
    schema : pyarrow.Schema
        The attributes; ids are text.
    geometry_type : str
        In the words of OGR; ``Unknown`` where a layer has several.
    batches : callable
        Yields attributes and shapely geometries (None for everywhere else), WGS 84, in the order of the release.
    """

    name: str
    title: str
    description: str
    schema: pa.Schema
    geometry_type: str
    batches: Callable[[], Iterator[Batch]]


def layer(opened: OpenedRelease, name: str) -> Layer:
    """Return the layer called `name`, one of `LAYERS`."""
    return {"flows": _flows, "origins": _origins, "destinations": _destinations}[name](opened)


def unique(names: Iterable[str], shorten: Callable[[str, str], str] = lambda name, end: name + end) -> list[str]:
    """Return `names`, a number put after those that differ from an earlier one in upper and lower case only, or not.

    `shorten` joins a name and such a number; it may cut the name.
    """
    taken: set[str] = set()
    out = []
    for name in names:
        free = shorten(name, "")
        number = 1
        while free.casefold() in taken:
            number += 1
            free = shorten(name, f"_{number}")
        taken.add(free.casefold())
        out.append(free)
    return out


def _schema(fields: list[tuple[str, pa.DataType]]) -> pa.Schema:
    """Return a schema of fields that differ from each other and from `RESERVED`, upper and lower case aside."""
    names = unique([*RESERVED, *(name for name, _ in fields)])[len(RESERVED) :]
    return pa.schema(list(zip(names, (kind for _, kind in fields), strict=True)))


def _batch(schema: pa.Schema, columns: Iterable[object]) -> pa.RecordBatch:
    """Return columns (polars Series, arrays) as they are in `schema`."""
    arrays = [_array(column, field.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(column: object, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pl.Series):
        return column.to_arrow().cast(kind)
    return pa.array(column, kind, from_pandas=True)


def _flows(opened: OpenedRelease) -> Layer:
    columns = ["count", *opened.manifest.segments]
    schema = _schema(
        [
            ("origin", pa.string()),
            ("destination", pa.string()),
            *((name, pa.int64()) for name in columns),
            (ERROR, pa.float64()),
            ("distance_km", pa.float64()),
        ]
    )

    def batches() -> Iterator[Batch]:
        error = errors_of_flows(opened)
        for chunk in chunks(opened):
            ends = (opened.places, chunk.origin, chunk.destination)
            values = [chunk.table[name] for name in ("origin", "destination", *columns)]
            yield _batch(schema, [*values, error(chunk), distance_km(*ends)]), desire_lines(*ends)

    text = (
        "Synthetic workers by origin and destination. Lines run between internal points; a flow within a zone is a "
        "point; one from everywhere else has no geometry. distance_km is the great circle between internal points. "
        + COUNT_ERROR
    )
    return Layer("flows", "Flows", text, schema, "Unknown", batches)


def _zones(
    opened: OpenedRelease,
    name: str,
    text: str,
    extra: list[tuple[str, pa.DataType]],
    read: Callable[[], tuple[Totals, NDArray[np.int64], list[NDArray[np.generic]]]],
) -> Layer:
    """Return a layer of zones; `read` gives totals, the rows of places to show, and the extra columns at these rows."""
    places, segments = opened.places, opened.manifest.segments
    schema = _schema(
        [
            ("id", pa.string()),
            *((level, pa.string()) for level in places.levels),
            ("weight", pa.int64()),
            *((column, pa.int64()) for column in ("count", *segments)),
            ("within", pa.int64()),
            *extra,
        ]
    )

    def batches() -> Iterator[Batch]:
        found, rows, more = read()
        for start in range(0, rows.size, _ZONES):
            part = slice(start, start + _ZONES)
            at = rows[part]
            known = places.table[at[at >= 0]]
            values = [known[level] for level in ("id", *places.levels, "weight")]
            if (at < 0).any():  # everywhere else is the last
                outside = [ELSEWHERE, *(None for _ in places.levels), 0]
                values = [column.extend_constant(value, 1) for column, value in zip(values, outside, strict=True)]
            numbers = [*found.sums[at].T, found.within[at], *(column[part] for column in more)]
            drawn = np.full(at.size, None, object)
            drawn[at >= 0] = _uniform(places, at[at >= 0])
            yield _batch(schema, [*values, *numbers]), drawn

    return Layer(name, name.capitalize(), text, schema, _kind(opened), batches)


def _origins(opened: OpenedRelease) -> Layer:
    def read() -> tuple[Totals, NDArray[np.int64], list[NDArray[np.generic]]]:
        rows, found = np.arange(len(opened.places)), totals(opened, "origin")
        error = errors_of_residents(opened, found.sums[:, 0]).to_numpy()
        rows = np.append(rows, -1) if opened.manifest.zones.elsewhere else rows
        return found, rows, [error[rows]]

    text = (
        "All zones: count are the synthetic workers who live there, within: of whom work in the same zone; "
        f"weight is the public mass behind the prior. {COUNT_ERROR} It is that of residents who went evenly to all "
        "destinations: of a single zone up to 6 times what an analysis of it tells."
    )
    return _zones(opened, "origins", text, [(ERROR, pa.float64())], read)


def _destinations(opened: OpenedRelease) -> Layer:
    def read() -> tuple[Totals, NDArray[np.int64], list[NDArray[np.generic]]]:
        found = totals(opened, "destination")
        rows = np.flatnonzero(found.sums[:, 0])
        plan = opened.collect(opened.plan.select("destination", "headcount", "prior_share"))
        plan = opened.places.table[rows].select("id").join(
            plan, left_on="id", right_on="destination", how="left", maintain_order="left"
        )  # fmt: skip
        if plan["headcount"].has_nulls():
            raise ReleaseCorruptError(f"release {opened.id}: plan.parquet lacks a destination of od/")
        more = [found.from_elsewhere[rows], plan["headcount"].to_numpy(), plan["prior_share"].to_numpy()]
        return found, rows, more

    text = (
        "Zones in which people work: headcount is published exactly, count are the synthetic workers, within: of whom "
        "live in the same zone, from_elsewhere: of whom live off the map, prior_share: which share of them "
        "is expected to come from the public prior rather than from data."
    )
    extra = [("from_elsewhere", pa.int64()), ("headcount", pa.int64()), ("prior_share", pa.float64())]
    return _zones(opened, "destinations", text, extra, read)


def _uniform(places: Places, rows: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return geometries of one type as far as can be: multipolygons for polygons, internal points for multipoints."""
    shapes = places.geometry(rows).copy()
    kind = shapely.get_type_id(shapes)
    single, several = kind == shapely.GeometryType.POLYGON, kind == shapely.GeometryType.MULTIPOINT
    if single.any():
        shapes[single] = shapely.multipolygons(shapes[single][:, None])
    shapes[several] = shapely.points(places.longitude[rows[several]], places.latitude[rows[several]])
    return shapes


def _kind(opened: OpenedRelease) -> str:
    """Return the geometry type of the layers of zones."""
    heads = {bytes(shape[:5]): shape for shape in opened.places.shapes}
    kinds = {shapely.from_wkb(shape).geom_type for shape in heads.values()}
    if kinds <= _POINTS:
        return "Point"
    return "MultiPolygon" if kinds <= _AREAS else "Unknown"
