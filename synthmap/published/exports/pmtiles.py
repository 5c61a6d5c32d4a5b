"""PMTiles: the vector tiles of flows, origins or destinations, all zooms in one file."""

import gzip
import math
import tempfile
from itertools import product
from pathlib import Path
from typing import Any, cast

import mapbox_vector_tile
import numpy as np
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer

from synthmap.published.exports.about import about
from synthmap.published.exports.rows import from_elsewhere
from synthmap.published.extents import extent, middle, width
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.tiles import Kind, properties, vector_tile
from synthmap.published.tiles_grid import MAXZOOM, Tile, flat, point, shown

TILES = 10_000  # of a zoom that are looked at; no finer zoom is written
_FEATURES = 10_000  # of a tile
_MORE = 1  # zooms beyond the one at which zones are told apart: outlines get finer, and weaker flows are seen
_OMITTED = (
    "Tiles are to be looked at: they show the strongest flows, and none from everywhere else (elsewhere; {workers:,} "
    "workers)."
)
_LAYERS = {"flows": ("flows", "within"), "origins": ("areas", "points"), "destinations": ("areas", "points")}


def write_pmtiles(opened: OpenedRelease, path: Path, part: str) -> None:
    """Write the tiles of `part` to `path`, down to a zoom at which zones are told apart; programs enlarge its tiles.

    Where a zoom would have more than `TILES`, the one before is the last.
    """
    kind = cast("Kind", part)
    with path.open("wb") as file, tempfile.TemporaryFile(dir=path.parent) as tiles:
        writer: Any = Writer(file)  # type: ignore[no-untyped-call]
        writer.tile_f.close()
        writer.tile_f = tiles  # in the place of the file, where there is room for it
        deepest, apart = 0, 0
        for deepest in range(MAXZOOM + 1):
            apart += _write(writer, opened, kind, _tiles(opened, deepest)) == {ZONE}
            if apart > _MORE or _count(opened, deepest + 1) > TILES:
                break
        header = {"tile_type": TileType.MVT, "tile_compression": Compression.GZIP} | _place(opened)
        writer.finalize(header, _metadata(opened, kind, deepest))


def _ranges(opened: OpenedRelease, zoom: int) -> tuple[range, range]:
    """Return the columns and rows of a zoom that may have something."""
    west, south, east, north = flat(shown(extent(opened)))
    (left, right), (top, bottom) = point(np.array([west, east - 1e-9]), np.array([north, south]))
    return (
        range(int(left * 2**zoom), int(right * 2**zoom) + 1),
        range(int(top * 2**zoom), int(bottom * 2**zoom) + 1),
    )


def _count(opened: OpenedRelease, zoom: int) -> int:
    columns, rows = _ranges(opened, zoom)
    return len(columns) * len(rows)


def _tiles(opened: OpenedRelease, zoom: int) -> list[Tile]:
    """Return the tiles of a zoom that may have something, in the order of the file."""
    tiles = (Tile(zoom, *at) for at in product(*_ranges(opened, zoom)))
    return sorted(tiles, key=lambda tile: zxy_to_tileid(*tile))


def _write(writer: Any, opened: OpenedRelease, kind: Kind, tiles: list[Tile]) -> set[str]:
    """Write tiles, those without anything left out; return the levels of the units of the first."""
    levels: set[str] = set()
    for tile in tiles:
        content = vector_tile(opened, kind, tile, _FEATURES)
        if content and not levels:
            layers = mapbox_vector_tile.decode(content).values()
            levels = {feature["properties"]["level"] for layer in layers for feature in layer["features"]}
        if content or tile.z == 0:  # a file has at least one
            writer.write_tile(zxy_to_tileid(*tile), gzip.compress(content, 6, mtime=0))
    return levels


def _place(opened: OpenedRelease) -> dict[str, int]:
    """Return bounds and centre as PMTiles wants them: in units of 1e-7 degrees."""
    west, south, east, north = bounds = shown(extent(opened))
    edges = dict(zip(("min_lon", "min_lat", "max_lon", "max_lat"), flat(bounds), strict=True))
    edges |= {"center_lon": middle(west, east), "center_lat": (south + north) / 2}
    widest = max(width(west, east) / 360, (north - south) / 180, 2.0**-MAXZOOM)
    return {f"{name}_e7": round(value * 1e7) for name, value in edges.items()} | {
        "center_zoom": max(0, math.floor(-math.log2(widest)))
    }


def _metadata(opened: OpenedRelease, kind: Kind, deepest: int) -> dict[str, Any]:
    """Return what the file says about itself and its layers."""
    told = about(opened, _OMITTED.format(workers=from_elsewhere(opened)) if kind == "flows" else "")
    fields = {name: "String" if type_ == "string" else "Number" for name, type_ in properties(opened, kind).items()}
    layers = [{"id": name, "fields": fields, "minzoom": 0, "maxzoom": deepest} for name in _LAYERS[kind]]
    return told | {
        "name": f"{kind.capitalize()}: {told['title']}",
        "description": told["privacy_statement"],
        "attribution": told["release"],
        "type": "overlay",
        "vector_layers": layers,
    }
