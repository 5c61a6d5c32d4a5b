"""Layers as the bytes of a Mapbox vector tile (specification 2.1).

mapbox-vector-tile's own encoder takes one vertex at a time; here all shapes of a layer are turned into commands at
once, which is five times as fast. The message is the library's.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
import shapely
from mapbox_vector_tile.Mapbox import vector_tile_pb2
from numpy.typing import NDArray

from synthmap.published.tiles_grid import EXTENT

TILE_BYTES = 1_000_000  # before compression; what a phone can still take
POINT, LINE, POLYGON = 1, 2, 3
_MOVE, _LINE_TO, _CLOSE = 1 | 1 << 3, 2 | 1 << 3, 7 | 1 << 3  # commands, each once

Commands = list[list[int]]


@dataclass(frozen=True)
class TileLayer:
    """Features of one kind, in the order in which they are drawn.

    Attributes
    ----------
    name : str
    kind : int
        `POINT`, `LINE` or `POLYGON`.
    ids : ndarray of int64, shape (features,)
    commands : list of list of int
        Geometry of each feature.
    values : polars.DataFrame
        Properties, text and whole numbers, one row a feature.
    strength : ndarray of int64, shape (features,)
        What goes first when a tile is too large: the smallest.
    """

    name: str
    kind: int
    ids: NDArray[np.int64]
    commands: Commands
    values: pl.DataFrame
    strength: NDArray[np.int64]

    def strongest(self, share: float) -> "TileLayer":
        """Return the layer with a share of its features."""
        kept = np.sort(np.argsort(-self.strength, kind="stable")[: int(self.strength.size * share)])
        commands = [self.commands[row] for row in kept.tolist()]
        return TileLayer(self.name, self.kind, self.ids[kept], commands, self.values[kept], self.strength[kept])


def point_commands(at: NDArray[np.float64], owner: NDArray[np.int64]) -> Commands:
    """Return the commands of each owner's points; owners ascend.

    Parameters
    ----------
    at : ndarray of float64, shape (points, 2)
        On whole units of the tile.
    owner : ndarray of int64, shape (points,)
    """
    first, before = _pen(at, owner)
    parts = np.split(_zigzag(at - before), np.flatnonzero(first)[1:])
    return [[1 | len(part) << 3, *part.ravel().tolist()] for part in parts] if len(at) else []


def line_commands(lines: NDArray[np.float64], owner: NDArray[np.int64]) -> Commands:
    """Return the commands of each owner's lines; owners ascend.

    Parameters
    ----------
    lines : ndarray of float64, shape (lines, 2, 2)
        Ends on whole units of the tile.
    owner : ndarray of int64, shape (lines,)
    """
    first, before = _pen(lines[:, 1], owner)
    columns = np.full((len(lines), 6), _MOVE)
    columns[:, 1:3] = _zigzag(lines[:, 0] - before)
    columns[:, 3] = _LINE_TO
    columns[:, 4:] = _zigzag(lines[:, 1] - lines[:, 0])
    return [part.ravel().tolist() for part in np.split(columns, np.flatnonzero(first)[1:])] if len(lines) else []


def _pen(ends: NDArray[np.float64], owner: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which parts are the first of their owner, and where the pen was left before each."""
    first: NDArray[np.bool_] = np.diff(owner, prepend=-1) != 0
    return first, np.where(first[:, None], 0, np.roll(ends, 1, axis=0))


def polygon_commands(shapes: NDArray[np.object_]) -> Commands:
    """Return the commands of multipolygons on whole units of the tile, their outer rings of positive area."""
    parts, owner = shapely.get_parts(shapes, return_index=True)
    rings, part = shapely.get_rings(parts, return_index=True)
    at, ring = shapely.get_coordinates(rings, return_index=True)
    same = np.diff(ring, prepend=-1) == 0
    same[1:] &= (at[1:] == at[:-1]).all(axis=1)
    at, ring = at[~same], ring[~same]
    last = np.diff(ring, append=-1) != 0  # a ring is closed by a command
    at, ring = at[~last], ring[~last]
    _, before = _pen(at, owner[part[ring]])
    steps = np.split(_zigzag(at - before).ravel(), 2 * np.flatnonzero(np.diff(ring, prepend=-1))[1:])
    commands: Commands = [[] for _ in shapes]
    for feature, numbers in zip(owner[part].tolist(), map(np.ndarray.tolist, steps), strict=bool(len(rings))):
        points = len(numbers) // 2
        commands[feature] += [_MOVE, *numbers[:2], 2 | (points - 1) << 3, *numbers[2:], _CLOSE]
    return commands


def encode(layers: list[TileLayer]) -> bytes:
    """Return a vector tile of the layers that are not empty; the weakest features are left out if it gets too large."""
    encoded = whole(layers)
    while len(encoded) > TILE_BYTES:
        share = 0.9 * TILE_BYTES / len(encoded)
        layers = [layer.strongest(share) for layer in layers]
        encoded = whole(layers)
    return encoded


def whole(layers: list[TileLayer]) -> bytes:
    """Return a vector tile of all features."""
    tile = vector_tile_pb2.tile()
    for layer in layers:
        if layer.ids.size:
            _add(tile, layer)
    encoded: bytes = tile.SerializeToString()
    return encoded


def _add(tile: vector_tile_pb2.tile, layer: TileLayer) -> None:
    """Add a layer to a tile."""
    to = tile.layers.add(name=layer.name, version=2, extent=EXTENT, keys=layer.values.columns)
    known: dict[str | int, int] = {}
    numbers = [[known.setdefault(value, len(known)) for value in column.to_list()] for column in layer.values]
    for value in known:
        text = isinstance(value, str)
        to.values.add(**{"string_value" if text else "int_value": value})
    keys = range(len(numbers))
    for key, commands, *row in zip(layer.ids.tolist(), layer.commands, *numbers, strict=True):
        tags = [part for pair in zip(keys, row, strict=True) for part in pair]
        to.features.add(id=key, type=layer.kind, geometry=commands, tags=tags)


def _zigzag(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return whole numbers as the format writes them: small ones of either sign stay small."""
    signed = numbers.astype(np.int64)
    return (signed << 1) ^ (signed >> 63)
