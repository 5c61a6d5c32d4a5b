"""Keys that were looked up lately: the catalog is not asked at every request, and a revoked key ends within seconds."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable

import anyio
from anyio.to_thread import run_sync

from synthmap.catalog.database import Catalog
from synthmap.catalog.keys import Key, find_key
from synthmap.errors import CatalogError

SECONDS = 3.0  # a revoked key opens nothing after these
_DOWN_SECONDS = 1.0  # a catalog that did not answer is not asked again before
_KEPT = 4_096
_AT_ONCE = 4  # look-ups; a frozen database must not hold the threads that answer others


class Keyring:
    """Looks keys up in a catalog. For one event loop."""

    def __init__(self, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog, self._clock = catalog, clock
        self._known: OrderedDict[bytes, tuple[Key | None, float]] = OrderedDict()  # by hash of the secret; until when
        self._down: tuple[str, float] = ("", 0.0)  # what a catalog that does not answer said, and until when
        self._turn = anyio.Semaphore(_AT_ONCE)
        self._threads = anyio.CapacityLimiter(_AT_ONCE)

    def kept(self, secret: str) -> tuple[bool, Key | None]:
        """Return whether it is still known what `secret` is, and the key if it is one."""
        found = self._known.get(_hash(secret))
        return (False, None) if found is None or found[1] <= self._clock() else (True, found[0])

    async def find(self, secret: str) -> Key | None:
        """Return the key whose secret this is; None if there is none or it was revoked.

        Raises
        ------
        CatalogError
            If the catalog does not answer.
        """
        async with self._turn:
            fresh, key = self.kept(secret)  # by whoever asked before, while this one waited
            if fresh:
                return key
            text, until = self._down
            asked = self._clock()
            if asked < until:
                raise CatalogError(text)
            try:
                key = await run_sync(find_key, self._catalog, secret, limiter=self._threads)
            except CatalogError as fault:
                self._down = str(fault), self._clock() + _DOWN_SECONDS
                raise
            self._known[_hash(secret)] = key, asked + SECONDS
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
            return key


def _hash(secret: str) -> bytes:
    """Return what a secret is kept by: neither it nor anything to guess it from stays in memory."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
