"""The landing page, what the service conforms to, the description of its interface, and the style of its pages."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from synthmap.service.conformance import CONFORMS_TO
from synthmap.service.formats import HTML, JSON, SCHEMA, negotiate
from synthmap.service.html import STYLESHEET, page, stylesheet
from synthmap.service.links import href, link
from synthmap.service.openapi import OPENAPI, document, offers, operations
from synthmap.service.routes import tiles
from synthmap.service.web_page import built_page

router = APIRouter(tags=["landing"])

DESCRIPTION = (
    "Who commutes from where to where: synthetic origin–destination tables with a differential-privacy guarantee. "
    "Workplaces are exact, homes are drawn. Do not read single zones as facts."
)
_DOCUMENTS = {"json": JSON, "html": HTML}


@router.get("/", summary="Landing page", response_class=Response, responses=offers(JSON, HTML))
def read_landing(request: Request) -> Response:
    """Return where everything is."""
    found = {
        "title": "Synthetic commuting tables",
        "description": DESCRIPTION,
        "links": [
            link(request, "self", JSON, "This document"),
            link(request, "alternate", HTML, "This document as a page", f="html"),
            *(
                [link(request, "related", HTML, "The map: flows, totals, analyses, files", "map")]
                if built_page()
                else []
            ),
            link(request, "data", JSON, "Collections of features: flows, origins, destinations", "collections"),
            link(request, "related", JSON, "Releases: tables, statements, files", "releases"),
            link(request, "related", SCHEMA, "Schema of privacy statements", "schemas", "statement"),
            link(request, "http://www.opengis.net/def/rel/ogc/1.0/processes", JSON, "Processes", "processes"),
            link(request, "http://www.opengis.net/def/rel/ogc/1.0/job-list", JSON, "Jobs", "jobs"),
            link(request, "service-doc", HTML, "The interface, for people", "api", f="html"),
            link(request, "service-desc", f"{OPENAPI};version=3.0", "The interface, as OpenAPI 3.0", "api"),
            link(request, "conformance", JSON, "Standards that this service follows", "conformance"),
        ],
    }
    if negotiate(request, _DOCUMENTS) == "json":
        return JSONResponse(found)
    return page(request, "landing.html", document=found)


@router.get("/conformance", summary="Standards", response_class=Response, responses=offers(JSON, HTML))
def read_conformance(request: Request) -> Response:
    """Return the conformance classes that the service follows."""
    found = {"conformsTo": [*CONFORMS_TO, *tiles.CONFORMS_TO]}
    if negotiate(request, _DOCUMENTS) == "json":
        return JSONResponse(found)
    return page(request, "conformance.html", document=found)


@router.get("/api", summary="Interface", response_class=Response, responses=offers(OPENAPI, JSON, HTML))
def read_api(request: Request) -> Response:
    """Return the description of the interface: OpenAPI 3.0, or a page."""
    offered = {"openapi": OPENAPI, "json": JSON, "html": HTML}
    form = negotiate(request, offered)
    found = document(request)
    if form == "html":
        address = href(request, "api")
        return page(request, "api.html", document=found, json=address, groups=operations(found))
    return JSONResponse(found, media_type=f"{OPENAPI};version=3.0" if form == "openapi" else JSON)


@router.get(
    f"/static/{STYLESHEET}", summary="Style of the pages", response_class=Response, responses=offers("text/css")
)
def read_style() -> Response:
    """Return the style sheet."""
    return Response(stylesheet(), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})
