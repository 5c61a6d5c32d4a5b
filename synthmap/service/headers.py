"""Headers that every answer carries: what browsers must not do with it, and who may keep it."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synthmap.catalog.keys import Role

# pages are rendered here, and bring no script and no style of their own inside them
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # an address may hold a key
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", POLICY.encode()),
]


class SafeHeaders:
    """ASGI middleware that adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, with the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                told = {name.lower() for name, _ in own}
                message["headers"] = [*own, *(pair for pair in _ALWAYS if pair[0] not in told)]
                key = state.get("key")
                if key is not None:
                    _keep_from_others(MutableHeaders(raw=message["headers"]), key.role)
            await send(message)

        await self._app(scope, receive, adding)


def _keep_from_others(headers: MutableHeaders, role: Role) -> None:
    """Let no shared cache keep what a key was needed for, and no cache at all what a curator sees."""
    told = headers.get("cache-control", "")
    if role is Role.CURATOR:
        headers["cache-control"] = "no-store"
    elif "no-store" not in told:
        rest = [part.strip() for part in told.split(",") if part.strip().lower() not in ("", "public", "private")]
        headers["cache-control"] = ", ".join(["private", *rest])
