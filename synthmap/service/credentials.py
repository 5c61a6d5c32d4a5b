"""The key that a request was sent with: as Bearer, as the password of Basic, or as ``?token=``."""

import base64
from urllib.parse import parse_qsl

from starlette.types import Scope

UNREADABLE = ""  # opens nothing


def sent_secrets(scope: Scope) -> set[str]:
    """Return every secret that the request was sent with; what cannot be read counts as one that opens nothing."""
    found = {_secret(value) for name, value in scope["headers"] if name == b"authorization"}
    query: bytes = scope["query_string"]
    if b"token" in query or b"%" in query:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        found |= {value for name, value in pairs if name == "token"}
    return found


def _secret(authorization: bytes) -> str:
    """Return the secret in an Authorization header; the user name of Basic may be any."""
    scheme, _, rest = authorization.decode("latin-1").strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest.strip(), validate=True).decode(errors="replace")
        except ValueError:  # not Base64, or not even ASCII
            return UNREADABLE
        return pair.partition(":")[2]
    return UNREADABLE
