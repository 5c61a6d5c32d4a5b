"""Who may do what. Dependencies for routers: ``dependencies=[Depends(reads)]``; below them, who is asking."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from synthmap.catalog.keys import Key, Role
from synthmap.errors import CatalogError
from synthmap.service.credentials import sent_secrets
from synthmap.service.keyring import Keyring
from synthmap.service.paths import is_open, route_path
from synthmap.service.problems import Problem, problem
from synthmap.service.rates import Rates, address_of

_RANK = {role: rank for rank, role in enumerate(Role)}
_HOW = "send it as Authorization: Bearer, as the password of Basic, or as ?token="


def key_of(request: Request) -> Key | None:
    """Return the key that the request was sent with."""
    found: Key | None = request.scope["state"].get("key")
    return found


def is_curator(request: Request) -> bool:
    """Return whether a curator sent the request."""
    key = key_of(request)
    return key is not None and key.role is Role.CURATOR


async def reads(request: Request) -> None:
    """Let readers pass: anyone where reading is anonymous, else whoever has a key."""
    if not request.app.state.service.settings.anonymous:
        _need(request, Role.READER)


async def analyses(request: Request) -> None:
    """Let analysts and curators pass."""
    _need(request, Role.ANALYST)


async def curates(request: Request) -> None:
    """Let curators pass."""
    _need(request, Role.CURATOR)


_GUARDS: tuple[Callable[[Request], Awaitable[None]], ...] = (curates, analyses, reads)


async def admitted(request: Request) -> None:
    """Let pass whom the route's own guards let pass.

    As a dependency of the whole application it comes before all others: whoever may not use a route does not learn
    what is wrong with the request, or whether the release in its path exists.
    """
    dependant = getattr(request.scope.get("route"), "dependant", None)
    calls = set() if dependant is None else _calls(dependant)
    request.scope["state"]["for_curators"] = curates in calls
    for guard in _GUARDS:
        if guard in calls:
            await guard(request)


def _calls(dependant: Any) -> set[Any]:
    """Return the functions that a route depends on."""
    return {dependant.call}.union(*(_calls(part) for part in dependant.dependencies))


def _need(request: Request, role: Role) -> None:
    """Refuse whoever has no key, or one of a lower role."""
    key = key_of(request)
    if key is None:
        raise Problem(401, f"a key must be sent; {_HOW}")
    if _RANK[key.role] < _RANK[role]:
        raise Problem(403, f"role of the key ({key.role}) must be {role} or higher")


class Gate:
    """ASGI middleware that looks up the key of each request, and counts the requests of each caller.

    It refuses keys that open nothing, keys that disagree, callers who ask too often and, where reading is not
    anonymous, everyone without a key, at whatever path. It puts the key into ``request.state.key``.
    """

    def __init__(self, app: ASGIApp, keyring: Keyring, rates: Rates, *, anonymous: bool) -> None:
        self._app, self._keyring, self._rates, self._anonymous = app, keyring, rates, anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse its caller."""
        if scope["type"] != "http" or is_open(route_path(scope)):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            scope["state"]["key"] = await self._caller(scope)
        except Problem as fault:
            await problem(request, fault.status, fault.detail, fault.headers)(scope, receive, send)
            return
        except CatalogError as fault:
            await problem(request, 503, str(fault))(scope, receive, send)
            return

        async def guarded() -> Message:
            await admitted(request)  # no body is read, let alone found wrong, before its sender may send it
            return await receive()

        body = scope["method"] not in ("GET", "HEAD")
        await self._app(scope, guarded if body else receive, send)

    async def _caller(self, scope: Scope) -> Key | None:
        """Return the key of the request, None where it was sent without one, and take a token of its bucket."""
        secrets = sent_secrets(scope)
        address = address_of(scope.get("client"))
        if not secrets:
            self._count(f"address {address}")
            if not self._anonymous:
                raise Problem(401, f"a key must be sent; {_HOW}")
            return None
        secret = secrets.pop()
        fresh, key = self._keyring.kept(secret)
        if secrets or not fresh or key is None:
            self._count(f"guess {address}")  # its own bucket: who shares an address with a key does not use it up
        if secrets:
            raise Problem(401, "keys must not differ where several are sent")
        if not fresh:
            key = await self._keyring.find(secret)
        if key is None:
            raise Problem(401, "the key must be one of the service's, and not revoked")
        self._count(f"key {key.id}")
        return key

    def _count(self, caller: str) -> None:
        """Take a token of a bucket.

        Raises
        ------
        Problem
            429 if it is empty.
        """
        seconds = self._rates.wait(caller)
        if seconds:
            raise Problem(429, f"requests must be fewer; ask again after {seconds} s", {"Retry-After": str(seconds)})
