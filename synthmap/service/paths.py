"""The path of a request below the service's prefix."""

from starlette.types import Scope

OPEN = frozenset({"/healthz", "/readyz"})  # for machines that have no key: neither refused nor counted


def route_path(scope: Scope) -> str:
    """Return the path that routes see: without the prefix, whether or not a proxy took it away already."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "").rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path
