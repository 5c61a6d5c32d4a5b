"""What is said about tiles: sets of tiles as OGC API – Tiles describes them, and the same as TileJSON."""

import html
import math
from typing import Any

import numpy as np
from fastapi import Request

from synthmap.published.boxes import CRS84
from synthmap.published.extents import extent, middle, width
from synthmap.published.store import OpenedRelease
from synthmap.published.tiles import Kind, properties
from synthmap.published.tiles_grid import MAXZOOM, TMS, flat, point, shown, world
from synthmap.release.statement_words import kind_and_amounts
from synthmap.service.feature_documents import collection_id
from synthmap.service.formats import JSON
from synthmap.service.html import caution
from synthmap.service.links import href, link

MVT = "application/vnd.mapbox-vector-tile"
GRID = "WebMercatorQuad"
TILING = "http://www.opengis.net/def/rel/ogc/1.0/tiling-scheme"
MERCATOR = "http://www.opengis.net/def/crs/EPSG/0/3857"
_FINER = "Where units could not be told apart at a zoom, they are summed: to a coarser level, or to cells of a grid."
_LAYERS = {
    "flows": (
        ("flows", 1, f"The strongest flows across a tile, from origin to destination. {_FINER}"),
        ("within", 0, "Flows within a unit, or too short to be a line."),
    ),
    "origins": (
        ("areas", 2, "Zones that have polygons, at zooms at which they can be told apart."),
        ("points", 0, f"Where synthetic workers live. {_FINER}"),
    ),
    "destinations": (
        ("areas", 2, "Zones that have polygons, at zooms at which they can be told apart."),
        ("points", 0, f"Where synthetic workers work. {_FINER}"),
    ),
}


def describe_grid() -> dict[str, Any]:
    """Return the tile matrix set (OGC 17-083r4)."""
    return TMS.model_dump(mode="json", exclude_none=True)


def describe_set(request: Request, opened: OpenedRelease, kind: Kind) -> dict[str, Any]:
    """Return the description of a set of tiles (OGC 17-083r4)."""
    west, south, east, north = shown(extent(opened))
    here = ("collections", collection_id(opened, kind), "tiles")
    fields = {name: {"type": type_} for name, type_ in properties(opened, kind).items()}
    return summarize_set(request, opened, kind) | {
        "description": _description(opened),
        "attribution": _attribution(opened),
        "boundingBox": {"lowerLeft": [west, south], "upperRight": [east, north], "crs": CRS84},
        "tileMatrixSetLimits": _limits(opened),
        "layers": [
            {
                "id": name,
                "dataType": "vector",
                "geometryDimension": dimension,
                "description": text,
                "minTileMatrix": "0",
                "maxTileMatrix": str(MAXZOOM),
                "propertiesSchema": {"type": "object", "properties": fields},
            }
            for name, dimension, text in _LAYERS[kind]
        ],
        "links": [
            *summarize_set(request, opened, kind)["links"],
            link(request, "alternate", JSON, "The same as TileJSON", *here, GRID, "tilejson.json"),
        ],
    }


def summarize_set(request: Request, opened: OpenedRelease, kind: Kind) -> dict[str, Any]:
    """Return what a list says about a set of tiles."""
    here = ("collections", collection_id(opened, kind), "tiles", GRID)
    item = link(request, "item", MVT, "Tiles", *here)
    return {
        "title": f"{kind.capitalize()}: {opened.manifest.title or opened.manifest.name}",
        "dataType": "vector",
        "crs": MERCATOR,
        "tileMatrixSetURI": TMS.uri,
        "links": [
            link(request, "self", JSON, "This set of tiles", *here),
            link(request, TILING, JSON, "The grid", "tileMatrixSets", GRID),
            item | {"href": item["href"] + "/{tileMatrix}/{tileRow}/{tileCol}", "templated": True},
        ],
    }


def tilejson(request: Request, opened: OpenedRelease, kind: Kind) -> dict[str, Any]:
    """Return the set of tiles as TileJSON 3.0."""
    name = collection_id(opened, kind)
    west, south, east, north = bounds = shown(extent(opened))
    fields = {name: "String" if type_ == "string" else "Number" for name, type_ in properties(opened, kind).items()}
    across = width(west, east)
    (left, right), (bottom, top) = world(np.array([0.0, across]), np.array([south, north]))
    zoom = math.floor(-math.log2(max(right - left, bottom - top, 2.0**-MAXZOOM)))
    return {
        "tilejson": "3.0.0",
        "name": f"{kind.capitalize()}: {opened.manifest.title or opened.manifest.name}",
        "description": _description(opened),
        "attribution": html.escape(_attribution(opened)),  # clients show it as HTML
        "version": "1.0.0",
        "scheme": "xyz",
        "tiles": [href(request, "collections", name, "tiles", GRID) + "/{z}/{y}/{x}"],
        "minzoom": 0,
        "maxzoom": MAXZOOM,
        "bounds": list(flat(bounds)),
        "center": [middle(west, east), (south + north) / 2, max(0, zoom)],
        "vector_layers": [
            {"id": layer, "description": text, "minzoom": 0, "maxzoom": MAXZOOM, "fields": fields}
            for layer, _, text in _LAYERS[kind]
        ],
    }


def _limits(opened: OpenedRelease) -> list[dict[str, Any]]:
    """Return for each zoom the rows and columns that have something."""
    west, south, east, north = flat(shown(extent(opened)))
    (left, right), (low, high) = point(np.array([west, east - 1e-9]), np.array([north, south]))
    return [
        {
            "tileMatrix": str(zoom),
            "minTileRow": int(low * 2**zoom),
            "maxTileRow": int(high * 2**zoom),
            "minTileCol": int(left * 2**zoom),
            "maxTileCol": int(right * 2**zoom),
        }
        for zoom in range(MAXZOOM + 1)
    ]


def _description(opened: OpenedRelease) -> str:
    care = caution(opened.manifest)
    return " ".join(part for part in (care.warning, care.text) if part)


def _attribution(opened: OpenedRelease) -> str:
    """Return one line for the corner of a map: whose figures, of when, and what is promised."""
    manifest = opened.manifest
    year = f" {manifest.year}" if manifest.year is not None else ""
    _, loss = kind_and_amounts(manifest.privacy.dp.epsilon, manifest.privacy.dp.delta)
    private = "" if manifest.private else ", NOT PRIVATE"
    return f"{manifest.title or manifest.name}{year}, synthetic, {loss}{private}; synthmap release {opened.id}"
