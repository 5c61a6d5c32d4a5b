"""What the first look at a release needs, read and summed beforehand: a map of a large one then shows at once."""

import polars as pl

from synthmap.published.extents import extent
from synthmap.published.od import Query, find_flows
from synthmap.published.places import ZONE, Places
from synthmap.published.store import OpenedRelease
from synthmap.published.tiles import Kind, vector_tile
from synthmap.published.tiles_grid import Tile

UNITS = 150  # the map shows flows between no more units at first; the same number is in its sources
KINDS: tuple[Kind, ...] = ("destinations", "origins")
_WORLD = Tile(0, 0, 0)


def first_view(opened: OpenedRelease, most: int) -> None:
    """Read what the map asks for when it opens a release, so that it is kept.

    Parameters
    ----------
    opened : OpenedRelease
    most : int
        Features that a tile may have.

    Raises
    ------
    ReleaseCorruptError
        If a file of the release cannot be read.
    """
    extent(opened)
    level = first_level(opened.places)
    find_flows(opened, Query(origin_level=level, destination_level=level, top=1), limit=1)
    for kind in KINDS:
        vector_tile(opened, kind, _WORLD, most)


def first_level(places: Places) -> str:
    """Return the level whose flows the map shows at first: the finest with no more than `UNITS` units."""
    units = places.table.select(pl.col(places.level(name)).n_unique().alias(name) for name in (*places.levels, ZONE))
    counts = units.row(0, named=True)
    fitting = [name for name, number in counts.items() if number <= UNITS]
    return fitting[-1] if fitting else next(iter(counts))
