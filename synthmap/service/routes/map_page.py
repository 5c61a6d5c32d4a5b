"""The map: a page that asks the service's other routes. It holds nothing of any release; its files need no key."""

from hashlib import sha256
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from synthmap import __version__
from synthmap.errors import NotFoundError
from synthmap.published.areas.buffers import FARTHEST_M
from synthmap.service.caching import not_modified
from synthmap.service.compress import accepts_gzip
from synthmap.service.context import ServiceDep
from synthmap.service.formats import HTML, json_only, negotiate
from synthmap.service.html import page
from synthmap.service.links import href
from synthmap.service.openapi import offers
from synthmap.service.web_page import PageFile, built_page, policy

router = APIRouter(tags=["map"])

_YEAR = "public, max-age=31536000, immutable"


@router.get("/map", summary="The map, for people", response_class=Response, responses=offers(HTML))
def read_map(request: Request, service: ServiceDep) -> Response:
    """Return the page; 404 and how to build it where it is not built."""
    negotiate(request, {"html": HTML})
    found = built_page()
    if found is None:
        return page(request, "map_missing.html", (href(request), "Start"), status=404)
    tiles = service.settings.map_tiles
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": policy(tiles)}
    if tiles:  # many refuse whoever does not say where from; without path and query, that tells of no key
        headers["Referrer-Policy"] = "strict-origin"
    return _answer(request, found.html, headers)


@router.get("/map/settings", summary="What the map needs to know", dependencies=[Depends(json_only)])
async def read_settings(service: ServiceDep) -> dict[str, Any]:
    """Return version, whether reading needs a key, the base map, and the limits that the page tells beforehand."""
    settings = service.settings
    return {
        "version": __version__,
        "anonymous": settings.anonymous,
        "tiles": settings.map_tiles or None,
        "attribution": settings.map_attribution,
        "upload_bytes": settings.body_bytes_maximum,
        "farthest_m": FARTHEST_M,
    }


@router.get("/map/{name}", summary="A file of the map", response_class=Response, responses=offers("text/javascript"))
def read_file(request: Request, name: str) -> Response:
    """Return one of the files that the page names; its name changes with its content."""
    found = built_page()
    file = None if found is None else found.files.get(name)
    if file is None:
        raise NotFoundError(f"file ({name}) must be one that the page at /map names; load the page again")
    return _answer(request, file, {"Cache-Control": _YEAR})


def _answer(request: Request, file: PageFile, headers: dict[str, str]) -> Response:
    """Return a file, or 304 to whoever has it."""
    headers |= {"ETag": f'"{sha256(file.content).hexdigest()}"', "Vary": "Accept-Encoding"}
    if known := not_modified(request, headers):
        return known
    if not accepts_gzip(request.scope):
        return Response(file.content, headers=headers, media_type=file.media_type)
    headers |= {"Content-Encoding": "gzip", "ETag": f"W/{headers['ETag']}"}
    return Response(file.packed, headers=headers, media_type=file.media_type)
