"""Which flows are shown at a zoom, and which of them touch a tile."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.published.tiles_flows import RankedFlows
from synthmap.published.tiles_grid import Tile

BLOCK = 64  # flows side by side in space whose common box is looked at first
_PASSES = 16  # over these, until no one is left who may find room
_AT_ONCE = 1 << 15  # flows for which there is room or not, decided together
_CROSSINGS = 1 << 25  # tiles that all flows together may cross before the rest is left out: bounds time
_LOOKS = (0, 1, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875)  # where a line is looked at before its whole way is
_NUDGE = 1e-7  # of a tile's side: more than rounding, and less than can be seen
_WINDOW = 12  # bits of row and of column that tell tiles apart; farther ones share their room


@dataclass(frozen=True)
class ShownFlows:
    """The flows shown at a zoom: short ones apart from long ones, and what is near side by side.

    Attributes
    ----------
    flows : RankedFlows
        Not in the order of their strength.
    rank : ndarray of int64, shape (flows,)
        0 for the strongest.
    boxes : ndarray of float64, shape (blocks, 4)
        Smallest x and y and largest x and y of each `BLOCK` flows.
    """

    flows: RankedFlows
    rank: NDArray[np.int64]
    boxes: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        return self.flows.nbytes + self.rank.nbytes + self.boxes.nbytes

    def touching(self, tile: Tile, most: int) -> RankedFlows:
        """Return the flows that reach into a tile or its buffer, the strongest first, at most `most`."""
        blocks = np.flatnonzero(tile.meets(self.boxes))
        rows = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        rows = rows[rows < self.rank.size]
        rows = rows[tile.touched(self.flows.take(rows).lines())]
        return self.flows.take(rows[np.argsort(self.rank[rows])][:most])


def show(flows: RankedFlows, zoom: int, most: int) -> ShownFlows:
    """Return the flows shown at a zoom.

    The strongest come first; one is shown if on its whole way no tile has as many already. So each line is seen from
    end to end, and lines do not break off at the borders of tiles.

    Parameters
    ----------
    flows : RankedFlows
    zoom : int
    most : int
        Flows that a tile may have, below 65,536; those that only touch its buffer included, for which room is kept.
    """
    room = max(1, most * 4 // 5)
    taken = np.zeros(1 << 2 * _WINDOW, np.uint16)
    kept = [np.empty(0, np.int64)]
    crossings = 0
    for start in range(0, len(flows), _AT_ONCE):
        part = np.arange(start, min(start + _AT_ONCE, len(flows)))
        lines = flows.take(part).lines() * float(1 << zoom)
        for share in _LOOKS:
            free = taken[_places(np.floor(lines[:, 0] + share * (lines[:, 1] - lines[:, 0])), zoom)] < room
            part, lines = part[free], lines[free]
        for few in _shares(lines):
            owner, tiles = crossed(lines[few])
            kept.append(part[few][_with_room(owner, _places(tiles, zoom), taken, room)])
            crossings += owner.size
        if crossings > _CROSSINGS:
            break
    rows = np.concatenate(kept)
    return _arranged(flows.take(rows), rows)


def _with_room(
    owner: NDArray[np.int64], place: NDArray[np.int64], taken: NDArray[np.uint16], room: int
) -> NDArray[np.int64]:
    """Return the lines for which there is room, the stronger first, and note what they take.

    Parameters
    ----------
    owner, place : ndarray of int64, shape (crossings,)
        Which line crosses which tile; a stronger line has a smaller number.
    taken : ndarray of uint16
        Lines in each tile already; is changed.
    room : int
        Lines that a tile may have.

    Notes
    -----
    All are decided together: who finds room even if every stronger line takes its own. Then again those who did not,
    without the lines that meet a full tile, since these take nothing.
    """
    crossings = np.sort(place << 32 | owner)
    crossings = crossings[np.diff(crossings, prepend=-1) > 0]  # over the antimeridian a line may come back to a tile
    place, owner = crossings >> 32, crossings & (2**32 - 1)
    lines = int(owner.max(initial=-1)) + 1
    found = np.zeros(lines, np.bool_)
    for _ in range(_PASSES):
        first = np.flatnonzero(np.diff(place, prepend=-1))
        before = np.arange(place.size) - np.repeat(first, np.diff(first, append=place.size))
        out = np.ones(lines, np.bool_)
        out[owner] = False
        out[owner[taken[place] + before >= room]] = True
        found |= ~out
        good = ~out[owner]
        if place.size:
            taken[place[first]] += np.add.reduceat(good, first, dtype=np.uint16)
        out[:] = found
        out[owner[taken[place] >= room]] = True
        place, owner = place[~out[owner]], owner[~out[owner]]
        if not owner.size:
            break
    return np.flatnonzero(found)


def crossed(lines: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the squares of side 1 that lines cross, column and row, and the line of each; in no order.

    Notes
    -----
    A line enters a square where it starts or where it crosses a line of the grid; the point of crossing says which. One
    through a corner enters the square behind it; rounding must not put it into the one beside.
    """
    start, stop = np.floor(lines[:, 0]), np.floor(lines[:, 1])
    step = lines[:, 1] - lines[:, 0]
    owners, squares = [np.arange(len(lines))], [start]
    for axis, other in ((0, 1), (1, 0)):
        number = np.abs(stop - start)[:, axis].astype(np.int64)
        owner = np.repeat(np.arange(len(lines)), number)
        nth = np.arange(owner.size) - np.repeat(np.cumsum(number) - number, number)
        forward = step[owner, axis] > 0
        entered = start[owner, axis] + np.where(forward, nth + 1, -nth - 1)
        edge = np.where(forward, entered, entered + 1)
        share = (edge - lines[owner, 0, axis]) / step[owner, axis]
        square = np.empty((owner.size, 2))
        square[:, axis] = entered
        across = lines[owner, 0, other] + share * step[owner, other]
        entered = np.floor(across + _NUDGE * np.sign(step[owner, other]))
        ends = start[owner, other], stop[owner, other]
        square[:, other] = np.clip(entered, np.minimum(*ends), np.maximum(*ends))
        owners.append(owner)
        squares.append(square)
    return np.concatenate(owners), np.concatenate(squares)


