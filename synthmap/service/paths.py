"""The path of a request below the service's prefix."""

from starlette.types import Scope

# for machines that have no key, and the style of pages, whose links carry none: neither refused nor counted
OPEN = frozenset({"/healthz", "/readyz", "/static/synthmap.css"})


def route_path(scope: Scope) -> str:
    """Return the path that routes see: without the prefix, whether or not a proxy took it away already."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "").rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path
