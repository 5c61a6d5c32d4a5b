"""The one way to compile a function: numba, without the GIL, cached on disk, typed for mypy."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Return `function` compiled on first call; floats are IEEE (no fast-math), so bounds stay bounds."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
