"""OD queries over a release: flows between units of any two levels, a page at a time."""

from hashlib import sha256
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from synthmap import __version__
from synthmap.errors import QueryError
from synthmap.published import answers
from synthmap.published.boxes import CRS84, Box, make_box
from synthmap.published.cursors import read_cursor, write_cursor
from synthmap.published.od import MOST, Kind, Page, find_flows
from synthmap.published.od import Query as Asked
from synthmap.published.od_errors import with_errors
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep, ServiceDep
from synthmap.service.formats import ARROW, CSV, GEOJSON, JSON, PARQUET, negotiate
from synthmap.service.links import href
from synthmap.service.openapi import offers
from synthmap.service.parameters import numbers

router = APIRouter(tags=["od"], dependencies=[Depends(reads)])

FORMATS: dict[str, tuple[str, answers.Writer]] = {
    "json": (JSON, answers.write_json),
    "csv": (CSV, answers.write_csv),
    "geojson": (GEOJSON, answers.write_geojson),
    "parquet": (PARQUET, answers.write_parquet),
    "arrow": (ARROW, answers.write_arrow),
}
_MEDIA = {name: media for name, (media, _) in FORMATS.items()}

Ids = Annotated[list[str], Query(description="Id at its level, as text; may be repeated.")]
Level = Annotated[str | None, Query(description=f"Level of the hierarchy; {ZONE} is the finest and the default.")]


async def asked(
    destination: Ids = [],  # noqa: B006  # FastAPI copies it
    origin: Ids = [],  # noqa: B006
    level: Level = None,
    origin_level: Level = None,
    destination_level: Level = None,
    min_count: Annotated[int, Query(ge=1, le=MOST, description="Least count of a flow, after summing.")] = 1,
    top: Annotated[
        int | None,
        Query(ge=1, le=MOST, description="Only the so many largest flows, by count, then ids. Else all, by ids."),
    ] = None,
    bbox: Annotated[
        str | None, Query(description="Box for the points of units: four numbers in the order of the CRS's axes.")
    ] = None,
    bbox_crs: Annotated[str, Query(description="CRS of the box: CRS84 or EPSG:…, as URI or in short.")] = CRS84,
    bbox_end: Annotated[
        Literal["origin", "destination", "both"] | None,
        Query(description="Which ends must lie in the box; needed where there is one."),
    ] = None,
    kind: Annotated[
        Kind | None, Query(description="Only flows between two units, within one unit, or from everywhere else.")
    ] = None,
) -> Asked:
    """Return the query that the parameters make."""
    box: Box | None = make_box(numbers(bbox, "bbox", (4, 6)), bbox_crs) if bbox is not None else None
    return Asked(
        origin_level=_first(origin_level, level, ZONE),
        destination_level=_first(destination_level, level, ZONE),
        origins=tuple(sorted(set(origin))),
        destinations=tuple(sorted(set(destination))),
        min_count=min_count,
        top=top,
        box=box,
        box_end=bbox_end,
        kind=kind,
    )


@router.get(
    "/releases/{release}/od",
    summary="Flows of a release",
    response_class=Response,
    responses=offers(*_MEDIA.values()) | {304: {"description": "Not changed"}},
)
def flows(
    request: Request,
    opened: ReleaseDep,
    service: ServiceDep,
    query: Annotated[Asked, Depends(asked)],
    limit: Annotated[int | None, Query(ge=1, le=MOST, description="Flows of a page.")] = None,
    cursor: Annotated[str | None, Query(description="Where the next page starts, as the page before named it.")] = None,
) -> Response:
    """Return flows, summed to the levels asked for. No flow that fits is an empty answer, not an error.

    Counts are synthetic, and expected to be off by `expected_error` workers (root mean square, from public data). A
    unit called `elsewhere` stands for all places outside the map, at every level. With `top` JSON and GeoJSON tell
    `sums`: the workers of all flows that fit, not only of the largest, by `kind`, also where one is asked for. Ids are
    text and exactly those of the release: in CSV, too, where one that starts with = + - or @ stays as it is. Import CSV
    as text; a spreadsheet that opens it takes such an id for a formula, and zeros away from others.
    """
    form = negotiate(request, _MEDIA)
    media, write = FORMATS[form]
    most = service.settings.page_size_maximum
    if limit is not None and limit > most:
        raise QueryError(f"limit ({limit}) must be at most {most}; follow the links to the next pages")
    after = read_cursor(cursor, opened.etag, query) if cursor is not None else None
    headers = kept(request, sha256(f"{opened.etag} {__version__} {form}".encode()).hexdigest())
    if has := not_modified(request, headers):
        return has
    page = find_flows(opened, query, limit=limit or min(service.settings.page_size, most), after=after)
    page = with_errors(opened, query, page)
    links = _links(request, opened, query, page, media)
    extra = {
        "levels": {"origin": query.origin_level, "destination": query.destination_level},
        "numberReturned": page.rows.height,
        **({} if page.sums is None else {"sums": page.sums}),
        "links": links,
    }
    headers |= _cited(opened, links)
    if form in ("csv", "parquet", "arrow"):
        headers["Content-Disposition"] = f'attachment; filename="{quote(opened.id)}-od.{form}"'
    return Response(write(opened, page, extra), media_type=media, headers=headers)


def _first(*names: str | None) -> str:
    """Return the first that is given."""
    return next(name for name in names if name is not None)


def _links(request: Request, opened: OpenedRelease, query: Asked, page: Page, media: str) -> list[dict[str, str]]:
    """Return links to this page, the next one if there is one, and the release."""
    given: dict[str, Any] = {
        name: request.query_params.getlist(name) for name in request.query_params if name != "token"
    }
    path = ("releases", opened.id, "od")
    links = [{"rel": "self", "type": media, "title": "This page", "href": href(request, *path, **given)}]
    if page.next is not None:
        given["cursor"] = write_cursor(page.next, opened.etag, query)
        links.append({"rel": "next", "type": media, "title": "Next page", "href": href(request, *path, **given)})
    about = {"rel": "describedby", "type": JSON, "title": "The release", "href": href(request, "releases", opened.id)}
    return [*links, about]


def _cited(opened: OpenedRelease, links: list[dict[str, str]]) -> dict[str, str]:
    """Return headers that name the release, its promise and the next page, for answers that have no room for it."""
    manifest = opened.manifest
    pages = ", ".join(f'<{one["href"]}>; rel="{one["rel"]}"' for one in links if one["rel"] != "self")
    return {
        "Synthmap-Release": quote(opened.id),
        "Synthmap-Vintage": quote(manifest.zones.vintage),
        "Synthmap-Epsilon": repr(manifest.privacy.dp.epsilon),
        "Synthmap-Delta": repr(manifest.privacy.dp.delta),
        "Link": pages,
    }
