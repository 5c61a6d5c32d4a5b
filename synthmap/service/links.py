"""Links that work behind a proxy and a path prefix."""

from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request

from synthmap.service.context import service
from synthmap.service.formats import HTML, JSON


def href(request: Request, *segments: str, **query: Any) -> str:
    """Return an absolute URL of this service: `segments` joined by slashes and escaped, and `query` without Nones.

    It starts with ``public_url`` if that is set, else with scheme and host of the request (uvicorn puts what a trusted
    proxy says there) and the ASGI root path. A key in the query (``token``) is never carried on.
    """
    base = service(request).settings.public_url.rstrip("/")
    if not base:
        base = f"{request.url.scheme}://{request.url.netloc}" + request.scope.get("root_path", "").rstrip("/")
    path = "/" + "/".join(quote(part, safe="~:") for part in segments)
    given = {key: value for key, value in query.items() if value is not None}
    return base + path + (f"?{urlencode(given, doseq=True)}" if given else "")


def link(request: Request, rel: str, type_: str, title: str, *segments: str, **query: Any) -> dict[str, str]:
    """Return a link object of OGC API."""
    return {"rel": rel, "type": type_, "title": title, "href": href(request, *segments, **query)}


def described(request: Request, release: str) -> list[dict[str, str]]:
    """Return links to the privacy statement of a release, for people and for programs."""
    place = ("releases", release, "statement")
    return [
        link(request, "describedby", HTML, "Privacy statement: what is promised, and what is not", *place, f="html"),
        link(request, "describedby", JSON, "Privacy statement, for programs", *place, f="json"),
    ]
