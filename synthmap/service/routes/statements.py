"""The privacy statement of a release: text, a page, a record; and the schema of the record."""

from hashlib import sha256

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from synthmap import __version__
from synthmap.published.statements import statement_of
from synthmap.release.statement import Statement, record, schema, text
from synthmap.service.access import reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep
from synthmap.service.formats import HTML, JSON, SCHEMA, TEXT, negotiate
from synthmap.service.html import page
from synthmap.service.links import href
from synthmap.service.openapi import offers

router = APIRouter(tags=["statements"])

_OFFERED = {"text": TEXT, "html": HTML, "json": JSON}


@router.get(
    "/releases/{release}/statement",
    summary="The privacy statement of a release",
    dependencies=[Depends(reads)],
    response_model=Statement,
    responses={200: {"content": {TEXT: {"schema": {"type": "string"}}, HTML: {"schema": {"type": "string"}}}}},
)
def read_statement(request: Request, opened: ReleaseDep) -> Response:
    """Return what is promised, what an attacker could infer, what is not protected, and how much is prior.

    As a page it also answers the questions of NIST SP 800-226 and is an entry of OpenDP's registry of deployments; as
    JSON it is the release's own ``statement.json``.
    """
    form = negotiate(request, _OFFERED)
    headers = kept(request, sha256(f"{opened.etag} {__version__} statement {form}".encode()).hexdigest())
    if has := not_modified(request, headers):
        return has
    found = statement_of(opened)
    if form == "json":
        return Response(record(found), media_type=JSON, headers=headers)
    if form == "text":
        return PlainTextResponse(text(found) + "\n", headers=headers)
    above = (href(request, "releases", opened.id), found.title)
    shown = page(request, "statement.html", above, statement=found, record=href(request, "releases", opened.id,
                 "statement", f="json"))  # fmt: skip
    shown.headers.update(headers)
    return shown


@router.get(
    "/schemas/statement", summary="Schema of privacy statements", response_class=Response, responses=offers(SCHEMA)
)
def read_schema(request: Request) -> Response:
    """Return the JSON Schema that ``statement.json`` follows."""
    negotiate(request, {"schema": SCHEMA, "json": JSON})
    found = {"$id": href(request, "schemas", "statement")} | schema()
    return JSONResponse(found, media_type=SCHEMA, headers={"Cache-Control": "public, max-age=3600"})
