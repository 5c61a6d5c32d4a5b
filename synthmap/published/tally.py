"""Workers of chosen flows between zones, summed by any key and by class of their destination, a block at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthmap.published.figure_errors import figure_errors
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Block, Rows, Table

Codes = NDArray[np.uint32]
Chosen = NDArray[np.bool_]
KeyOf = Callable[[Codes, Codes], NDArray[np.integer]]


def tally(
    opened: OpenedRelease,
    keys: int,
    key_of: KeyOf,
    *,
    origins: Chosen | None = None,
    destinations: Chosen | None = None,
    columns: int | None = None,
    grouped: bool = True,
) -> NDArray[np.int64]:
    """Return the synthetic workers of chosen flows by key.

    Parameters
    ----------
    opened : OpenedRelease
    keys : int
    key_of : callable
        Given the codes of origins and destinations of rows, returns their keys; -1 leaves a row out.
    origins, destinations : ndarray of bool, shape (codes,), optional
        Zones that the ends must be; left out, any.
    columns : int, optional
        Only so many: 1 leaves segments out.
    grouped : bool
        Whether to keep classes of destinations apart, as errors need it.

    Returns
    -------
    ndarray of int64, shape (keys, columns, groups)
        Groups are those of `FigureErrors`, or one.

    Raises
    ------
    ReleaseCorruptError
        If a file cannot be read.
    """
    errors = figure_errors(opened)
    columns = columns or 1 + len(opened.manifest.segments)
    groups = errors.groups if grouped else 1
    sums = np.zeros((columns, keys * groups))
    table = Table(opened)
    for number in range(len(table)):
        runs = slice(*table.index.first[number : number + 2])
        if destinations is not None and not destinations[table.index.destinations[runs]].any():
            continue
        block = table.block(number)
        rows, origin, destination = _chosen(block, origins, destinations)
        key = key_of(origin, destination).astype(np.int64, copy=False)
        place = key * groups + errors.group[destination] if grouped else key
        kept = key >= 0
        if not kept.all():
            place = place[kept]
        for at, column in enumerate(block.values[:columns]):
            values = column[rows]
            sums[at] += np.bincount(place, values if values.size == place.size else values[kept], sums.shape[1])
    return sums.reshape(columns, keys, groups).swapaxes(0, 1).astype(np.int64)


def _chosen(block: Block, origins: Chosen | None, destinations: Chosen | None) -> tuple[Rows, Codes, Codes]:
    """Return chosen rows of a block and the codes of their ends."""
    every = destinations is None or destinations[block.destinations].all()
    runs: NDArray[Any] = np.arange(block.destinations.size)
    if not every and destinations is not None:
        runs = np.flatnonzero(destinations[block.destinations])
    rows = block.rows(runs)
    origin = block.origins[rows]
    destination = np.repeat(block.destinations[runs], block.starts[runs + 1] - block.starts[runs])
    if origins is None:
        return rows, origin, destination
    mine = np.flatnonzero(origins[origin])
    at = mine + rows.start if isinstance(rows, slice) else rows[mine]
    return at, origin[mine], destination[mine]
