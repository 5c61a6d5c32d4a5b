"""What clients and proxies may keep, and answers to those who have it already."""

from fastapi import Request
from starlette.responses import Response

from synthmap.service.context import service

SECONDS = 3600  # a release never changes, but may be taken away


def kept(request: Request, tag: str) -> dict[str, str]:
    """Return the headers of an answer made from a release alone: validator, and for how long and by whom it is kept.

    Shared caches may keep it where anyone may read, unless the request carried a key.
    """
    keyed = "authorization" in request.headers or "token" in request.query_params
    who = "public" if service(request).settings.anonymous and not keyed else "private"
    return {"ETag": f'"{tag}"', "Cache-Control": f"{who}, max-age={SECONDS}", "Vary": "Accept, Authorization"}


def not_modified(request: Request, headers: dict[str, str]) -> Response | None:
    """Return 304 if the client has what these headers belong to (weak comparison, RFC 9110), else None."""
    fields = request.headers.getlist("if-none-match")
    tags = {one.strip().removeprefix("W/") for field in fields for one in field.split(",")}
    if "*" in tags or headers["ETag"] in tags:
        return Response(status_code=304, headers=headers)
    return None
