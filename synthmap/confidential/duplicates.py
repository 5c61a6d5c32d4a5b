"""Several rows of one pair of origin and destination: a fault, or parts of one flow."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.confidential.table import Chunk
from synthmap.errors import ConfidentialDataError
from synthmap.geography.arrays import rows_at
from synthmap.geography.zones import Zones

Rows = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]
Pairs = tuple[NDArray[np.int32], NDArray[np.uint64]]


def merge_tables(
    listed: Sequence[Chunk], flows: Sequence[Chunk], *, policy: Literal["refuse", "sum"], zones: Zones
) -> Rows:
    """Return all rows as one table, sorted by destination, then origin, each pair once.

    Parameters
    ----------
    listed, flows : sequence of Chunk
        Of tables with one row a worker, in which a pair may occur often, and of others; at least one chunk in all.
        Confidential.
    policy : {"refuse", "sum"}
        What a pair is that occurs in several rows of `flows`, or there and in `listed`: a fault, or several parts of
        one flow. Pairs with an origin off the map are told apart by its id as it is written.
    zones : Zones
        Public.

    Raises
    ------
    ConfidentialDataError
        If a pair occurs twice under ``"refuse"``; names up to ten destinations, never an origin.
    """
    if policy == "refuse":
        _refuse_repeated_beyond(listed, flows, zones)
    rows = [merge_duplicates(*_stack(_rows(listed)), policy="sum", zones=zones)] if listed else []
    return merge_duplicates(*_stack(rows + _rows(flows)), policy=policy, zones=zones)


def _rows(chunks: Sequence[Chunk]) -> list[Rows]:
    return [(chunk.destination, chunk.origin, chunk.counts) for chunk in chunks]


def _stack(rows: Sequence[Rows]) -> Rows:
    """Return blocks of rows, at least one, as one."""
    destination, origin, counts = zip(*rows, strict=True)
    return np.concatenate(destination), np.concatenate(origin), np.concatenate(counts)


def _refuse_repeated_beyond(listed: Sequence[Chunk], flows: Sequence[Chunk], zones: Zones) -> None:
    """Raise if a pair whose origin lies off the map occurs in several rows of `flows`, or there and in `listed`."""
    once, again = _sorted(_beyond(listed, zones))
    more = _beyond(flows, zones)
    pairs = (np.concatenate([once[0][~again], more[0]]), np.concatenate([once[1][~again], more[1]]))
    (destination, _), again = _sorted(pairs)
    if again.any():
        raise ConfidentialDataError(_duplicates_message(np.unique(destination[again]), zones))


def _beyond(chunks: Sequence[Chunk], zones: Zones) -> Pairs:
    """Return destination and number of the origin's id of all rows from off the map."""
    destinations = [chunk.destination[chunk.origin == len(zones)] for chunk in chunks]
    numbers = [chunk.beyond for chunk in chunks]
    return (
        np.concatenate([np.empty(0, np.int32), *destinations]),
        np.concatenate([np.empty(0, np.uint64), *numbers]),
    )


def _sorted(pairs: Pairs) -> tuple[Pairs, NDArray[np.bool_]]:
    """Return pairs sorted, and whether each is the same as the one before it."""
    order = np.lexsort(pairs[::-1])
    destination, number = pairs[0][order], pairs[1][order]
    again = np.zeros(order.size, np.bool_)
    again[1:] = (destination[1:] == destination[:-1]) & (number[1:] == number[:-1])
    return (destination, number), again


def merge_duplicates(
    destination: NDArray[np.int32],
    origin: NDArray[np.int32],
    counts: NDArray[np.int64],
    *,
    policy: Literal["refuse", "sum"],
    zones: Zones,
) -> Rows:
    """Return the rows sorted by destination, then origin, each pair once.

    Many origins off the map share one rank, so rows from elsewhere are summed under either policy: `merge_tables` tells
    them apart.

    Parameters
    ----------
    destination, origin : ndarray of int32, shape (rows,)
        Ranks in `zones`; an origin of ``len(zones)`` is elsewhere. Confidential.
    counts : ndarray of int64, shape (rows, S)
        Workers of each segment. Confidential.
    policy : {"refuse", "sum"}
        What a pair in several rows is: a fault, or several parts of one flow. Tables with one row a
        worker need ``"sum"``.
    zones : Zones
        Public.

    Raises
    ------
    ConfidentialDataError
        If a pair occurs twice under ``"refuse"``; names up to ten destinations, never an origin.
    """
    pair = destination.astype(np.int64) * (len(zones) + 1) + origin
    order = np.argsort(pair)  # not stable: rows of one pair are summed or refused
    pair = pair[order]
    first = np.ones(pair.size, dtype=np.bool_)
    first[1:] = pair[1:] != pair[:-1]
    again = order[~first]
    again = again[origin[again] < len(zones)]
    if policy == "refuse" and again.size:
        raise ConfidentialDataError(_duplicates_message(np.unique(destination[again]), zones))
    if first.all():
        return destination[order], origin[order], rows_at(counts, order)
    starts = np.flatnonzero(first)
    kept = order[starts]
    return destination[kept], origin[kept], np.add.reduceat(rows_at(counts, order), starts, axis=0)


def _duplicates_message(destinations: NDArray[np.int32], zones: Zones) -> str:
    """Return the message for pairs in several rows, at `destinations`."""
    ids = zones.ids.take(pa.array(destinations[:10])).to_pylist()
    more = ", …" if destinations.size > 10 else ""
    return (
        f"each pair of origin and destination must occur once; some occur in several rows, at "
        f"destination {', '.join(map(repr, ids))}{more}: remove the repeated rows, or set "
        f'duplicates = "sum" if they are parts of one flow'
    )
