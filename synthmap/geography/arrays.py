"""Arrays in files, opened by several threads; and what numpy does slowly with long arrays of short rows."""

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


def row_sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of each row, shape (rows,): `numpy.sum` takes several times as long for a few columns."""
    found: NDArray[np.int64] = np.einsum("ij->i", counts)
    return found


def rows_at(counts: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``counts[places]``, which takes several times as long for a few columns."""
    return counts.take(places, axis=0)
