"""Text is sent compressed to whoever takes it so; files, ranges of files and tiles are sent as they are."""

import re
import zlib

from anyio.to_thread import run_sync
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_KINDS = ("text/", "application/json", "application/geo+json", "application/vnd.oai.openapi+json", "application/schema")
_LEAST = 1_000  # bytes; less fits into one packet anyway
_LARGE = 100_000  # bytes; more is compressed in a thread, beside the event loop
_LEVEL = 4  # half the time of the usual 6 for a tenth more bytes
_NEVER = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")


class Compress:
    """ASGI middleware that compresses with gzip. A strong ETag becomes a weak one: it named other bytes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, with less bytes where that is possible."""
        if scope["type"] == "http":
            send = _Sender(send, accepts=accepts_gzip(scope)).send
        await self._app(scope, receive, send)


class _Sender:
    """Sends one answer; its head waits for the first part of its body."""

    def __init__(self, send: Send, *, accepts: bool) -> None:
        self._send, self._accepts = send, accepts
        self._start: Message | None = None
        self._packer: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False)
            start, self._start = self._start, None
            if start is not None:
                self._decide(start, len(body), more=more)
            if self._packer is not None:
                if len(body) > _LARGE:
                    body = await run_sync(_packed, self._packer, body, more)
                else:
                    body = _packed(self._packer, body, more)
                if start is not None and not more:
                    MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
                message = {**message, "body": body}
            if start is not None:
                await self._send(start)
        await self._send(message)

    def _decide(self, start: Message, size: int, *, more: bool) -> None:
        """Choose whether to compress, and say so in the head."""
        headers = MutableHeaders(raw=start["headers"])
        if not _compressible(start["status"], headers):
            return
        headers.add_vary_header("Accept-Encoding")
        if not self._accepts or (size < _LEAST and not more):
            return
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        del headers["content-length"]
        headers["content-encoding"] = "gzip"
        tag = headers.get("etag")
        if tag is not None and not tag.startswith("W/"):
            headers["etag"] = f"W/{tag}"


def _packed(packer: "zlib._Compress", body: bytes, more: bool) -> bytes:
    return packer.compress(body) + (b"" if more else packer.flush())


def _compressible(status: int, headers: MutableHeaders) -> bool:
    """Return whether an answer is text made for this request, not a file of which parts can be asked for."""
    return (
        status not in (204, 206, 304)
        and headers.get("content-type", "").startswith(_KINDS)
        and "content-encoding" not in headers
        and "accept-ranges" not in headers
    )


def accepts_gzip(scope: Scope) -> bool:
    """Return whether the client takes gzip."""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            for part in value.decode("latin-1").lower().split(","):
                coding, _, weight = part.partition(";")
                if coding.strip() in ("gzip", "*") and not _NEVER.fullmatch(weight):
                    return True
    return False
