"""Areas as requests say them: ids or a point in the address; GeoJSON, objects or files in the body."""

import threading
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.exceptions import HTTPException

from synthmap.errors import QueryError
from synthmap.published.areas.area import Area, area_of_zones
from synthmap.published.areas.objects import area_from, buffered, read_json
from synthmap.published.areas.shapes import Shape, read_geojson
from synthmap.published.areas.upload import read_upload
from synthmap.published.places import ZONE
from synthmap.service.context import ReleaseDep
from synthmap.service.formats import GEOJSON, JSON
from synthmap.service.parameters import numbers
from synthmap.service.problems import Problem

MULTIPART = "multipart/form-data"
FILES = (
    "application/vnd.google-earth.kml+xml", "application/vnd.google-earth.kmz", "application/geopackage+sqlite3",
    "application/zip", "application/x-zip-compressed", "application/octet-stream",
)  # fmt: skip
_OBJECTS = '{"zones": [ids], "level": …} or {"around": either, "buffer_m": metres, "inner_m": metres}'
_PARTS = 2
_TURN = threading.BoundedSemaphore(2)  # files read at a time: each may start a process
_WAIT = 30.0  # seconds

Areas = dict[str, Area]
Ids = Annotated[list[str], Query(description="Id at its level, as text; may be repeated.")]
Level = Annotated[str, Query(description=f"Level of the ids; {ZONE} is the finest.")]
Metres = Annotated[
    float | None, Query(description="Metres: the area is what lies within this distance, not the zones themselves.")
]
InnerMetres = Annotated[float | None, Query(description="Metres: what lies within this distance is left out (a ring).")]

NOT_GIVEN = "the area must be given: zone=…, or point=longitude,latitude with buffer_m=…; POST one to draw or upload it"


def area_in_address(
    opened: ReleaseDep,
    zone: Ids = [],  # noqa: B006  # FastAPI copies it
    level: Level = ZONE,
    point: Annotated[str | None, Query(description="Longitude, latitude; with buffer_m.")] = None,
    buffer_m: Metres = None,
    inner_m: InnerMetres = None,
) -> Areas:
    """Return the area that query parameters say."""
    if bool(zone) == (point is not None):
        raise QueryError(NOT_GIVEN)
    if point is not None:
        at = {"type": "Point", "coordinates": list(numbers(point, "point", (2,)))}
        return {"area": buffered(opened, read_geojson(at, f"point {point}"), buffer_m, inner_m)}
    return {"area": buffered(opened, area_of_zones(opened, tuple(zone), level), buffer_m, inner_m)}


def pair_in_address(
    opened: ReleaseDep,
    a: Ids = [],  # noqa: B006
    b: Ids = [],  # noqa: B006
    a_level: Level = ZONE,
    b_level: Level = ZONE,
) -> Areas:
    """Return the two areas that query parameters say."""
    if not a or not b:
        raise QueryError("both areas must be given: a=… and b=…, ids that may be repeated; POST them to draw or upload")
    return {"a": area_of_zones(opened, tuple(a), a_level), "b": area_of_zones(opened, tuple(b), b_level)}


@dataclass(frozen=True)
class Sent:
    """A body.

    Attributes
    ----------
    content : bytes, optional
        All of it, unless it was made of parts.
    is_json : bool
    parts : dict of str to bytes
        Files of multipart/form-data, by the names of their fields.
    """

    content: bytes = b""
    is_json: bool = False
    parts: dict[str, bytes] = field(default_factory=dict)


async def body(request: Request) -> Sent:
    """Return what was sent.

    Raises
    ------
    Problem
        415 for a media type that is no area.
    """
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media == MULTIPART:
        return Sent(parts=await _parts(request))
    if media not in (JSON, GEOJSON, *FILES):
        raise Problem(415, f"Content-Type must be one of {', '.join((JSON, GEOJSON, MULTIPART, *FILES))}")
    return Sent(await request.body(), media in (JSON, GEOJSON))


async def _parts(request: Request) -> dict[str, bytes]:
    try:
        async with request.form(max_files=_PARTS, max_fields=_PARTS) as form:
            found = [(name, part if isinstance(part, str) else await part.read()) for name, part in form.multi_items()]
    except HTTPException:  # what cannot be parsed; its text is not ours to show
        raise QueryError(f"body must be {MULTIPART} with at most {_PARTS} parts") from None
    if len({name for name, _ in found}) != len(found):
        raise QueryError("body must have one file in each part")
    return {name: part.encode() if isinstance(part, str) else part for name, part in found}


Body = Annotated[Sent, Depends(body)]


def area_in_body(opened: ReleaseDep, sent: Body, buffer_m: Metres = None, inner_m: InnerMetres = None) -> Areas:
    """Return the area in the body."""
    if sent.is_json:
        return {"area": area_from(opened, read_json(sent.content), buffer_m=buffer_m, inner_m=inner_m)}
    if sent.parts and set(sent.parts) != {"file"}:
        raise QueryError("body must have one part, file")
    return {"area": buffered(opened, _uploaded(sent.parts.get("file", sent.content)), buffer_m, inner_m)}


def pair_in_body(opened: ReleaseDep, sent: Body) -> Areas:
    """Return the two areas in the body."""
    if sent.is_json:
        found = read_json(sent.content)
        if not isinstance(found, dict) or set(found) != {"a", "b"}:
            raise QueryError('body must be {"a": area, "b": area}, each GeoJSON or zones')
        return {name: area_from(opened, found[name]) for name in ("a", "b")}
    if set(sent.parts) != {"a", "b"}:
        raise QueryError(f"body must be JSON, or {MULTIPART} with two files in the parts a and b")
    return {name: buffered(opened, _uploaded(sent.parts[name]), None) for name in ("a", "b")}


def _uploaded(data: bytes) -> Shape:
    """Return the shape in a file; few are read at a time.

    Raises
    ------
    Problem
        503 if too many are being read.
    """
    if not _TURN.acquire(timeout=_WAIT):
        raise Problem(503, "too many files are being read; ask again later", {"Retry-After": "30"})
    try:
        return read_upload(data)
    finally:
        _TURN.release()


def sends(*, pair: bool) -> dict[str, Any]:
    """Return ``openapi_extra`` of a route that reads an area, or two, from its body."""
    one = {"type": "object", "description": f"GeoJSON, {_OBJECTS}"}
    areas = {"type": "object", "required": ["a", "b"], "properties": {"a": one, "b": one}} if pair else one
    names = ("a", "b") if pair else ("file",)
    files = {name: {"type": "string", "format": "binary"} for name in names}
    content: dict[str, Any] = {
        JSON: {"schema": areas},
        MULTIPART: {"schema": {"type": "object", "required": list(names), "properties": files}},
    }
    if not pair:
        content |= {GEOJSON: {"schema": one}} | {
            media: {"schema": {"type": "string", "format": "binary"}} for media in FILES
        }
    return {"requestBody": {"required": True, "content": content}}
