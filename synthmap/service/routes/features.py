"""OGC API – Features: collections of a release's flows and zones, their features, and what can be asked of them."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import JSONResponse, Response

from synthmap import __version__
from synthmap.errors import NotFoundError
from synthmap.published.features import find, open_layer
from synthmap.published.features_geojson import write_features
from synthmap.published.features_layer import Layer
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import Service, ServiceDep
from synthmap.service.feature_documents import (
    QUERYABLES,
    Links,
    collection_id,
    describe_collection,
    describe_collections,
    describe_queryables,
)
from synthmap.service.feature_pages import collection_page, collections_page, item_page, items_page
from synthmap.service.feature_query import OWN, read_crs, read_query, single
from synthmap.service.formats import GEOJSON, HTML, JSON, SCHEMA, negotiate
from synthmap.service.links import href, link
from synthmap.service.openapi import offers, refers

router = APIRouter(tags=["features"], dependencies=[Depends(reads)])

DOCUMENTS = {"json": JSON, "html": HTML}
FEATURES = {"geojson": GEOJSON, "json": JSON, "html": HTML}

CollectionId = Annotated[str, Path(alias="collectionId", description="Release and layer: <release>.flows, …")]
FeatureId = Annotated[str, Path(alias="featureId", description="Place of the feature in its collection, from 0.")]


def layer_of(collection: CollectionId, service: ServiceDep) -> Layer:
    """Return the layer that a collection is; 404 where there is none."""
    release, _, kind = collection.rpartition(".")
    return open_layer(service.releases.open(release), kind)


LayerDep = Annotated[Layer, Depends(layer_of)]


@router.get("/collections", summary="All collections", response_class=Response, responses=offers(JSON, HTML))
def list_collections(request: Request, service: ServiceDep) -> Response:
    """Return the layers of all releases that can be read: flows, origins, destinations."""
    form = negotiate(request, DOCUMENTS)
    found = [one.opened for one in service.releases.list() if one.opened is not None]
    described = [(opened, describe_collections(request, opened)) for opened in found]
    if form == "html":
        return collections_page(request, described)
    links = [
        link(request, "self", JSON, "This list", "collections"),
        link(request, "alternate", HTML, "This list as a page", "collections", f="html"),
    ]
    return JSONResponse({"links": links, "collections": [one for _, part in described for one in part]})


@router.get(
    "/collections/{collectionId}", summary="A collection", response_class=Response, responses=offers(JSON, HTML)
)
def read_collection(request: Request, layer: LayerDep) -> Response:
    """Return what a collection is: extent, reference systems, links."""
    document = describe_collection(request, layer.opened, layer.kind)
    form = negotiate(request, DOCUMENTS)
    return JSONResponse(document) if form == "json" else collection_page(request, layer, document)


@router.get(
    "/collections/{collectionId}/queryables",
    summary="Properties that can be asked for",
    response_class=Response,
    responses=offers(SCHEMA, JSON, HTML),
)
def read_queryables(request: Request, layer: LayerDep) -> Response:
    """Return the properties that filters and parameters can name, as a JSON Schema."""
    offered = {"schema": SCHEMA, "json": JSON, "html": HTML}
    form = negotiate(request, offered)
    if form == "html":
        return collection_page(request, layer, describe_collection(request, layer.opened, layer.kind))
    return JSONResponse(describe_queryables(layer, _queryables(request, layer)), media_type=offered[form])


@router.get(
    "/collections/{collectionId}/items",
    summary="Features",
    response_class=Response,
    responses=offers(*FEATURES.values()),
    openapi_extra=refers(*OWN, "origin", "destination", "zone"),
)
def list_items(request: Request, layer: LayerDep, service: ServiceDep) -> Response:
    """Return a page of features, in a fixed order, with a link to the next page.

    Besides the parameters named here, every queryable is one: features that have this value of it. Flows from outside
    the map have no geometry, and meet no box.
    """
    form = negotiate(request, FEATURES)
    asked = read_query(request, layer, service.settings)
    headers = _headers(request, layer, service, form, asked.crs)
    if has := not_modified(request, headers):
        return has
    found = find(layer, asked.query, start=asked.start, limit=asked.limit)
    given = {name: value for name, value in single(request).items() if name != "token"}
    if form == "html":
        return _with(headers, items_page(request, layer, found, given))
    head = {
        "type": "FeatureCollection",
        "timeStamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "numberMatched": found.matched,
        "numberReturned": found.rows.size,
        "links": _page_links(request, layer, given, found.next),
    }
    features = ",".join(one + "}" for one in write_features(layer, found.rows, asked.crs))
    body = f'{json.dumps(head, ensure_ascii=False)[:-1]},"features":[{features}]}}'
    return Response(body, media_type=FEATURES[form], headers=headers)


list_items.own_parameters = True  # type: ignore[attr-defined]  # they depend on the collection


@router.get(
    "/collections/{collectionId}/items/{featureId}",
    summary="A feature",
    response_class=Response,
    responses=offers(*FEATURES.values()),
    openapi_extra=refers("crs"),
)
def read_item(request: Request, layer: LayerDep, feature: FeatureId, service: ServiceDep) -> Response:
    """Return one feature. Its id is its place in the collection: it never changes, since releases do not."""
    form = negotiate(request, FEATURES)
    crs = read_crs(request, layer)
    row = _row(feature)
    if row is None or row >= len(layer):
        raise NotFoundError(f"feature ({feature[:40]}) must be one of the collection's")
    headers = _headers(request, layer, service, form, crs)
    if has := not_modified(request, headers):
        return has
    name = collection_id(layer.opened, layer.kind)
    here = ("collections", name, "items", feature)
    links = [
        link(request, "self", GEOJSON, "This feature", *here),
        link(request, "alternate", HTML, "This feature as a page", *here, f="html"),
        link(request, "collection", JSON, "Its collection", "collections", name),
    ]
    if form == "html":
        return _with(headers, item_page(request, layer, row, links))
    (text,) = write_features(layer, np.array([row]), crs)
    return Response(f'{text},"links":{json.dumps(links)}}}', media_type=FEATURES[form], headers=headers)


read_item.own_parameters = True  # type: ignore[attr-defined]  # which CRSs there are depends on the release


def _row(feature: str) -> int | None:
    """Return the place that a feature's id is; an id has one way to be written."""
    try:
        row = int(feature[:20])
    except ValueError:
        return None
    return row if row >= 0 and str(row) == feature else None


