"""A page of flows as bytes: JSON, CSV, GeoJSON, Parquet or an Arrow stream. Each says which release it is from."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from synthmap.published.exports.about import about, citation
from synthmap.published.od import Page
from synthmap.published.od_errors import ERROR
from synthmap.published.store import OpenedRelease

DECIMALS = 7  # of degrees: a centimetre

Writer = Callable[[OpenedRelease, Page, dict[str, Any]], bytes]


def source(opened: OpenedRelease) -> dict[str, Any]:
    """Return what an answer says about where it comes from."""
    manifest = opened.manifest
    return {
        "release": opened.id,
        "title": manifest.title or manifest.name,
        "citation": citation(opened),
        "year": manifest.year,
        "vintage": manifest.zones.vintage,
        "epsilon": manifest.privacy.dp.epsilon,
        "delta": manifest.privacy.dp.delta,
        "private": manifest.private,
        "warning": manifest.warning,
    }


def write_json(opened: OpenedRelease, page: Page, extra: dict[str, Any]) -> bytes:
    """Return one object: the source, `extra`, and ``rows``, one object a flow."""
    return _object(source(opened) | extra, "rows", page.rows.write_json())


def write_geojson(opened: OpenedRelease, page: Page, extra: dict[str, Any]) -> bytes:
    """Return a feature collection: lines from origin to destination, straight in degrees.

    A flow within a unit is a point, since a line without length is invalid; one from everywhere else has no geometry;
    a line that is shorter across the antimeridian is cut there (RFC 7946).
    """
    properties = page.rows.select(pl.struct(pl.all()).struct.json_encode().alias("p"))["p"]
    parts = zip(_geometries(page), properties, strict=True)
    features = ",".join(f'{{"type":"Feature","geometry":{g},"properties":{p}}}' for g, p in parts)
    return _object({"type": "FeatureCollection"} | source(opened) | extra, "features", f"[{features}]")


def write_csv(opened: OpenedRelease, page: Page, extra: dict[str, Any]) -> bytes:
    """Return RFC 4180 text: UTF-8, CRLF, ids in quotes and exactly as they are.

    An id that starts with ``=``, ``+``, ``-`` or ``@`` is not changed, since it is data and must be found again; import
    the file as text instead of opening it in a spreadsheet, which would also take zeros away.
    """
    return page.rows.write_csv(quote_style="non_numeric", line_terminator="\r\n").encode()


def write_parquet(opened: OpenedRelease, page: Page, extra: dict[str, Any]) -> bytes:
    """Return a Parquet file whose metadata tell the source."""
    out = BytesIO()
    pq.write_table(_arrow(opened, page), out, compression="zstd")
    return out.getvalue()


def write_arrow(opened: OpenedRelease, page: Page, extra: dict[str, Any]) -> bytes:
    """Return an Arrow IPC stream whose metadata tell the source."""
    table = _arrow(opened, page)
    out = BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _object(head: dict[str, Any], name: str, array: str) -> bytes:
    """Return a JSON object with one more member, an array that is JSON already."""
    start = json.dumps(head, ensure_ascii=False, separators=(",", ":"))[:-1]
    return f"{start},{json.dumps(name)}:{array}}}".encode()


def _arrow(opened: OpenedRelease, page: Page) -> pa.Table:
    """Return the rows with types that every reader knows."""
    table = page.rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    kinds = {"origin": pa.string(), "destination": pa.string(), ERROR: pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in table.column_names])
    return table.cast(schema).replace_schema_metadata(about(opened))


def _geometries(page: Page) -> list[str]:
    """Return the geometry of every row as JSON."""
    # adding 0 turns -0.0 into 0.0
    ends = np.round(np.stack([page.origins, page.destinations], axis=1), DECIMALS) + 0.0
    placed = np.isfinite(ends).all(axis=(1, 2))
    return [_geometry(*line) if good else "null" for line, good in zip(ends.tolist(), placed, strict=True)]


def _geometry(start: list[float], end: list[float]) -> str:
    if start == end:
        return f'{{"type":"Point","coordinates":{start}}}'
    (west, south), (east, north) = start, end
    if abs(west - east) <= 180.0:
        return f'{{"type":"LineString","coordinates":[{start},{end}]}}'
    edge = 180.0 if west > 0 else -180.0
    crossing = round(south + (edge - west) / (east + 2 * edge - west) * (north - south), DECIMALS)
    halves = [[start, [edge, crossing]], [[-edge, crossing], end]]
    lines = [half for half in halves if half[0] != half[1]]
    return f'{{"type":"MultiLineString","coordinates":{lines}}}'
