"""The zones of a release, indexed: ids, parent levels, points and geometries. Read only, built once."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.geography.sphere import unit_vectors
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.damage import unharmed

ZONE = "zone"  # the finest level, that of the zones themselves


@dataclass(frozen=True)
class Places:
    """Zones of a release in the order of their ids.

    Attributes
    ----------
    table : polars.DataFrame
        Columns ``id``, the parent levels (coarsest first), ``weight``, ``longitude``, ``latitude`` (degrees, WGS 84,
        the internal point). Everywhere else is not in it.
    levels : tuple of str
        Parent levels, coarsest first.
    path : Path
        zones.parquet, for the geometries.
    """

    table: pl.DataFrame
    levels: tuple[str, ...]
    path: Path

    def __len__(self) -> int:
        return self.table.height

    @property
    def ids(self) -> pl.Series:
        """Ids, ascending by UTF-8 bytes."""
        return self.table["id"]

    @cached_property
    def longitude(self) -> NDArray[np.float64]:
        """Degrees east, shape (zones,)."""
        return self.table["longitude"].to_numpy()

    @cached_property
    def latitude(self) -> NDArray[np.float64]:
        """Degrees north, shape (zones,)."""
        return self.table["latitude"].to_numpy()

    def level(self, name: str) -> str:
        """Return the column of a level: ``id`` for `ZONE`, else a parent level.

        Raises
        ------
        QueryError
            If there is no such level.
        """
        if name == ZONE:
            return "id"
        if name not in self.levels:
            raise QueryError(f"level ({name}) must be one of {', '.join([*self.levels, ZONE])}")
        return name

    def inside(self, bbox: tuple[float, float, float, float]) -> NDArray[np.bool_]:
        """Return which internal points lie in a box (degrees; west above east crosses the antimeridian)."""
        west, south, east, north = bbox
        across = (self.longitude >= west) & (self.longitude <= east)
        if west > east:
            across = (self.longitude >= west) | (self.longitude <= east)
        found: NDArray[np.bool_] = across & (self.latitude >= south) & (self.latitude <= north)
        return found

    def mean_points(self, unit: NDArray[np.integer], units: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return longitude and latitude of units made of zones: the mean of their points by weight, on the globe.

        Parameters
        ----------
        unit : ndarray of int, shape (zones,)
            Which unit a zone belongs to.
        units : int
            How many there are.

        Notes
        -----
        The mean is of unit vectors, so that the antimeridian does not matter. Every zone has one unit of weight more
        than its own, so that units where nobody lives have a point, too.
        """
        mass = self.table["weight"].to_numpy() + 1.0
        vectors = unit_vectors(self.longitude, self.latitude)
        x, y, z = (np.bincount(unit, mass * vectors[:, axis], minlength=units) for axis in range(3))
        return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))

    @cached_property
    def shapes(self) -> NDArray[np.object_]:
        """Geometries (polygons where the zones had them, else points) as WKB, shape (zones,); read when first asked."""
        with unharmed(self.path.parent.name):
            table = _read(self.path, ["id", "geometry"])
            shapes: NDArray[np.object_] = table.filter(pc.not_equal(table["id"], ELSEWHERE))["geometry"].to_numpy()
        return shapes

    def geometry(self, rows: NDArray[np.int64]) -> NDArray[np.object_]:
        """Return shapely geometries of the zones at `rows`."""
        with unharmed(self.path.parent.name):
            shapes: NDArray[np.object_] = shapely.from_wkb(self.shapes[rows])
        return shapes


def read_places(path: Path, levels: tuple[str, ...]) -> Places:
    """Return the zones in ``zones.parquet`` at `path`."""
    with unharmed(path.parent.name):
        text = pl.Schema(dict.fromkeys(("id", *levels), pl.String))
        kinds = pl.Schema(text | {"weight": pl.Int64(), "longitude": pl.Float64(), "latitude": pl.Float64()})
        table = pl.DataFrame(_read(path, kinds.names())).cast(kinds)
    return Places(table.filter(pl.col("id") != ELSEWHERE), levels, path)


def _read(path: Path, columns: list[str]) -> pa.Table:
    """Return columns of a file; polars would end the process over some pages that went bad."""
    table = pq.ParquetFile(path).read(columns=columns)
    table.validate(full=True)
    return table.select(columns)