def _queryables(request: Request, layer: Layer) -> str:
    """Return the address of a collection's queryables."""
    return href(request, "collections", collection_id(layer.opened, layer.kind), "queryables")


def _headers(request: Request, layer: Layer, service: Service, form: str, crs: str) -> dict[str, str]:
    """Return the headers of an answer made of features: their CRS, where queryables are, how long to keep it."""
    sizes = service.settings.page_size, service.settings.page_size_maximum
    tag = sha256(f"{layer.opened.etag} {__version__} {form} {sizes}".encode()).hexdigest()
    return kept(request, tag) | {
        "Content-Crs": f"<{crs}>",
        "Link": f'<{_queryables(request, layer)}>; rel="{QUERYABLES}"; type="{SCHEMA}"',
    }


def _with(headers: dict[str, str], answer: Response) -> Response:
    answer.headers.update(headers)
    return answer


def _page_links(request: Request, layer: Layer, given: dict[str, str], start: int | None) -> Links:
    """Return links to a page of features, to itself for people, to the next page and to the collection."""
    name = collection_id(layer.opened, layer.kind)
    here = ("collections", name, "items")
    links = [
        link(request, "self", GEOJSON, "This page", *here, **given),
        link(request, "alternate", HTML, "This page for people", *here, **(given | {"f": "html"})),
        link(request, "collection", JSON, "Its collection", "collections", name),
    ]
    if start is not None:
        links.append(link(request, "next", GEOJSON, "Next page", *here, **(given | {"start": str(start)})))
    return links
