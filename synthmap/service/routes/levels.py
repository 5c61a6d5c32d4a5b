"""The levels of a release's zones: what can be asked for, and how fine it is."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from synthmap.published.extents import extent
from synthmap.published.places import ZONE
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep
from synthmap.service.formats import JSON, json_only
from synthmap.service.links import link

router = APIRouter(tags=["releases"], dependencies=[Depends(reads), Depends(json_only)])


@router.get("/releases/{release}/levels", summary="The levels of a release's zones", response_class=JSONResponse)
def read_levels(request: Request, opened: ReleaseDep) -> Response:
    """Return every level, the coarsest first, with its number of units, and the extent of the zones in degrees.

    West is above east where it crosses the antimeridian.
    """
    headers = kept(request, opened.etag)
    if has := not_modified(request, headers):
        return has
    table = opened.places.table
    units = {name: table[opened.places.level(name)].n_unique() for name in (*opened.places.levels, ZONE)}
    levels = [{"id": name, "units": number} for name, number in units.items()]
    links = [link(request, "self", JSON, "This list", "releases", opened.id, "levels")]
    return JSONResponse({"levels": levels, "extent": extent(opened), "links": links}, headers=headers)