def _shares(lines: NDArray[np.float64]) -> Iterator[slice]:
    """Yield slices of lines that together cross about a million tiles, or are one."""
    if not len(lines):
        return
    crossings = np.abs(np.floor(lines[:, 1]) - np.floor(lines[:, 0])).sum(axis=1) + 1
    number = (np.cumsum(crossings) // (1 << 20)).astype(np.int64)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(lines)], strict=True):
        yield slice(start, stop)


def _places(tiles: NDArray[np.float64], zoom: int) -> NDArray[np.int64]:
    """Return where the room taken in each tile (column, row) is noted."""
    column, row = tiles.astype(np.int64).T
    window = (1 << _WINDOW) - 1
    places: NDArray[np.int64] = (column % (1 << zoom) & window) << _WINDOW | row & window
    return places


def _arranged(flows: RankedFlows, rank: NDArray[np.int64]) -> ShownFlows:
    """Return flows by length and place, with the box of each block."""
    lines = flows.lines()
    low, high = np.minimum(lines[:, 0], lines[:, 1]), np.maximum(lines[:, 0], lines[:, 1])
    length = np.maximum(np.hypot(*(high - low).T), 2.0**-30)
    cell = np.clip(lines.mean(axis=1) * 2**20, 0, 2**20 - 1).astype(np.uint64)
    order = np.lexsort((_spread(cell[:, 0]) | _spread(cell[:, 1]) << np.uint64(1), np.floor(np.log2(length))))
    starts = np.arange(0, order.size, BLOCK)
    boxes = np.empty((starts.size, 4))
    if order.size:
        boxes[:, :2] = np.minimum.reduceat(low[order], starts)
        boxes[:, 2:] = np.maximum.reduceat(high[order], starts)
    return ShownFlows(flows.take(order), rank[order], boxes)


def _spread(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 20-bit numbers with a zero between any two bits (one coordinate of a Morton curve)."""
    masks = (0x0000FFFF0000FFFF, 0x00FF00FF00FF00FF, 0x0F0F0F0F0F0F0F0F, 0x3333333333333333, 0x5555555555555555)
    for shift, mask in zip((16, 8, 4, 2, 1), masks, strict=True):
        bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
    return bits
