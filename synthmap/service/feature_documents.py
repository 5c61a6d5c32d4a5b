"""What is said about collections of features: their description, their queryables, links."""

from typing import Any

from fastapi import Request

from synthmap.published.boxes import CRS84
from synthmap.published.extents import extent
from synthmap.published.features import LAYERS
from synthmap.published.features_crs import declared
from synthmap.published.features_filter import GEOMETRY
from synthmap.published.features_layer import Layer
from synthmap.published.store import OpenedRelease
from synthmap.service.formats import GEOJSON, HTML, JSON, SCHEMA
from synthmap.service.html import caution
from synthmap.service.links import described, link

Links = list[dict[str, str]]

QUERYABLES = "http://www.opengis.net/def/rel/ogc/1.0/queryables"
TILESETS = "http://www.opengis.net/def/rel/ogc/1.0/tilesets-vector"
WHAT = {
    "flows": (
        "Flows",
        "Commuting flows between zones: lines from the internal point of the origin to that of the destination. "
        "A flow within a zone is a point; one from outside the map has no geometry.",
    ),
    "origins": ("Origins", "All zones, with the synthetic workers who live there."),
    "destinations": ("Destinations", "Zones where people work, with the synthetic workers who work there."),
}


def collection_id(opened: OpenedRelease, kind: str) -> str:
    """Return the id of a collection."""
    return f"{opened.id}.{kind}"


def describe_collection(request: Request, opened: OpenedRelease, kind: str) -> dict[str, Any]:
    """Return the description of a collection (OGC API Features, Parts 1 and 2)."""
    name = collection_id(opened, kind)
    title, text = WHAT[kind]
    manifest = opened.manifest
    spread: dict[str, Any] = {"spatial": {"bbox": [list(extent(opened))], "crs": CRS84}}
    if manifest.year is not None:
        whole = [f"{manifest.year:04}-01-01T00:00:00Z", f"{manifest.year:04}-12-31T23:59:59Z"]
        spread["temporal"] = {"interval": [whole], "trs": "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"}
    care = caution(manifest)
    here = ("collections", name)
    return {
        "id": name,
        "title": f"{title}: {manifest.title or manifest.name}",
        "description": " ".join([*([f"{care.warning}."] if care.warning else []), text, care.text]),
        "itemType": "feature",
        "extent": spread,
        "crs": list(declared(opened)),
        "storageCrs": CRS84,
        "links": [
            link(request, "self", JSON, "This collection", *here),
            link(request, "alternate", HTML, "This collection as a page", *here, f="html"),
            link(request, "items", GEOJSON, "Features", *here, "items"),
            link(request, "items", HTML, "Features as a page", *here, "items", f="html"),
            link(request, QUERYABLES, SCHEMA, "Properties that can be asked for", *here, "queryables"),
            link(request, TILESETS, JSON, "Vector tiles", *here, "tiles"),
            link(request, "describedby", JSON, "The release", "releases", opened.id),
            *described(request, opened.id),
        ],
    }


def describe_collections(request: Request, opened: OpenedRelease) -> list[dict[str, Any]]:
    """Return the descriptions of all collections of a release."""
    return [describe_collection(request, opened, kind) for kind in LAYERS]


def describe_queryables(layer: Layer, address: str) -> dict[str, Any]:
    """Return the properties that a filter can use, as a JSON Schema (Part 3)."""
    kind = "geometry-any" if layer.kind != "flows" else "geometry-linestring"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address,
        "type": "object",
        "title": f"Queryables of {collection_id(layer.opened, layer.kind)}",
        "properties": {name: {"type": one.type, "title": name, "description": one.description}
                       for name, one in layer.properties.items()} | {GEOMETRY: {"format": kind, "title": "Geometry"}},
        "additionalProperties": False,
    }  # fmt: skip
