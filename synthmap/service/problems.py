"""Errors as the public sees them: one table from exception to status, one shape (RFC 9457)."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from synthmap import errors
from synthmap.service.paths import route_path

MEDIA_TYPE = "application/problem+json"
CHALLENGES = ('Basic realm="synthmap", charset="UTF-8"', 'Bearer realm="synthmap"')  # QGIS and browsers ask for a key
_DETAIL = 1_000  # characters; a client's own text comes back in details, and no more of it than helps


class Problem(HTTPException):
    """A refusal that only HTTP knows: its status and detail are for the public."""

    def __init__(
        self, status: int, detail: str, headers: Mapping[str, str] | None = None, *, type_: str = "about:blank"
    ) -> None:
        super().__init__(status, detail, headers)
        self.status, self.type_ = status, type_


# classes whose text was written for the public; the first that fits decides
STATUS: tuple[tuple[type[errors.SynthmapError], int], ...] = (
    (errors.JobFinishedError, 409),
    (errors.RepeatedError, 409),
    (errors.QueryError, 400),
    (errors.NotFoundError, 404),
    (errors.ReleaseNotFoundError, 404),
    (errors.ReleaseCorruptError, 503),
    (errors.ExportError, 409),
    (errors.BudgetExceededError, 409),
    (errors.CatalogError, 503),
)
TITLES = {
    400: "Bad request", 401: "Key needed", 403: "Not allowed", 404: "Not found", 405: "Method not allowed",
    406: "Not acceptable", 409: "Conflict", 410: "Gone", 412: "Precondition failed", 413: "Too large",
    414: "Address too long", 415: "Unsupported media type", 416: "Range not satisfiable", 429: "Too many requests",
    500: "Fault of the service", 501: "Not implemented", 503: "Not available",
}  # fmt: skip
_TEXTS = {  # for refusals of the frameworks below, whose own texts are not ours to show
    400: "the body must be JSON in UTF-8",
    404: "there is nothing at this path",
    405: "this path does not take that method",
}


def problem(
    request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None, type_: str = "about:blank"
) -> JSONResponse:
    """Return one problem: type, title, status, detail and instance (the request's id). It is never kept by a cache."""
    body = {
        "type": type_,
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail[:_DETAIL].encode(errors="replace").decode(),  # JSON bodies may hold half a character
        "instance": f"urn:request:{getattr(request.state, 'request_id', '')}",
    }
    answer = JSONResponse(body, status, {"cache-control": "no-store", **(headers or {})}, media_type=MEDIA_TYPE)
    if status == 401:
        for challenge in CHALLENGES:
            answer.headers.append("www-authenticate", challenge)
    return answer


def add_problems(app: FastAPI) -> None:
    """Let `app` answer every exception of the table, and every refusal of the framework, with a problem.

    What is in no table goes on to the journal, which logs it and answers with a fixed text.
    """

    async def refused(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, Problem)  # noqa: S101
        return problem(request, fault.status, fault.detail, fault.headers, fault.type_)

    async def known(request: Request, fault: Exception) -> Response:
        for kind, status in STATUS:
            if isinstance(fault, kind):
                return problem(request, status, str(fault))
        raise fault

    async def http(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, HTTPException)  # noqa: S101
        headers = {"Allow": _allowed(request)} if fault.status_code == 405 else fault.headers
        return problem(request, fault.status_code, _TEXTS.get(fault.status_code, "refused"), headers)

    async def invalid(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, RequestValidationError)  # noqa: S101
        return problem(request, 400, "; ".join(_sentence(one) for one in fault.errors()[:10]))

    app.add_exception_handler(Problem, refused)
    app.add_exception_handler(errors.SynthmapError, known)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)


def _sentence(fault: Mapping[str, Any]) -> str:
    """Return what a parameter or a part of the body must be; never what it was."""
    if fault["type"] == "json_invalid":
        return "body must be JSON"
    name = ".".join(str(part) for part in fault["loc"][1:]) or "body"
    text = str(fault["msg"]).removeprefix("Value error, ").replace("Field required", "must be given")
    return f"{name} {text.replace('Input should be', 'must be').replace('Input should', 'must')}"


def _allowed(request: Request) -> str:
    """Return the methods that the path takes, over all its routes."""
    path = route_path(request.scope)
    routes = [route for route in iter_route_contexts(request.app.routes) if route.methods]
    found = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))
