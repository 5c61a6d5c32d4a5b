"""What was read or summed is kept while it is used: least recently used goes first, bytes are bounded."""

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar, cast

import pyarrow as pa

BYTES = 192 * 2**20  # 10 million rows take 110 MB; a serving process stays under 1 GB


_M_MMAP_THRESHOLD = -3  # of malloc.h


class Sized(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Memory:
    """Values by key, made once however many threads ask, and no more of them than `limit` bytes."""

    def __init__(self, limit: int = BYTES) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Sized] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return self._bytes

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def get(self, key: Hashable, make: Callable[[], Kept], *, largest: int | None = None) -> Kept:
        """Return the value of `key`, made by `make` unless it is still kept; other keys are not held up.

        One of more than `largest` bytes (the limit, unless given) is handed out and not kept.
        """
        with self._lock:
            if key in self._kept:
                return cast(Kept, self._used(key))
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    return cast(Kept, self._used(key))
            try:
                value = make()
                with self._lock:
                    self._keep(key, value, self.limit if largest is None else largest)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value

    def _used(self, key: Hashable) -> Sized:
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: Hashable, value: Sized, largest: int) -> None:
        if value.nbytes > largest or key in self._kept:
            return
        self._kept[key] = value
        self._bytes += value.nbytes
        while self._bytes > self.limit:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes


def free_at_once() -> None:
    """Let this process give arrays of 1 MB or more back to the system when they are freed.

    glibc raises that limit by itself with every large array, and then keeps what threads freed, and Arrow's own
    allocator keeps more: a service that sums for eight readers at once would hold 200 MB for nothing. Where the C
    library has no such setting, it is left as it is.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_M_MMAP_THRESHOLD, 2**20)
