"""What one request may take: characters of its address, bytes of its body, seconds until it is answered."""

import asyncio
import math

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synthmap.service.problems import Problem, problem

ADDRESS = 8_000  # bytes of path and query; RFC 9110 asks servers to take at least these
_CLOSE = {"Connection": "close"}  # the rest of a body that is too large is not read


class AddressLimit:
    """ASGI middleware that refuses addresses that no file system and no database could look up."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        answer = None
        if scope["type"] == "http":
            path, query = scope["path"], scope["query_string"]
            if len(path) + len(query) > ADDRESS:
                answer = problem(Request(scope), 414, f"path and query must be at most {ADDRESS:,} bytes; use a body")
            elif "\0" in path or b"%00" in query or b"\0" in query:
                answer = problem(Request(scope), 400, "path and query must hold no NUL character")
        await (self._app if answer is None else answer)(scope, receive, send)


class BodyLimit:
    """ASGI middleware that refuses larger bodies, also those that do not say how large they are."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._detail = f"body must be at most {most:,} bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request; whoever reads its body gets a refusal once that is too large."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):  # no route reads a body of these
            await self._app(scope, receive, send)
            return
        if _told(scope) > self._most:
            await problem(Request(scope), 413, self._detail, _CLOSE)(scope, receive, send)
            return
        seen = 0

        async def counting() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise Problem(413, self._detail, _CLOSE)
            return message

        await self._app(scope, counting, send)


class TimeLimit:
    """ASGI middleware that answers with 503 when nothing was sent after so many seconds.

    Only the beginning of an answer is waited for: a large file may take its reader longer. Work in a thread cannot be
    stopped; its request is answered, and its thread is free when it is done.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or say that it takes too long."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False
        refusal: asyncio.Task[None] | None = None
        work = anyio.CancelScope()

        async def sending(message: Message) -> None:
            nonlocal begun
            if refusal is None:
                begun = True
                await send(message)

        def expire() -> None:
            nonlocal refusal
            if not begun:
                detail = f"the answer took longer than {self._seconds:g} seconds; ask for less"
                answer = problem(Request(scope), 503, detail, {"Retry-After": str(math.ceil(self._seconds))} | _CLOSE)
                refusal = asyncio.ensure_future(answer(scope, receive, send))
                work.cancel()

        timer = asyncio.get_running_loop().call_later(self._seconds, expire)
        try:
            with work:
                await self._app(scope, receive, sending)
        finally:
            timer.cancel()
            if refusal is not None:
                await refusal


def _told(scope: Scope) -> int:
    """Return the length of the body that the request tells; 0 where it tells none."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:20])
    return 0
