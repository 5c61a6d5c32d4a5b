"""CSV: one flat table of flows with the parents of both ends, and a file beside it that says what its columns are."""

import json
from pathlib import Path

import polars as pl

from synthmap.published.exports.about import about
from synthmap.published.exports.errors import COUNT_ERROR, errors_of_flows
from synthmap.published.exports.layers import unique
from synthmap.published.exports.lines import distance_km
from synthmap.published.exports.rows import Chunk, chunks
from synthmap.published.od_errors import ERROR
from synthmap.published.store import OpenedRelease

_ENDS = ("origin", "destination")


def write_csv(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write all flows to `path` as RFC 4180: UTF-8, CRLF, text in quotes, nothing where there is no value."""
    names, error = list(_columns(opened)), errors_of_flows(opened)
    with path.open("wb") as file:
        for place, chunk in enumerate(chunks(opened)):
            table = _flat(opened, chunk, error(chunk))
            table.columns = names
            table.write_csv(
                file, include_header=place == 0, line_terminator="\r\n", quote_style="non_numeric",
                float_scientific=False,
            )  # fmt: skip


def write_csv_metadata(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write what W3C calls metadata of tabular data (CSV on the Web): types of the columns, citation, promise."""
    told = about(opened)
    columns = [
        {"titles": name, "datatype": kind, "null": ""} | ({"name": name, "required": True} if name in _ENDS else {})
        for name, kind in _columns(opened).items()
    ]
    columns[len(_ENDS) + len(_numbers(opened))]["dc:description"] = COUNT_ERROR
    text = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": "flows.csv",
        "dc:title": told["title"],
        "dc:identifier": told["release"],
        "dc:bibliographicCitation": told["citation"],
        "dc:description": told["privacy_statement"],
        "notes": [told],
        "dialect": {"encoding": "utf-8", "lineTerminators": ["\r\n"], "header": True, "doubleQuote": True},
        "tableSchema": {"columns": columns, "primaryKey": list(_ENDS)},
    }
    path.write_text(json.dumps(text, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _columns(opened: OpenedRelease) -> dict[str, str]:
    """Return name and type of every column."""
    numbers = _numbers(opened)
    parents = [f"{end}_{level}" for end in _ENDS for level in opened.places.levels]
    names = unique([*_ENDS, *numbers, ERROR, "distance_km", *parents])
    kinds = ["string"] * 2 + ["integer"] * len(numbers) + ["number"] * 2 + ["string"] * len(parents)
    return dict(zip(names, kinds, strict=True))


def _numbers(opened: OpenedRelease) -> list[str]:
    return ["count", *opened.manifest.segments, *opened.interval]


def _flat(opened: OpenedRelease, chunk: Chunk, error: pl.Series) -> pl.DataFrame:
    """Return the rows of `chunk` with errors, distance and parents, columns in the order of `_columns`."""
    places = opened.places
    table = chunk.table.select(*_ENDS, *_numbers(opened))
    columns = [*table, error, pl.Series(distance_km(places, chunk.origin, chunk.destination), nan_to_null=True)]
    for rows in (chunk.origin, chunk.destination):
        at = pl.Series(rows)
        at = at.set(at < 0, None)
        columns += [places.table[level].gather(at) for level in places.levels]
    return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])
