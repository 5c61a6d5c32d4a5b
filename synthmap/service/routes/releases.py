"""The releases of the store: their list, their manifests."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from synthmap.errors import QueryError
from synthmap.published.features import LAYERS
from synthmap.published.measured import metrics_path
from synthmap.published.places import ZONE
from synthmap.published.store import Listed, OpenedRelease
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep, ServiceDep
from synthmap.service.feature_documents import collection_id
from synthmap.service.formats import HTML, JSON, TEXT, negotiate
from synthmap.service.html import caution, page
from synthmap.service.links import described, href, link
from synthmap.service.openapi import offers

router = APIRouter(tags=["releases"], dependencies=[Depends(reads)])

PAGE, MOST = 100, 1000  # releases of a page: each is opened, its hashes checked, when it is first listed
_OFFERED = {"json": JSON, "html": HTML}

Dated = tuple[int, int, str]


@router.get("/releases", summary="Releases, newest first", response_class=Response, responses=offers(JSON, HTML))
def list_releases(
    request: Request,
    service: ServiceDep,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Releases of a page.")] = PAGE,
    cursor: Annotated[str | None, Query(description="Where the next page starts, as the page before named it.")] = None,
) -> Response:
    """Return what can be asked of every release. A damaged one is named, with its fault."""
    form = negotiate(request, _OFFERED)
    dated = service.releases.dated()
    if cursor is not None:
        after = _read_cursor(cursor)
        dated = [one for one in dated if _rank(one) > _rank(after)]
    found = service.releases.list([name for *_, name in dated[:limit]])
    links = [link(request, "self", JSON, "This page", "releases", limit=limit, cursor=cursor)]
    if len(dated) > limit:
        cursor = urlsafe_b64encode(json.dumps(dated[limit - 1]).encode()).decode()
        links.append(link(request, "next", JSON, "Older releases", "releases", limit=limit, cursor=cursor))
    entries = [_entry(request, one) for one in found]
    if form == "html":
        shown = [_for_people(request, one, entry) for one, entry in zip(found, entries, strict=True)]
        older = href(request, "releases", limit=limit, cursor=cursor, f="html") if len(dated) > limit else None
        return page(request, "releases.html", releases=shown, next=older)
    return JSONResponse({"releases": entries, "numberReturned": len(found), "links": links})


@router.get(
    "/releases/{release}", summary="The manifest of a release", response_class=Response, responses=offers(JSON, HTML)
)
def read_release(request: Request, opened: ReleaseDep) -> Response:
    """Return what the release states about itself, and where to find what is made from it."""
    if negotiate(request, _OFFERED) == "html":
        listed = Listed(opened.id, opened, None)
        shown = _for_people(request, listed, _entry(request, listed))
        return page(request, "release.html", (href(request, "releases", f="html"), "Releases"), release=shown)
    headers = kept(request, opened.etag)
    manifest = opened.manifest.model_dump(mode="json")
    body = {"id": opened.id} | manifest | {"links": _links(request, opened)}
    return not_modified(request, headers) or JSONResponse(body, headers=headers)


def _rank(one: Dated) -> tuple[int, int, str]:
    """Return what the list is sorted by."""
    return -one[0], -one[1], one[2]


def _read_cursor(cursor: str) -> Dated:
    """Return the release that a page ended with."""
    try:
        second, changed, name = json.loads(urlsafe_b64decode(cursor))
    except (ValueError, TypeError, RecursionError):
        second = changed = name = None
    if not (isinstance(second, int) and isinstance(changed, int) and isinstance(name, str)):
        raise QueryError("cursor must be one that the page before named; start again without it")
    return second, changed, name


def _entry(request: Request, one: Listed) -> dict[str, Any]:
    """Return what the list says about a release."""
    if one.opened is None:
        return {"id": one.id, "status": "damaged", "fault": one.fault}
    manifest = one.opened.manifest
    return {
        "id": one.id,
        "status": "available",
        "title": manifest.title or manifest.name,
        "name": manifest.name,
        "year": manifest.year,
        "created": manifest.created,
        "epsilon": manifest.privacy.dp.epsilon,
        "delta": manifest.privacy.dp.delta,
        "private": manifest.private,
        "warning": manifest.warning,
        "workers": manifest.invariants.workers,
        "destinations": manifest.invariants.destinations,
        "zones": manifest.zones.zones,
        "vintage": manifest.zones.vintage,
        "levels": [*manifest.zones.levels, ZONE],
        "segments": manifest.segments,
        "links": _links(request, one.opened),
    }


def _for_people(request: Request, one: Listed, entry: dict[str, Any]) -> dict[str, Any]:
    """Return what a page says about a release."""
    if one.opened is None:
        return entry
    links = [each for each in entry["links"] if each["rel"] != "self"]
    manifest = href(request, "releases", one.id, f="json")
    return entry | {
        "fault": None,
        "caution": caution(one.opened.manifest),
        "mechanism": one.opened.manifest.plan.mechanism,
        "page": href(request, "releases", one.id, f="html"),
        "links": [{"href": manifest, "type": JSON, "title": "Manifest"}, *links],
    }


def _links(request: Request, opened: OpenedRelease) -> list[dict[str, str]]:
    """Return links to all that can be asked of a release."""
    below = {
        "statement": (TEXT, "Privacy statement"),
        "levels": (JSON, "Levels of its zones"),
        "od": (JSON, "Flows"),
        "analyses": (JSON, "Analyses of areas"),
        "metrics": (JSON, "How far it can be trusted"),
        "downloads": (JSON, "Files"),
    }
    names = {kind: collection_id(opened, kind) for kind in LAYERS}
    return [
        link(request, "self", JSON, "Manifest", "releases", opened.id),
        *(link(request, rel, kind, title, "releases", opened.id, rel) for rel, (kind, title) in below.items()),
        *described(request, opened.id),
        *_measured(request, opened),
        *(link(request, "collection", JSON, f"Features: {kind}", "collections", name) for kind, name in names.items()),
        *(link(request, "tiles", JSON, f"Tiles: {kind}", "collections", name, "tiles") for kind, name in names.items()),
    ]


def _measured(request: Request, opened: OpenedRelease) -> list[dict[str, str]]:
    """Return a link to published measurements, where there are any."""
    if not metrics_path(opened.directory.parent, opened.id).is_file():
        return []
    title = "How far it is from its confidential table, measured with noise"
    return [link(request, "metrics", JSON, title, "releases", opened.id, "metrics", "published")]
