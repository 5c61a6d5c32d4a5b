"""The Dirichlet-multinomial draw as a Pólya urn, in integers, with dropped cells drawn lazily.

Proof that the law is exact: synthmap/privacy/proofs/urn.md.
"""

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.kernels.bounded import KEEP_BITS, KEEP_UNITS, binomial, uniform_below


@compiled
def draw(
    homes: NDArray[np.int64],
    synthetic_size: int,
    cells: int,
    alpha_numerator: int,
    alpha_denominator: int,
    order: NDArray[np.int64],
    class_start: NDArray[np.int64],
    class_keep: NDArray[np.int64],
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return `synthetic_size` cells drawn from the urn of one destination.

    **Guarantee** (adjacency: one entry of `homes` changes): what `minimum_alpha` certified for these
    parameters, since the law is the Dirichlet-multinomial exactly. Cost: O(n + m), whatever `cells` is, plus
    one random bit or two per empty cell where cells are dropped.

    Parameters
    ----------
    homes : ndarray of int64, shape (n,)
        Confidential: the cell of each worker, ascending.
    synthetic_size, cells : int
        Public m and k.
    alpha_numerator, alpha_denominator : int
        The pseudo-count of a cell, in workers.
    order : ndarray of int64, shape (cells,) or (0,)
        Cells sorted by keep class; empty means 0, 1, 2, …
    class_start : ndarray of int64, shape (classes + 1,)
        Where each class starts in `order`.
    class_keep : ndarray of int64, shape (classes,)
        Keep probability of an empty cell, in units of 1/2^16.
    words, reader
        The random stream, see `kernels.bounded`.

    Returns
    -------
    ndarray of int64, shape (m,)
        Cells, in the order drawn. Meaningless when `reader` is negative.
    """
    workers = homes.size
    drawn = np.empty(synthetic_size, np.int64)
    p, q = alpha_numerator, alpha_denominator
    real = q * workers
    if class_keep.size == 1 and class_keep[0] >= KEEP_UNITS:
        pseudo = p * cells
        for t in range(synthetic_size):
            unit = uniform_below(words, reader, real + pseudo + q * t)
            if unit < real:
                drawn[t] = homes[unit // q]
            elif unit < real + pseudo:
                drawn[t] = (unit - real) // p
            else:
                drawn[t] = drawn[(unit - real - pseudo) // q]
        return drawn
    return _draw_dropping(homes, drawn, cells, p, q, order, class_start, class_keep, words, reader)


@compiled
def _distinct(homes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values of an ascending array."""
    out = np.empty(homes.size, np.int64)
    size = 0
    for home in homes:
        if size == 0 or out[size - 1] != home:
            out[size] = home
            size += 1
    return out[:size]


@compiled
def _draw_dropping(
    homes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    cells: int,
    p: int,
    q: int,
    order: NDArray[np.int64],
    class_start: NDArray[np.int64],
    class_keep: NDArray[np.int64],
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Fill and return `drawn`; how many empty cells of a class stay is drawn first, which ones when touched."""
    classes = class_keep.size
    occupied = _distinct(homes)
    position = np.arange(cells) if order.size == 0 and classes > 1 else order
    class_of = np.zeros(occupied.size, np.int64)
    if classes > 1:
        rank = np.empty(cells, np.int64)
        for i in range(cells):
            rank[position[i]] = i
        for i in range(occupied.size):
            class_of[i] = np.searchsorted(class_start, rank[occupied[i]], side="right") - 1
    kept = np.zeros(classes, np.int64)
    for c in range(classes):
        empty = class_start[c + 1] - class_start[c] - (class_of == c).sum()
        kept[c] = binomial(words, reader, empty, class_keep[c], KEEP_BITS)
    total_kept = kept.sum()
    touched = np.empty((classes, min(drawn.size, cells)), np.int64)
    touched_size = np.zeros(classes, np.int64)
    table_size = 16
    while table_size < 2 * min(drawn.size, cells) + 2:
        table_size *= 2
    table = np.full(table_size, -1, np.int64)
    real = q * homes.size
    pseudo = p * (occupied.size + total_kept)
    for t in range(drawn.size):
        unit = uniform_below(words, reader, real + pseudo + q * t)
        if reader[0] < 0:
            break
        if unit < real:
            drawn[t] = homes[unit // q]
            continue
        if unit >= real + pseudo:
            drawn[t] = drawn[(unit - real - pseudo) // q]
            continue
        index = (unit - real) // p
        if index < occupied.size:
            drawn[t] = occupied[index]
            continue
        index -= occupied.size
        c = 0
        while index >= kept[c]:
            index -= kept[c]
            c += 1
        if index < touched_size[c]:
            drawn[t] = touched[c, index]
            continue
        cell = _untouched_cell(class_start[c], class_start[c + 1], position, occupied, table, words, reader)
        touched[c, touched_size[c]] = cell
        touched_size[c] += 1
        drawn[t] = cell
    return drawn


@compiled
def _untouched_cell(
    first: int,
    last: int,
    position: NDArray[np.int64],
    occupied: NDArray[np.int64],
    table: NDArray[np.int64],
    words: NDArray[np.uint64],
    reader: NDArray[np.int64],
) -> int:
    """Return a uniform cell of position[first:last] that is neither occupied nor in `table`, and put it there."""
    cell = np.int64(first)
    while reader[0] >= 0:
        at = first + uniform_below(words, reader, last - first)
        cell = np.int64(at if position.size == 0 else position[at])
        if not _contains(occupied, cell) and _insert(table, cell):
            break
    return int(cell)


@compiled
def _contains(ascending: NDArray[np.int64], value: int | np.int64) -> bool:
    """Return whether `value` occurs in an ascending array."""
    at = np.searchsorted(ascending, value)
    return bool(at < ascending.size and ascending[at] == value)


@compiled
def _insert(table: NDArray[np.int64], value: int | np.int64) -> bool:
    """Add `value` to an open-addressing hash set; return False if it was there."""
    mask = table.size - 1
    at = (value * 0x9E3779B97F4A7C1) & mask
    while table[at] >= 0:
        if table[at] == value:
            return False
        at = (at + 1) & mask
    table[at] = value
    return True
