"""The description of the interface: OpenAPI 3.0, valid, complete, as clients of OGC APIs expect it."""

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from synthmap.service.openapi import describe, schema_30
from synthmap.service.settings import ServiceSettings


def references(node):
    """Yield all references in a document."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def validated(document):
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")
    validator.validate(document, cls=validator.OpenAPIV30SpecValidator)


def test_the_document_is_valid_openapi_3_0(client):
    answer = client.get("/api")
    assert answer.headers["content-type"] == "application/vnd.oai.openapi+json;version=3.0"
    document = answer.json()
    assert document["openapi"] == "3.0.3"
    validated(document)
    for reference in references(document):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_route_is_in_it_and_says_how_it_refuses(client):
    document = client.get("/api").json()
    for path in (
        "/",
        "/conformance",
        "/collections",
        "/collections/{collectionId}/items/{featureId}",
        "/releases",
        "/processes",
    ):
        assert path in document["paths"]
    for methods in document["paths"].values():
        for one in methods.values():
            assert "422" not in one["responses"]
            assert "application/problem+json" in one["responses"]["default"]["content"]
            assert one["summary"]
    assert not any("ValidationError" in name for name in document["components"]["schemas"])


def test_page_sizes_are_where_qgis_reads_them(make_client):
    client = make_client(page_size=123, page_size_maximum=456)
    document = client.get("/api").json()
    limit = document["components"]["parameters"]["limit"]
    assert (limit["schema"]["default"], limit["schema"]["maximum"], limit["in"]) == (123, 456, "query")
    parameters = document["paths"]["/collections/{collectionId}/items"]["get"]["parameters"]
    assert {"$ref": "#/components/parameters/limit"} in parameters
    bbox = document["components"]["parameters"]["bbox"]
    assert (bbox["style"], bbox["explode"], bbox["schema"]["type"]) == ("form", False, "array")
    assert (bbox["schema"]["minItems"], bbox["schema"]["maxItems"]) == (4, 6)


def test_the_server_is_the_one_that_was_asked(make_client):
    assert make_client(root_path="/maps").get("/api").json()["servers"][0]["url"] == "http://testserver/maps"
    client = make_client(public_url="https://office.example/data")
    assert client.get("/api").json()["servers"][0]["url"] == "https://office.example/data"


class Part(BaseModel):
    """A model with much that 3.0 has no word for."""

    number: float | None = Field(default=None, gt=0, lt=10, examples=[1.5])
    kind: str | int = "a"
    pair: tuple[int, str] = (1, "a")
    fixed: dict[str, "Part | None"] = {}
    deep: "Part | None" = None
    anything: object = None


def test_what_3_1_says_otherwise_is_said_in_words_of_3_0():
    app = FastAPI(version="1")

    @app.post("/parts/{name}", summary="Parts")
    def parts(name: str, part: Part, size: int | None = None) -> Part | None:
        """Nothing."""
        return part

    document = describe(app, ServiceSettings())
    document["servers"] = [{"url": "http://localhost"}]
    validated(document)
    (schema, *_) = (one for name, one in document["components"]["schemas"].items() if name.startswith("Part"))
    number = schema["properties"]["number"]
    assert number == {"type": "number", "nullable": True, "minimum": 0.0, "maximum": 10.0, "exclusiveMinimum": True,
                      "exclusiveMaximum": True, "title": "Number", "example": 1.5}  # fmt: skip


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"const": "a", "type": "string"}, {"enum": ["a"], "type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": False}),
        ({"anyOf": [{"$ref": "#/a"}, {"type": "null"}]}, {"allOf": [{"$ref": "#/a"}], "nullable": True}),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, {"type": "array", "items": {}}),
        ({"type": "null"}, {"nullable": True}),
        ({"type": "string", "default": None, "$comment": "x"}, {"type": "string"}),
        ({"additionalProperties": False, "patternProperties": {"^a": {}}}, {"additionalProperties": False}),
        (True, {}),
    ],
)
def test_single_words_of_schemas(new, old):
    assert schema_30(new) == old
