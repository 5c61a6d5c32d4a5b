"""The random bits: a cryptographic stream, independent for every destination.

AES-256 in counter mode (OpenSSL, through `cryptography`). The counter block of destination d starts at
d·2^64, so streams of different destinations never overlap. The key lives in this object only.
"""

import hashlib
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from synthmap.compiled import compiled


@compiled
def _count(destinations: NDArray[np.uint64], blocks: NDArray[np.int64], counter: NDArray[np.uint64]) -> None:
    """Fill `counter`, shape (blocks in all, 2), with destination and 0, 1, 2, … for the blocks of each."""
    at = 0
    for i in range(destinations.size):
        for block in range(blocks[i]):
            counter[at, 0], counter[at, 1] = destinations[i], block
            at += 1


@dataclass(frozen=True)
class Stream:
    """Independent uniform 64-bit words for each destination; make one with the functions below."""

    key: bytes = field(repr=False)
    private: bool

    def words(self, destination: int, count: int) -> NDArray[np.uint64]:
        """Return the first `count` words of the stream of `destination` (its public number, below 2^64)."""
        return self.batch(np.array([destination], np.uint64), np.array([count]))

    def batch(self, destinations: NDArray[np.integer[Any]], counts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the first `counts[i]` words of each destination's stream, one after the other.

        Counter mode is the block cipher of consecutive counters (NIST SP 800-38A, 6.5): all are enciphered at once.
        """
        blocks = (counts + 1) // 2
        counter = np.empty((int(blocks.sum()), 2), np.uint64)
        _count(destinations.astype(np.uint64), blocks, counter)
        if sys.byteorder == "little":
            counter.byteswap(inplace=True)
        filled = np.empty(counter.nbytes + 15, np.uint8)  # `update_into` wants room for one block more
        encryptor = Cipher(AES256(self.key), ECB()).encryptor()  # noqa: S305 – of counters, none of which comes twice
        encryptor.update_into(counter.view(np.uint8).reshape(-1).data, filled.data)
        words = filled[: counter.nbytes].view("<u8").astype(np.uint64, copy=False)
        odd = np.flatnonzero(counts % 2)
        return np.delete(words, 2 * np.cumsum(blocks)[odd] - 1) if odd.size else words


def secure_stream() -> Stream:
    """Return a stream keyed from the operating system. The key is never stored or sent."""
    return Stream(key=secrets.token_bytes(32), private=True)


def seeded_stream(seed: int) -> Stream:
    """Return a stream that depends on `seed` only: for tests and demonstrations, **not private**."""
    key = hashlib.sha256(b"synthmap seeded stream, not private\0" + str(seed).encode()).digest()
    return Stream(key=key, private=False)


def draw_all(
    stream: Stream,
    destinations: NDArray[np.integer[Any]],
    budget: NDArray[np.int64],
    draw: Callable[..., None],
    *outputs: NDArray[Any],
) -> NDArray[np.int8]:
    """Return what became of each destination: 0 (drawn) or 2 (its domain is not as planned).

    Where words run out the destination is drawn again from the same stream, twice as long, which begins as before.

    Parameters
    ----------
    budget : ndarray of int64, shape (destinations,)
        Words that each gets at first.
    draw : callable
        A kernel that takes where each destination's words start, the words, `outputs` and status, and fills the latter
        two for destinations of status 1; those that ran out of words stay so.
    """
    status = np.ones(destinations.size, np.int8)
    while (status == 1).any():
        asked = np.where(status == 1, budget + budget % 2, 0)  # whole blocks
        draw(np.append(0, np.cumsum(asked)), stream.batch(destinations, asked), *outputs, status)
        budget = budget * 2
    return status
