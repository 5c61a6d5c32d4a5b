"""Cursors: where the next page of a query starts, as text that only this service reads."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from synthmap.errors import QueryError
from synthmap.published.od import MOST, Position, Query


def write_cursor(position: Position, etag: str, query: Query) -> str:
    """Return the cursor of a position in the answer of the release with this etag to this query."""
    text = json.dumps([_bound(etag, query), position.count, position.origin, position.destination, position.taken])
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, etag: str, query: Query) -> Position:
    """Return the position of a cursor.

    Raises
    ------
    QueryError
        If it is none, or one of another query or release.
    """
    try:
        bound, count, origin, destination, taken = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError):
        raise _refusal() from None
    if bound != _bound(etag, query):
        raise QueryError("cursor must be of this release and this query; start again without it")
    if not (
        all(isinstance(number, int) and 0 < number <= MOST for number in (count, taken)) and _text(origin, destination)
    ):
        raise _refusal()
    return Position(count, origin, destination, taken)


def _refusal() -> QueryError:
    return QueryError("cursor must be one that the page before named; start again without it")


def _text(*values: object) -> bool:
    """Return whether values are text that UTF-8 can hold; JSON allows halves of characters."""
    return all(isinstance(value, str) and value.encode(errors="replace").decode() == value for value in values)


def _bound(etag: str, query: Query) -> str:
    """Return what a cursor is bound to."""
    return sha256(f"{etag} {query!r}".encode()).hexdigest()[:16]
