"""Tiles decoded, and a world to make them of."""

import mapbox_vector_tile
import numpy as np
import shapely
from handmade import World, Zone

from synthmap.published.tiles import vector_tile
from synthmap.published.tiles_grid import EXTENT, LATITUDE, TMS, Tile

PIXEL = 8  # units of a tile: a tile is drawn 512 pixels wide
KINDS = ("flows", "origins", "destinations")
WHOLE = Tile(0, 0, 0)


def read(opened, kind, tile, most=10_000):
    """Return the features of each layer, with shapely geometries in units of the tile."""
    data = vector_tile(opened, kind, tile, most)
    layers = mapbox_vector_tile.decode(data, default_options={"y_coord_down": True})
    return {
        name: [(shapely.geometry.shape(one["geometry"]), one["properties"]) for one in layer["features"]]
        for name, layer in layers.items()
    }


def degrees(tile, shape):
    """Return longitude and latitude of a shape of a tile."""
    x = (np.asarray(shapely.get_coordinates(shape)) / EXTENT + (tile.x, tile.y)) / 2**tile.z
    return np.column_stack([360 * (x[:, 0] - 0.5), np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * x[:, 1]))))])


def tile_at(zoom, longitude, latitude):
    found = TMS.tile(longitude, latitude, zoom)
    return Tile(zoom, found.x, found.y)


def tiles_of(world, zoom):
    """Return the tiles of a zoom that hold a zone."""
    return sorted({tile_at(zoom, zone.longitude, min(max(zone.latitude, -LATITUDE), LATITUDE)) for zone in world.zones})


def inside(features):
    """Return the points that lie in the tile itself, not in its buffer."""
    return [
        (shape, values)
        for shape, values in features
        if (np.abs(shapely.get_coordinates(shape) - EXTENT / 2 + 0.25) < EXTENT / 2).all(axis=1).any()
    ]


def summed(features, name="count"):
    return sum(values[name] for _, values in features)


def country(polygons=False):
    """600 zones of half a degree in 24 counties in 2 states, with 1,500 flows; a few from elsewhere."""
    zones = []
    for number in range(600):
        x, y = number % 30, number // 30
        west, south = 3 + x * 0.05, 45 + y * 0.05
        shape = shapely.box(west, south, west + 0.05, south + 0.05) if polygons else None
        parents = (f"s{x // 15}", f"s{x // 15}-{x // 5}-{y // 5}")
        zones.append(Zone(f"{number:04}", parents, west + 0.025, south + 0.025, number, shape))
    rng = np.random.default_rng(2)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 600, (1500, 2))} | {(n, n) for n in range(0, 600, 7)})
    flows = [
        (f"{a:04}", f"{b:04}", (int(c), int(d)))
        for (a, b), (c, d) in zip(pairs, rng.geometric(0.1, (len(pairs), 2)), strict=True)
    ]
    return World(zones, [*flows, ("elsewhere", "0003", (50, 1))], ("state", "county"), ("young", "old"))
