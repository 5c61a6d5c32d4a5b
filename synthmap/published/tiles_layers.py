"""The layers of a tile: which features of zones and flows it has, and where they lie in it."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.published.tiles_areas import Areas
from synthmap.published.tiles_encode import (
    LINE,
    POINT,
    POLYGON,
    TILE_BYTES,
    Commands,
    TileLayer,
    encode,
    line_commands,
    point_commands,
    polygon_commands,
    whole,
)
from synthmap.published.tiles_flows import RankedFlows
from synthmap.published.tiles_grid import BUFFER, COPIES, EXTENT, Tile, inside
from synthmap.published.tiles_units import Units

_TOLERANCES = (2.0, 8.0)  # units of a tile by which areas are simplified: the second when a tile gets too large


def zone_tile(tile: Tile, units: Units, totals: pl.DataFrame, areas: Areas | None, most: int) -> bytes:
    """Return a tile of units: a layer ``points``, and a layer ``areas`` where they are zones with polygons.

    Both reach into the buffer, so that the same feature (its id is the same) is in neighbouring tiles, too. A zone too
    small to have an area there is a point alone. Units without workers have no point.

    Parameters
    ----------
    tile : Tile
    units : Units
    totals : polars.DataFrame
        More properties, one row a unit; ``count`` says which are the most important.
    areas : Areas or None
        Polygons, if the units are zones that have some.
    most : int
        Features of the tile; of both layers together.
    """
    count = totals["count"].to_numpy()

    def values(rows: NDArray[np.int64]) -> pl.DataFrame:
        return units.table[rows].with_columns(totals[rows].get_columns())

    near = _first(areas.near(tile), count, most // 2) if areas is not None else np.empty(0, np.int64)
    at = np.column_stack([units.x, units.y])
    spots = _first(np.flatnonzero(tile.meets(np.hstack([at, at])) & (count > 0)), count, most - near.size)
    at, owner = _seen(tile, at[spots])
    spots = spots[np.unique(owner)]
    points = TileLayer("points", POINT, spots, point_commands(at, owner), values(spots), count[spots])
    layers = [points]
    for tolerance in _TOLERANCES if near.size else ():
        assert areas is not None  # noqa: S101
        rows, shapes = areas.drawn(tile, near, tolerance)
        layers = [TileLayer("areas", POLYGON, rows, polygon_commands(shapes), values(rows), count[rows]), points]
        if len(whole(layers)) <= TILE_BYTES:
            break
    return encode(layers)


def flow_tile(tile: Tile, flows: RankedFlows, error: NDArray[np.int64]) -> bytes:
    """Return a tile of flows: a layer ``flows`` of lines, and a layer ``within`` of flows that have no length there.

    `error` is what each is expected to be off by, workers, of shape (flows,).
    Lines run from origin to destination, cut at the tile's buffer, the strongest on top. A flow within a unit, or
    between two that lie on one point of the tile, is a point.
    """
    flows, error = flows.take(slice(None, None, -1)), error[::-1]
    ends = flows.lines()
    local = tile.local(ends)
    short = (np.round(local[:, 0]) == np.round(local[:, 1])).all(axis=1)
    spots = np.flatnonzero(short)[::-1]
    at, owner = _seen(tile, ends[spots, 0])
    spots, commands = spots[np.unique(owner)], point_commands(at, owner)
    within = _flow_layer("within", POINT, flows.take(spots), error[spots], commands)
    long = np.flatnonzero(~short)
    lines, owner = _cut(tile, ends[long])
    commands = line_commands(lines, owner)
    long = long[np.unique(owner)]
    return encode([_flow_layer("flows", LINE, flows.take(long), error[long], commands), within])


def _flow_layer(name: str, kind: int, flows: RankedFlows, error: NDArray[np.int64], commands: Commands) -> TileLayer:
    """Return flows as a layer."""
    ids, origin, destination = flows.units.ids, flows.origin.astype(np.int64), flows.destination.astype(np.int64)
    count = flows.count.astype(np.int64)
    values = pl.DataFrame(
        {
            "origin": ids.gather(origin),
            "destination": ids.gather(destination),
            "level": pl.repeat(flows.units.level, len(flows), eager=True),
            "count": count,
            "expected_error": error,
        }
    )
    return TileLayer(name, kind, origin * len(ids) + destination, commands, values, count)


def _seen(tile: Tile, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return where in a tile and its buffer points are seen, on whole units, and which point each is; these ascend.

    Points are put on the unit that they lie in, so that none is on the border between two tiles.
    """
    local = np.stack([tile.local(points - (copy, 0)) for copy in COPIES], axis=1)
    near = ((local >= -BUFFER) & (local <= EXTENT + BUFFER)).all(axis=2)
    return np.floor(local[near]), np.nonzero(near)[0]


def _cut(tile: Tile, ends: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the parts of lines in a tile and its buffer, on whole units, and the line of each part; these ascend."""
    moved = np.stack([ends - (copy, 0) for copy in COPIES], axis=1).reshape(-1, 2, 2)
    owner = np.repeat(np.arange(len(ends)), len(COPIES))
    start, stop = inside(moved, tile.box())
    seen = np.flatnonzero(start < stop)
    local = tile.local(moved[seen])
    step = local[:, 1] - local[:, 0]
    parts = np.stack([local[:, 0] + share[seen, None] * step for share in (start, stop)], axis=1).round()
    real = (parts[:, 0] != parts[:, 1]).any(axis=1)
    return parts[real], owner[seen[real]]


def _first(rows: NDArray[np.int64], count: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the at most `most` rows of the largest counts, the largest first."""
    return rows[np.argsort(-count[rows], kind="stable")][:most]
