"""Analyses of areas of a release, as JSON, CSV or a picture."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from synthmap import __version__
from synthmap.analysis.area.result import Analysis, Named
from synthmap.published.answers import source
from synthmap.published.areas.area import zone_ids
from synthmap.published.places import ZONE
from synthmap.published.table import units_of
from synthmap.service.access import reads
from synthmap.service.analysis_answers import as_area, as_csv, as_json
from synthmap.service.analysis_areas import (
    Areas,
    area_in_address,
    area_in_body,
    pair_in_address,
    pair_in_body,
    sends,
)
from synthmap.service.analysis_kinds import KINDS, Kind, Options
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep
from synthmap.service.formats import CSV, JSON, PDF, PNG, json_only, negotiate
from synthmap.service.links import href, link
from synthmap.service.openapi import offers

router = APIRouter(tags=["analyses"], dependencies=[Depends(reads)])

FORMATS = {"json": JSON, "csv": CSV, "png": PNG, "pdf": PDF}
_UNSTORED = {"Cache-Control": "no-store"}  # of areas in bodies: who drew what is nobody else's
_IDS = 100_000


@router.get("/releases/{release}/analyses", summary="What can be analysed", dependencies=[Depends(json_only)])
def analyses(request: Request, opened: ReleaseDep) -> dict[str, Any]:
    """Return the analyses of a release. Each is asked for with ids in the address, or with an area in a body."""
    at = ("releases", opened.id, "analyses")
    return {
        "analyses": [
            {
                "name": name,
                "title": kind.title,
                "description": kind.description,
                "areas": ["a", "b"] if kind.pair else ["area"],
                "formats": list(FORMATS),
                "links": [link(request, "item", JSON, kind.title, *at, name)],
            }
            for name, kind in KINDS.items()
        ],
        "links": [
            link(request, "self", JSON, "Analyses", *at),
            link(request, "describedby", JSON, "The release", "releases", opened.id),
        ],
    }


def _area(request: Request, opened: ReleaseDep, areas: Annotated[Areas, Depends(area_in_address)]) -> Response:
    """Return which zones an area selects, its outline where it is drawn, and what to know about it."""
    return _about_area(request, opened, areas)


def _area_sent(request: Request, opened: ReleaseDep, areas: Annotated[Areas, Depends(area_in_body)]) -> Response:
    """Return which zones the area in the body selects, its outline, and what to know about it."""
    return _about_area(request, opened, areas)


def _about_area(request: Request, opened: ReleaseDep, areas: Areas) -> Response:
    found = source(opened) | {
        "areas": [as_area(opened, Named("area", None, areas["area"]))],
        "zone_ids": zone_ids(units_of(opened, ZONE), areas["area"]) if areas["area"].count <= _IDS else None,
        "links": _links(request, opened, "area"),
    }
    return JSONResponse(found, headers=_UNSTORED)


def _links(request: Request, opened: ReleaseDep, name: str) -> list[dict[str, str]]:
    """Return links to this answer, to its other forms where they have an address, and to the release."""
    given: dict[str, Any] = {
        key: request.query_params.getlist(key) for key in request.query_params if key not in ("token", "f")
    }
    at = ("releases", opened.id, "analyses", name)
    links = []
    if request.method in ("GET", "HEAD"):
        links.append({"rel": "self", "type": JSON, "title": "This answer", "href": href(request, *at, **given)})
        links += [
            {"rel": "alternate", "type": media, "title": other.upper(), "href": href(request, *at, **given, f=other)}
            for other, media in FORMATS.items()
            if other != "json" and name != "area"
        ]
    about = {"rel": "describedby", "type": JSON, "title": "The release", "href": href(request, "releases", opened.id)}
    return [*links, about]


def _answer(
    request: Request, opened: ReleaseDep, name: str, run: Callable[[], Analysis], headers: dict[str, str], on: date
) -> Response:
    form = negotiate(request, FORMATS)
    found = run()
    if form == "json":
        return JSONResponse(as_json(found, on) | {"links": _links(request, opened, name)}, headers=headers)
    ending = f'{"inline" if form in ("png", "pdf") else "attachment"}; filename="{quote(opened.id)}-{name}.{form}"'
    return Response(
        _written(found, on, form), media_type=FORMATS[form], headers=headers | {"Content-Disposition": ending}
    )


def _written(found: Analysis, on: date, form: str) -> bytes:
    if form == "csv":
        return as_csv(found, on)
    from synthmap.analysis.area.pictures import write_picture  # half a second that a start need not take

    return write_picture(found, on, "png" if form == "png" else "pdf")


def _today() -> date:
    return datetime.now(UTC).date()


def _routes(name: str, kind: Kind) -> None:
    """Add the two routes of an analysis."""
    in_address, in_body = (pair_in_address, pair_in_body) if kind.pair else (area_in_address, area_in_body)

    def asked(
        request: Request,
        opened: ReleaseDep,
        areas: Annotated[Areas, Depends(in_address)],
        options: Annotated[Options, Depends(kind.options)],
    ) -> Response:
        on = _today()
        tag = f"{opened.etag} {__version__} {negotiate(request, FORMATS)} {on} {request.url.query}"
        headers = kept(request, sha256(tag.encode()).hexdigest())
        if has := not_modified(request, headers):
            return has
        return _answer(request, opened, name, lambda: kind.run(opened, *areas.values(), **options), headers, on)

    def sent(
        request: Request,
        opened: ReleaseDep,
        areas: Annotated[Areas, Depends(in_body)],
        options: Annotated[Options, Depends(kind.options)],
    ) -> Response:
        run = lambda: kind.run(opened, *areas.values(), **options)  # noqa: E731
        return _answer(request, opened, name, run, _UNSTORED, _today())

    path = f"/releases/{{release}}/analyses/{name}"
    for method, handler in (("GET", asked), ("POST", sent)):
        router.add_api_route(
            path,
            handler,
            methods=[method],
            summary=kind.title,
            description=kind.description,
            name=f"{method.lower()}_{name.replace('-', '_')}",
            response_class=Response,
            responses=offers(*FORMATS.values()),
            openapi_extra=sends(pair=kind.pair) if method == "POST" else None,
        )


for _name, _kind in KINDS.items():
    _routes(_name, _kind)
for _method, _handler in (("GET", _area), ("POST", _area_sent)):
    router.add_api_route(
        "/releases/{release}/analyses/area", _handler, methods=[_method], summary="Zones of an area",
        dependencies=[Depends(json_only)], response_class=Response, responses=offers(JSON),
        openapi_extra=sends(pair=False) if _method == "POST" else None,
    )  # fmt: skip
