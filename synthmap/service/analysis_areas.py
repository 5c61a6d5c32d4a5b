"""Areas as requests say them: ids or a point in the address; GeoJSON, objects or files in the body."""

from typing import Annotated, Any

from fastapi import Depends, Query, Request

from synthmap.errors import QueryError
from synthmap.published.areas.area import Area, area_of_zones
from synthmap.published.areas.objects import area_from, buffered, read_json
from synthmap.published.areas.shapes import read_geojson
from synthmap.published.places import ZONE
from synthmap.service.context import ReleaseDep
from synthmap.service.formats import GEOJSON, JSON
from synthmap.service.parameters import numbers
from synthmap.service.problems import Problem

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


async def body(request: Request) -> tuple[str, Any]:
    """Return the media type of the body and what it holds."""
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media not in (JSON, GEOJSON):
        raise Problem(415, f"Content-Type must be {JSON} or {GEOJSON}")
    return media, await request.body()


Body = Annotated[tuple[str, Any], Depends(body)]


def area_in_body(opened: ReleaseDep, sent: Body, buffer_m: Metres = None, inner_m: InnerMetres = None) -> Areas:
    """Return the area in the body."""
    return {"area": area_from(opened, read_json(sent[1]), buffer_m=buffer_m, inner_m=inner_m)}


def pair_in_body(opened: ReleaseDep, sent: Body) -> Areas:
    """Return the two areas in the body."""
    found = read_json(sent[1])
    if not isinstance(found, dict) or set(found) != {"a", "b"}:
        raise QueryError('body must be {"a": area, "b": area}, each GeoJSON or zones')
    return {name: area_from(opened, found[name]) for name in ("a", "b")}
