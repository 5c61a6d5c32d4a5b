"""How often one caller may ask: a bucket of tokens for each key, or each address where there is no key."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

_CALLERS = 10_000  # buckets in memory; the caller who was quiet longest is forgotten first


class Rates:
    """The buckets of one process. For one event loop.

    Parameters
    ----------
    per_minute : int
        Tokens that a bucket holds, and gets back in a minute; 0: no limit.
    clock : callable
        Monotonic seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when there were so many

    def wait(self, caller: str) -> int:
        """Take a token of `caller` and return 0; if none is left, return after how many seconds one will be."""
        if not self._most:
            return 0
        now = self._clock()
        tokens, before = self._buckets.pop(caller, (self._most, now))
        tokens = min(self._most, tokens + (now - before) * self._per_second)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - 1 if allowed else tokens), now
        if len(self._buckets) > _CALLERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1 - tokens) / self._per_second)


def address_of(client: tuple[str, int] | None) -> str:
    """Return whom an address counts as: itself, or its /64, since one caller of IPv6 has all addresses of one."""
    host = client[0] if client else ""
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return host[:64]
    if parsed.version == 4:
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
