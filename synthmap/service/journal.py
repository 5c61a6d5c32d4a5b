"""Around all that can fail: every request gets an id, a line in the log, a place in the counts, and an answer.

Logged are method, route template, status, time and the id of the key: no path, no query, no header, no address.
"""

import re
import secrets
import time
from collections.abc import Iterator
from types import TracebackType

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synthmap.service.meters import Meters
from synthmap.service.paths import OPEN
from synthmap.service.problems import problem

HEADER = "x-request-id"
CURATORS = "for curators"  # in place of the route; their status is not told either
_GIVEN = re.compile(rb"[A-Za-z0-9-]{8,64}")  # what a proxy may name a request; nothing that a key could look like
_log = structlog.get_logger()


class Journal:
    """ASGI middleware that writes the log and the counts, and answers what nothing else caught."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app, self._meters = app, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, and write down that it was."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = id
        method, started, status, lost = scope["method"], time.perf_counter(), 0, False

        async def watching(message: Message) -> None:
            nonlocal status, lost
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER.encode(), id.encode())]
            try:
                await send(message)
            except Exception:  # the server's: the client sent nonsense after its request, or the connection broke
                lost = True
                raise

        self._meters.begin()
        try:
            await self._app(scope, receive, watching)
        except Exception as fault:
            told = {"request": id, "method": method, "route": _template(scope), "faults": list(describe(fault))}
            (_log.warning if lost else _log.error)("not sent" if lost else "fault", **told)
            if status == 0:  # else the client sees that the answer breaks off
                await problem(
                    Request(scope), 500, "the service made an error; its log has more under this request's id"
                )(scope, receive, watching)
        finally:
            seconds, route = time.perf_counter() - started, _template(scope)
            if scope["state"].get("for_curators"):  # who may read the counts is not to learn what curators do
                self._meters.end(method, CURATORS, 0, seconds)
            else:
                self._meters.end(method, route, status, seconds)
            if status >= 500 or scope["path"] not in OPEN:  # probes come every few seconds
                key = scope["state"].get("key")
                _log.info(
                    "request", request=id, method=method, route=route, status=status, ms=round(seconds * 1000, 1),
                    key=None if key is None else key.id,
                )  # fmt: skip


def describe(fault: BaseException) -> Iterator[str]:
    """Yield the types of an exception and of its causes, with the places they came from; never their texts.

    The text of an exception may hold what a request sent.
    """
    seen: set[int] = set()
    cause: BaseException | None = fault
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield f"{type(cause).__module__}.{type(cause).__qualname__}: {' > '.join(_places(cause.__traceback__))}"
        if isinstance(cause, BaseExceptionGroup):
            for part in cause.exceptions:
                yield from describe(part)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _places(trace: TracebackType | None) -> Iterator[str]:
    """Yield file, line and function of each frame, outermost first."""
    while trace is not None:
        code = trace.tb_frame.f_code
        yield f"{code.co_filename}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next


def _request_id(scope: Scope) -> str:
    """Return the id that a proxy gave the request, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _GIVEN.fullmatch(value):
            return str(value.decode())
    return secrets.token_hex(8)


def _template(scope: Scope) -> str:
    """Return the template of the route that took the request."""
    return getattr(scope.get("route"), "path_format", "none")
