"""The one way to compile a function: numba, without the GIL, cached on disk, typed for mypy."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_HERE = Path(__file__).parent
# numba renews a cached function only when its *own* file changes, not when a function it calls does
_ROOMS = ("privacy", "geography", "kernels", "mechanism")
_FILES = sorted(path for room in _ROOMS for path in (_HERE / room).glob("*.py"))
_ABOVE = sorted((_HERE / "analysis").glob("*.py"))  # compiled code there calls the rooms', and across files
SOURCES, _SOURCES_ABOVE = (
    hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    for files in (_FILES, _FILES + _ABOVE)
)
F = TypeVar("F", bound=Callable[..., object])


def _cache_root(chosen: str) -> Path:
    """Return where compiled code is kept: NUMBA_CACHE_DIR, beside the package, or the user's cache."""
    if chosen:
        return Path(chosen)
    if os.access(_HERE, os.W_OK):
        return _HERE / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def compiled(function: F) -> F:
    """Return `function` compiled on first call; floats are IEEE (no fast-math), so bounds stay bounds."""
    config: Any = numba.config
    before = config.CACHE_DIR
    sources = _SOURCES_ABOVE if function.__module__.startswith("synthmap.analysis.") else SOURCES
    config.CACHE_DIR = str(_cache_root(before) / f"synthmap-{sources}")
    try:  # the place is settled here, at decoration
        jit = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return cast(F, jit)
