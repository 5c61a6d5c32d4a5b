"""Keys of the service: shown once when made, stored hashed, compared in constant time."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import select

from synthmap.catalog.database import Catalog
from synthmap.catalog.tables import KeyRow
from synthmap.errors import NotFoundError, QueryError

_SECRET = re.compile(r"smk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")  # id; 32 random bytes in base64
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


class Role(StrEnum):
    """What the holder of a key may do; each may what those before it may."""

    READER = "reader"
    ANALYST = "analyst"
    CURATOR = "curator"


@dataclass(frozen=True)
class Key:
    """A key without its secret."""

    id: str
    name: str
    role: Role
    created: datetime
    revoked: datetime | None


def add_key(catalog: Catalog, name: str, role: Role) -> str:
    """Return the secret of a new key, ``smk_<id>_<43 characters>``. It cannot be shown again.

    Raises
    ------
    QueryError
        If the name is empty, too long or not one line.
    """
    if not _NAME.fullmatch(name):
        raise QueryError("name of a key must be one line of 1 to 200 characters")
    id = secrets.token_hex(8)
    secret = f"smk_{id}_{secrets.token_urlsafe(32)}"
    with catalog.write() as session:
        session.add(KeyRow(id=id, name=name, role=role, sha256=_hash(secret), created=datetime.now(UTC), revoked=None))
    return secret


def find_key(catalog: Catalog, secret: str) -> Key | None:
    """Return the key whose secret this is; None if there is none or it was revoked.

    Notes
    -----
    The database is asked for the id, which is no secret; the hashes are compared in constant time.
    """
    parsed = _SECRET.fullmatch(secret)
    if parsed is None:
        return None
    with catalog.read() as session:
        row = session.get(KeyRow, parsed[1])
    same = hmac.compare_digest(_hash(secret), row.sha256 if row is not None else "0" * 64)
    return _key(row) if same and row is not None and row.revoked is None else None


def list_keys(catalog: Catalog) -> list[Key]:
    """Return all keys, revoked ones too, oldest first."""
    with catalog.read() as session:
        return [_key(row) for row in session.scalars(select(KeyRow).order_by(KeyRow.created, KeyRow.id))]


def revoke_key(catalog: Catalog, id: str) -> Key:
    """Return the key called `id`, which opens nothing from now on.

    Raises
    ------
    NotFoundError
        If there is none.
    """
    with catalog.write() as session:
        row = session.get(KeyRow, id) if re.fullmatch(r"[0-9a-f]{16}", id) else None
        if row is None:
            raise NotFoundError(f"key ({id}) must be one of the list")
        row.revoked = row.revoked or datetime.now(UTC)
        return _key(row)


def _hash(secret: str) -> str:
    """Return the SHA-256 of a secret.

    A slow hash protects secrets that can be guessed. This one has 256 random bits: trying them all is hopeless at any
    speed, and a slow hash at every request would only help whoever wants to keep the service busy.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: KeyRow) -> Key:
    return Key(row.id, row.name, Role(row.role), row.created, row.revoked)
