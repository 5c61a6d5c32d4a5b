"""Arrays in files, opened by several threads."""

import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_PARSING = threading.Lock()  # numpy reads a header with `ast`, in which threads of CPython 3.11 trip over each other


def load(path: Path, mode: Literal["r", "c"] = "c") -> NDArray[Any]:
    """Return the array in a ``.npy`` file, mapped into memory: ``r`` read-only, ``c`` copy on write."""
    with _PARSING:
        found: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
        return found
