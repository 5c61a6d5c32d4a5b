"""The description of the interface as OpenAPI 3.0.3, which clients of OGC APIs read; FastAPI speaks 3.1."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi

from synthmap.service.context import service
from synthmap.service.feature_query import LANGUAGES
from synthmap.service.links import href
from synthmap.service.problems import MEDIA_TYPE
from synthmap.service.settings import ServiceSettings

OPENAPI = "application/vnd.oai.openapi+json"
_METHODS = ("get", "put", "post", "delete", "patch")
_KEPT = frozenset({
    "title", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength",
    "pattern", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "required", "enum", "type",
    "not", "allOf", "oneOf", "anyOf", "items", "properties", "additionalProperties", "description", "format",
    "default", "nullable", "discriminator", "readOnly", "writeOnly", "example", "deprecated",
})  # fmt: skip


def offers(*media: str) -> dict[int | str, dict[str, Any]]:
    """Return ``responses`` of a route that answers with one of these media types."""
    schema = {"application": {"type": "object"}}
    return {200: {"content": {one: {"schema": schema.get(one.split("/")[0], {"type": "string"})} for one in media}}}


def refers(*names: str) -> dict[str, Any]:
    """Return ``openapi_extra`` of a route that reads some of the shared query parameters."""
    return {"parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names]}


def document(request: Request) -> dict[str, Any]:
    """Return the description of the service that answers `request`."""
    app: FastAPI = request.app
    known: dict[str, Any] | None = getattr(app.state, "openapi", None)
    if known is None:
        known = app.state.openapi = describe(app, service(request).settings)
    return known | {"servers": [{"url": href(request).rstrip("/"), "description": "this service"}]}


def operations(found: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the operations of a description by their tags, with parameters written out."""
    shared = found["components"]["parameters"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in found["paths"].items():
        for method, one in methods.items():
            parameters = [shared[p["$ref"].split("/")[-1]] if "$ref" in p else p for p in one.get("parameters", [])]
            groups.setdefault(one.get("tags", ["other"])[0], []).append(
                {"description": "", "summary": ""}
                | one
                | {"path": path, "method": method.upper(), "parameters": parameters}
            )
    return list(groups.items())


def describe(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """Return the description of an application, without its address."""
    found = get_openapi(
        title="synthmap",
        version=app.version,
        openapi_version="3.0.3",
        description="Synthetic commuting tables with differential privacy: OGC API – Features, Tiles and Processes, "
        "OD queries, files. Errors are application/problem+json (RFC 9457).",
        routes=app.routes,
    )
    components = found.setdefault("components", {})
    schemas = {name: one for name, one in components.get("schemas", {}).items() if "ValidationError" not in name}
    components["schemas"] = {name: schema_30(one) for name, one in schemas.items()} | {"Problem": _PROBLEM}
    components["parameters"] = shared_parameters(settings)
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "basic": {"type": "http", "scheme": "basic", "description": "The key is the password."},
        "token": {"type": "apiKey", "in": "query", "name": "token"},
    }
    found["security"] = [{}, {"bearer": []}, {"basic": []}, {"token": []}]
    for methods in found["paths"].values():
        for method, one in methods.items():
            if method in _METHODS:
                _operation(one)
    return found


def _operation(one: dict[str, Any]) -> None:
    """Turn an operation into one of OpenAPI 3.0, whose errors are those of the service."""
    for parameter in one.get("parameters", []):
        if "schema" in parameter:
            parameter["schema"] = schema_30(parameter["schema"])
        parameter.pop("examples", None)
    _media(one.get("requestBody", {}))
    responses = one["responses"]
    responses.pop("422", None)
    for answer in responses.values():
        answer.setdefault("description", "")
        _media(answer)
    responses["default"] = {
        "description": "What was wrong, and what to do",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _media(holder: dict[str, Any]) -> None:
    for media in holder.get("content", {}).values():
        if "schema" in media:
            media["schema"] = schema_30(media["schema"])


def schema_30(schema: Any) -> dict[str, Any]:
    """Return a schema of OpenAPI 3.1 in the words of 3.0; what 3.0 has no word for is left out."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    out = dict(schema)
    for word in ("anyOf", "oneOf"):
        if word in out:
            out |= _without_null(word, out.pop(word))
    if isinstance(out.get("type"), list):
        kinds = [kind for kind in out.pop("type") if kind != "null"]
        out["nullable"] = len(kinds) < len(schema["type"])
        out |= {"type": kinds[0]} if len(kinds) == 1 else {"anyOf": [{"type": kind} for kind in kinds]}
    elif out.get("type") == "null":
        out = {"nullable": True}
    if "const" in out:
        out["enum"] = [out["const"]]
    if out.get("examples"):
        out["example"] = out["examples"][0]
    for limit, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(limit), (int, float)) and not isinstance(out[limit], bool):
            out |= {bound: out[limit], limit: True}
    if out.get("type") == "array":
        out.setdefault("items", {})
    if out.get("default", 0) is None:
        del out["default"]
    out = {word: value for word, value in out.items() if word in _KEPT or word.startswith("x-")}
    for word in ("allOf", "anyOf", "oneOf"):
        if word in out:
            out[word] = [schema_30(one) for one in out[word]]
    for word in ("items", "not", "additionalProperties"):
        if word in out and not (word == "additionalProperties" and isinstance(out[word], bool)):
            out[word] = schema_30(out[word])
    if "properties" in out:
        out["properties"] = {name: schema_30(one) for name, one in out["properties"].items()}
    return out


def _without_null(word: str, options: list[Any]) -> dict[str, Any]:
    """Return a choice between schemas, null among them, as 3.0 says it."""
    left = [one for one in options if one != {"type": "null"}]
    nullable = {"nullable": True} if len(left) < len(options) else {}
    if len(left) == 1:
        return (left[0] if "$ref" not in left[0] else {"allOf": left}) | nullable
    return {word: left} | nullable


def shared_parameters(settings: ServiceSettings) -> dict[str, Any]:
    """Return the query parameters of features, as clients expect them under ``components``."""

    def of(name: str, meaning: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name, "in": "query", "required": False, "description": meaning,
            "schema": schema, "style": "form", "explode": False,
        }  # fmt: skip

    uri, text = {"type": "string", "format": "uri"}, {"type": "string"}
    limit = {
        "type": "integer", "minimum": 1, "maximum": settings.page_size_maximum,
        "default": min(settings.page_size, settings.page_size_maximum),
    }  # fmt: skip
    found = (
        of("limit", "Features of a page; more than the maximum is taken as the maximum.", limit),
        of(
            "start", "Place from which the page starts, as the page before named it.", {"type": "integer", "minimum": 0}
        ),
        of(
            "bbox",
            "Features that meet this box: least coordinates, then greatest, in the order of the CRS's axes. A west "
            "edge above the east edge crosses the antimeridian. Of six numbers, heights do not matter.",
            {"type": "array", "minItems": 4, "maxItems": 6, "items": {"type": "number"}},
        ),
        of("bbox-crs", "CRS of the box, one of the collection's; CRS84 unless given.", uri),
        of("crs", "CRS of the geometries in the answer, one of the collection's; CRS84 unless given.", uri),
        of(
            "datetime", "A time or an interval; features of a release of another year are left out.", {"type": "string"}
        ),
        of("filter", "A condition on queryables, in CQL2.", text),
        of(
            "filter-lang",
            "Language of the filter.",
            {"type": "string", "enum": list(LANGUAGES), "default": LANGUAGES[0]},
        ),
        of("filter-crs", "CRS of geometries in the filter; CRS84 unless given.", uri),
        of("origin", "Flows from this zone; of collections of flows.", text),
        of("destination", "Flows to this zone; of collections of flows.", text),
        of("zone", "The zone of this id; of collections of origins and destinations.", text),
    )
    return {one["name"]: one for one in found}


_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What must be otherwise"},
        "instance": {"type": "string", "description": "The request"},
    },
}
