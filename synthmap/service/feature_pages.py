"""Features and their collections as pages for people."""

import json
from typing import Any

import numpy as np
from fastapi import Request
from starlette.responses import Response

from synthmap.published.features import Page
from synthmap.published.features_geojson import write_features
from synthmap.published.features_layer import Layer
from synthmap.published.store import OpenedRelease
from synthmap.service.feature_documents import WHAT, Links, collection_id
from synthmap.service.html import caution, page
from synthmap.service.links import href


def collections_page(request: Request, described: list[tuple[OpenedRelease, list[dict[str, Any]]]]) -> Response:
    """Return the collections of all releases."""
    releases = [
        {
            "id": opened.id,
            "title": opened.manifest.title or opened.manifest.name,
            "caution": caution(opened.manifest),
            "collections": [
                {"page": _address(request, one["id"]), "title": title, "text": text}
                for one, (title, text) in zip(collections, WHAT.values(), strict=True)
            ],
        }
        for opened, collections in described
    ]
    return page(request, "collections.html", releases=releases)


def collection_page(request: Request, layer: Layer, document: dict[str, Any]) -> Response:
    """Return one collection."""
    return page(
        request,
        "collection.html",
        *_crumbs(request, layer)[:1],
        document=document,
        text=WHAT[layer.kind][1],
        properties=layer.properties,
        items=_address(request, document["id"], "items"),
        caution_of=caution(layer.opened.manifest),
    )


def items_page(request: Request, layer: Layer, found: Page, given: dict[str, str]) -> Response:
    """Return a page of features; `given` are the parameters it was asked for with."""
    here = ("collections", collection_id(layer.opened, layer.kind), "items")
    frame, _ = layer.read(found.rows, "OGC:CRS84")
    features = [
        (_address(request, here[1], "items", str(row)), row, values)
        for row, values in zip(found.rows.tolist(), frame.to_dicts(), strict=True)
    ]
    return page(
        request,
        "items.html",
        *_crumbs(request, layer)[:2],
        title=f"Features: {layer.opened.manifest.title or here[1]}, {layer.kind}",
        matched=found.matched,
        features=features,
        properties=layer.properties,
        json=href(request, *here, **(given | {"f": "geojson"})),
        first=href(request, *here, **(given | {"start": None})) if given.get("start", "0") != "0" else None,
        next=href(request, *here, **(given | {"start": found.next})) if found.next is not None else None,
        caution_of=caution(layer.opened.manifest),
    )


def item_page(request: Request, layer: Layer, row: int, links: Links) -> Response:
    """Return one feature."""
    (text,) = write_features(layer, np.array([row]))
    feature = json.loads(text + "}")
    return page(
        request,
        "item.html",
        *_crumbs(request, layer),
        title=f"Feature {row}",
        values=feature["properties"],
        geometry=json.dumps(feature["geometry"]) if feature["geometry"] else None,
        properties=layer.properties,
        links_of=links,
        caution_of=caution(layer.opened.manifest),
    )


def _crumbs(request: Request, layer: Layer) -> list[tuple[str, str]]:
    """Return the pages above a feature."""
    name = collection_id(layer.opened, layer.kind)
    return [
        (href(request, "collections", f="html"), "Collections"),
        (_address(request, name), name),
        (_address(request, name, "items"), "Features"),
    ]


def _address(request: Request, *path: str) -> str:
    return href(request, "collections", *path, f="html")
