"""The path of a request below the service's prefix."""

from starlette.types import Scope

# for machines that have no key, and the style of pages, whose links carry none: neither refused nor counted
OPEN = frozenset({"/healthz", "/readyz", "/static/synthmap.css"})
MAP = "/map"  # the page and its files hold nothing of any release, and it is where a key is entered


def is_open(path: str) -> bool:
    """Return whether a path, as routes see it, takes no key."""
    return path in OPEN or path == MAP or path.startswith(f"{MAP}/")


def route_path(scope: Scope) -> str:
    """Return the path that routes see: without the prefix, whether or not a proxy took it away already."""
    path: str = scope["path"]
    prefix = scope.get("root_path", "").rstrip("/")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path
