"""HEAD for every route that answers GET: the same headers, and no body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """ASGI middleware that asks the route as GET would, and keeps the body back.

    Servers drop the body of an answer to HEAD as well, but routes take HEAD only where they say so one by one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        ended = False

        async def without_body(message: Message) -> None:
            nonlocal ended
            if message["type"] != "http.response.body":
                await send(message)
            elif not ended:  # what streams a long body sees the request end here, as if its client had left
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        headers = [pair for pair in scope["headers"] if pair[0] != b"range"]  # ranges are of GET only
        as_get = {**scope, "method": "GET", "headers": headers}
        try:
            await self._app(as_get, receive, without_body)
        finally:
            if "route" in as_get:
                scope["route"] = as_get["route"]  # for the journal
