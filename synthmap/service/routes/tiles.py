"""OGC API – Tiles: vector tiles of a release's flows and zones, and what is said about them."""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import JSONResponse, Response

from synthmap import __version__
from synthmap.errors import NotFoundError
from synthmap.published.features import LAYERS
from synthmap.published.store import OpenedRelease
from synthmap.published.tiles import Kind, vector_tile
from synthmap.published.tiles_grid import MAXZOOM, TMS, Tile
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.compress import accepts_gzip
from synthmap.service.context import ServiceDep
from synthmap.service.feature_documents import collection_id
from synthmap.service.formats import JSON, negotiate
from synthmap.service.links import link
from synthmap.service.tile_documents import GRID, MVT, describe_grid, describe_set, summarize_set, tilejson

router = APIRouter(tags=["tiles"], dependencies=[Depends(reads)])

CONFORMS_TO = (
    *(
        f"http://www.opengis.net/spec/ogcapi-tiles-1/1.0/conf/{name}"
        for name in ("core", "tileset", "tilesets-list", "geodata-tilesets", "mvt", "oas30")
    ),
    *(f"http://www.opengis.net/spec/tms/2.0/conf/{name}" for name in ("tilematrixset", "json-tilematrixset")),
)
_OFFERED = {"json": JSON}


@dataclass(frozen=True)
class Tiled:
    """A collection that has tiles."""

    opened: OpenedRelease
    kind: Kind


def tiled(
    service: ServiceDep,
    collection: Annotated[str, Path(alias="collectionId", description="Release and layer: <release>.flows, …")],
) -> Tiled:
    """Return the release and the layer that a collection is; 404 where there is none."""
    release, _, kind = collection.rpartition(".")
    opened = service.releases.open(release)
    if kind not in LAYERS:
        raise NotFoundError(f"collection ({collection}) must be one of the service's")
    return Tiled(opened, cast(Kind, kind))


TiledDep = Annotated[Tiled, Depends(tiled)]
Zoom = Annotated[int, Path(alias="tileMatrix", description=f"Zoom, 0 to {MAXZOOM}.")]
Row = Annotated[int, Path(alias="tileRow", description="From the north, from 0.")]
Column = Annotated[int, Path(alias="tileCol", description="From the west, from 0.")]


@router.get("/tileMatrixSets", summary="Grids of tiles")
def list_grids(request: Request) -> dict[str, Any]:
    """Return the grids that tiles come in: one."""
    negotiate(request, _OFFERED)
    grid = {"id": GRID, "title": TMS.title, "uri": TMS.uri, "crs": describe_grid()["crs"]}
    return {"tileMatrixSets": [grid | {"links": [link(request, "self", JSON, "The grid", "tileMatrixSets", GRID)]}]}


@router.get(f"/tileMatrixSets/{GRID}", summary="The grid of the tiles")
def read_grid(request: Request) -> dict[str, Any]:
    """Return the grid WebMercatorQuad."""
    negotiate(request, _OFFERED)
    return describe_grid()


@router.get("/collections/{collectionId}/tiles", summary="Sets of tiles of a collection")
def list_sets(request: Request, tiled: TiledDep) -> Response:
    """Return the sets of tiles of a collection: one."""
    negotiate(request, _OFFERED)
    here = link(request, "self", JSON, "This list", "collections", collection_id(tiled.opened, tiled.kind), "tiles")
    return _document(request, tiled, {"links": [here], "tilesets": [summarize_set(request, tiled.opened, tiled.kind)]})


@router.get(f"/collections/{{collectionId}}/tiles/{GRID}", summary="A set of tiles")
def read_set(request: Request, tiled: TiledDep) -> Response:
    """Return layers, properties, extent and limits of the tiles of a collection."""
    negotiate(request, _OFFERED)
    return _document(request, tiled, describe_set(request, tiled.opened, tiled.kind))


@router.get(f"/collections/{{collectionId}}/tiles/{GRID}/tilejson.json", summary="A set of tiles as TileJSON 3.0")
def read_tilejson(request: Request, tiled: TiledDep) -> Response:
    """Return what MapLibre and others need to draw the tiles of a collection."""
    negotiate(request, _OFFERED)
    return _document(request, tiled, tilejson(request, tiled.opened, tiled.kind))


@router.get(
    f"/collections/{{collectionId}}/tiles/{GRID}/{{tileMatrix}}/{{tileRow}}/{{tileCol}}",
    summary="A tile",
    response_class=Response,
    responses={
        200: {"content": {MVT: {"schema": {"type": "string", "format": "binary"}}}},
        204: {"description": "Nothing is there"},
        304: {"description": "Not changed"},
    },
)
def read_tile(request: Request, tiled: TiledDep, service: ServiceDep, zoom: Zoom, row: Row, column: Column) -> Response:
    """Return a Mapbox vector tile; row before column."""
    negotiate(request, {"mvt": MVT})
    tile, most = Tile(zoom, column, row), service.settings.tile_features_maximum
    if not tile.exists:
        raise NotFoundError(f"tile ({zoom}/{row}/{column}) must lie in {GRID}, its zoom between 0 and {MAXZOOM}")
    asked = ("tiles", "tile", tiled.kind, tile, most)
    headers = _headers(request, f"{tiled.opened.etag}/{__version__}/{asked}")
    known = not_modified(request, headers)
    if known is not None:
        return known
    packed = tiled.opened.memory.get((tiled.opened.etag, *asked), lambda: _pack(tiled, tile, most)).content
    if not packed:
        return Response(status_code=204, headers=headers)
    if not accepts_gzip(request.scope):
        return Response(gzip.decompress(packed), headers=headers, media_type=MVT)
    headers |= {"Content-Encoding": "gzip", "ETag": f"W/{headers['ETag']}"}  # other bytes, the same tile
    return Response(packed, headers=headers, media_type=MVT)


@dataclass(frozen=True)
class _Packed:
    """A tile compressed with gzip; nothing where the tile is empty."""

    content: bytes

    @property
    def nbytes(self) -> int:
        return len(self.content) + 1_000  # with its key


def _pack(tiled: Tiled, tile: Tile, most: int) -> _Packed:
    """Return a tile, made and compressed once."""
    content = vector_tile(tiled.opened, tiled.kind, tile, most)
    return _Packed(gzip.compress(content, 6, mtime=0) if content else b"")


def _headers(request: Request, named: str) -> dict[str, str]:
    """Return the headers of a tile."""
    headers = kept(request, sha256(named.encode()).hexdigest())
    return headers | {"Vary": headers["Vary"] + ", Accept-Encoding"}


def _document(request: Request, tiled: Tiled, document: dict[str, Any]) -> Response:
    """Return a description, which depends on the release and on how the service is addressed."""
    headers = kept(request, sha256(f"{tiled.opened.etag}/{__version__}/{document}".encode()).hexdigest())
    return not_modified(request, headers) or JSONResponse(document, headers=headers)
