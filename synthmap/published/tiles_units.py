"""What is drawn at a zoom: the units of a level of the hierarchy, or cells of a grid where no level suits."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.published.places import ZONE, Places
from synthmap.published.tiles_grid import MAXZOOM, cells, point

GRID = "grid"  # the level of units that are cells of a grid
COARSEST = (
    64  # a level is too coarse for a zoom where zones could be told apart in more than this many times as many places
)


@dataclass(frozen=True)
class Units:
    """Units that zones are summed to.

    Attributes
    ----------
    level : str
        A parent level, `ZONE` or `GRID`.
    table : polars.DataFrame
        Columns: the coarser levels, ``id``, ``level``, ``zones`` (how many it is made of); one row a unit.
    x, y : ndarray of float64, shape (units,)
        Where it is drawn, in the world's square: a zone's internal point, else the weighted mean of its zones'.
    of_zone : ndarray of int32, shape (zones,)
        The unit of every zone, in the order of `Places`.
    """

    level: str
    table: pl.DataFrame
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    of_zone: NDArray[np.int32]

    def __len__(self) -> int:
        return self.x.size

    @property
    def key(self) -> str:
        """What tells these units from others of the release."""
        return self.level if self.level != GRID else f"{GRID}/{self.ids[0]}"

    @property
    def ids(self) -> pl.Series:
        """Ids of the units."""
        return self.table["id"]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory, about; those of the ids of zones belong to `Places`."""
        ids = 0 if self.level == ZONE else int(self.table.estimated_size())
        return ids + self.x.nbytes + self.y.nbytes + self.of_zone.nbytes


def level_units(places: Places, level: str) -> Units:
    """Return the units of a level, in the order of their ids."""
    longitude, latitude = _finite(places)
    if level == ZONE:
        table = places.table.select(*places.levels, "id")
        x, y = point(longitude, latitude)
        return _units(ZONE, table, x, y, np.arange(len(places), dtype=np.int32))
    above = places.levels[: places.levels.index(level)]
    names = places.table[level]
    table = places.table.select(*above, id=level).unique("id").sort("id")
    of_zone = names.cast(pl.Enum(table["id"])).to_physical().to_numpy().astype(np.int32)
    x, y = point(*places.mean_points(of_zone, table.height))
    return _units(level, table, x, y, of_zone)


def grid_units(places: Places, zoom: int) -> Units:
    """Return the cells of the grid of a zoom that hold zones; their ids are zoom/column/row."""
    x, y = point(*_finite(places))
    found, inverse = np.unique(cells(x, y, zoom), return_inverse=True)
    side = 1 << zoom
    ids = [f"{zoom}/{cell % side}/{cell // side}" for cell in found.tolist()]
    of_zone: NDArray[np.int32] = inverse.astype(np.int32)
    x, y = point(*places.mean_points(of_zone, len(ids)))
    return _units(GRID, pl.DataFrame({"id": ids}), x, y, of_zone)


def _units(
    level: str, table: pl.DataFrame, x: NDArray[np.float64], y: NDArray[np.float64], of_zone: NDArray[np.int32]
) -> Units:
    zones = np.bincount(of_zone, minlength=table.height)
    return Units(level, table.with_columns(level=pl.lit(level), zones=zones), x, y, of_zone)


def _finite(places: Places) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return longitude and latitude of the zones; a release with others than numbers cannot be drawn."""
    if not (np.isfinite(places.longitude).all() and np.isfinite(places.latitude).all()):
        raise ReleaseCorruptError("every zone of a release must have a longitude and a latitude; publish it again")
    return places.longitude, places.latitude


@dataclass(frozen=True)
class Ladder:
    """The levels of a release, finest first."""

    levels: tuple[Units, ...]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory, about."""
        return sum(units.nbytes for units in self.levels)

    def at(self, zoom: int, fineness: int, most: int) -> Units | int:
        """Return what suits a zoom: the finest level that can be told apart there, or the zoom of a grid.

        Parameters
        ----------
        zoom : int
        fineness : int
            A unit should have a square of 2**-fineness of a tile's side to itself. It has when the level has at most
            twice as many units as there are squares with one. At `MAXZOOM` zones need not.
        most : int
            No tile may hold more units.
        """
        zones = self.levels[0]
        places = _apart(zones, zoom + fineness)
        for units in self.levels:
            apart = len(units) <= 2 * _apart(units, zoom + fineness) or (zoom == MAXZOOM and units is zones)
            if apart and COARSEST * len(units) >= places and _fullest(units, zoom, zoom) <= most:
                return units
        grid = zoom + fineness
        while grid > zoom and _fullest(zones, zoom, grid) > most:
            grid -= 1
        return grid


def ladder(places: Places) -> Ladder:
    """Return the levels of the zones, finest first."""
    return Ladder(tuple(level_units(places, level) for level in (ZONE, *reversed(places.levels))))


def _apart(units: Units, grid: int) -> int:
    """Return how many cells of a grid hold a unit."""
    return _distinct(cells(units.x, units.y, grid)).size


def _fullest(units: Units, zoom: int, grid: int) -> int:
    """Return how many units, or cells of a finer grid with units, the fullest tile of a zoom holds."""
    found = cells(units.x, units.y, grid)
    found = found if grid == zoom else _distinct(found)
    side, down = 1 << grid, grid - zoom
    tiles = ((found // side) >> down) * side + ((found % side) >> down)
    return int(np.unique(tiles, return_counts=True)[1].max())


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which numbers there are, ascending; many times as fast as numpy.unique, which hashes."""
    ordered: NDArray[np.int64] = np.sort(numbers)
    distinct: NDArray[np.int64] = ordered[np.diff(ordered, prepend=-1) != 0]
    return distinct
