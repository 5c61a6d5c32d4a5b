"""Vector tiles of a release: zones and flows, summed to what can be told apart at each zoom.

What tiles are made from, and the tiles, are kept in the memory of the release.
"""

import threading
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.published.figure_errors import figure_errors
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease, unharmed
from synthmap.published.table import Table
from synthmap.published.tiles_areas import Areas, areas
from synthmap.published.tiles_flows import RankedFlows, rank_flows
from synthmap.published.tiles_grid import Tile
from synthmap.published.tiles_layers import flow_tile, zone_tile
from synthmap.published.tiles_shown import ShownFlows, show
from synthmap.published.tiles_table import place_of, stretches, unit_totals
from synthmap.published.tiles_units import Ladder, Units, grid_units, ladder

Kind = Literal["flows", "origins", "destinations"]
FLOWS = 1_000  # of a tile: more are a tangle that says nothing
UNITS = 4_096  # zones of a tile
OUT_ERROR = "out_error"  # what the number of residents is expected to be off by; that of workers is exact
_FINENESS = {"flows": 3, "origins": 6, "destinations": 6}  # a unit has 1/8, 1/64 of a tile's side to itself
_RANKED = 24 * 2**20  # bytes up to which all flows of a level are kept for the next zoom; those of zones take more
_TURN = threading.Lock()  # flows are put together for one caller at a time: it takes some hundred MB on the way


@dataclass(frozen=True)
class _Table:
    """A table that knows its size."""

    frame: pl.DataFrame

    @property
    def nbytes(self) -> int:
        return int(self.frame.estimated_size())


@dataclass(frozen=True)
class _Suited:
    """What suits a zoom: units, or the zoom of a grid."""

    units: Units | int
    nbytes: int = 500


def vector_tile(opened: OpenedRelease, kind: Kind, tile: Tile, most: int) -> bytes:
    """Return a Mapbox vector tile; empty where nothing is.

    Parameters
    ----------
    opened : OpenedRelease
    kind : str
        ``flows`` (layers ``flows`` and ``within``), ``origins`` or ``destinations`` (``points`` and ``areas``).
    tile : Tile
        One that exists.
    most : int
        Features that the tile may have, at least 1.

    Raises
    ------
    ReleaseCorruptError
        If a file of the release cannot be read.
    """
    if kind == "flows":
        most = min(most, FLOWS)
        found = _shown(opened, tile.z, most).touching(tile, most)
        return flow_tile(tile, found, _errors(opened, found))
    most = min(most, 2 * UNITS)
    units = _units(opened, kind, tile.z, max(1, most // 2))
    shapes = _areas(opened) if units.level == ZONE else None
    return zone_tile(tile, units, _values(opened, kind, units), shapes, most)


def properties(opened: OpenedRelease, kind: Kind) -> dict[str, str]:
    """Return the properties of features, and whether each is a ``string`` or an ``integer``."""
    if kind == "flows":
        return {"origin": "string", "destination": "string", "level": "string"} | dict.fromkeys(
            ("count", "expected_error"), "integer"
        )
    totals = ("zones", "out", OUT_ERROR, "in", "count", *opened.manifest.segments)
    return dict.fromkeys((*opened.places.levels, "id", "level"), "string") | dict.fromkeys(totals, "integer")


def _ladder(opened: OpenedRelease) -> Ladder:
    return opened.memory.get((opened.etag, "tiles", "ladder"), lambda: ladder(opened.places))


def _units(opened: OpenedRelease, kind: Kind, zoom: int, most: int) -> Units:
    """Return the units for a zoom."""
    asked = zoom, _FINENESS[kind], most
    found = opened.memory.get(
        (opened.etag, "tiles", "suited", asked), lambda: _Suited(_ladder(opened).at(*asked))
    ).units
    if isinstance(found, Units):
        return found
    return opened.memory.get((opened.etag, "tiles", "grid", found), lambda: grid_units(opened.places, found))


def _areas(opened: OpenedRelease) -> Areas:
    def make() -> Areas:
        with unharmed(opened.id):
            return areas(opened.places)

    return opened.memory.get((opened.etag, "tiles", "areas"), make)


def _values(opened: OpenedRelease, kind: Kind, units: Units) -> pl.DataFrame:
    """Return the totals of units."""

    def make() -> _Table:
        living, working = (unit_totals(opened, one, units.of_zone, len(units)) for one in ("origins", "destinations"))
        totals = living if kind == "origins" else working
        off = figure_errors(opened).of_residents(living["count"], _unit(opened, units))
        both = {"out": living["count"], OUT_ERROR: np.ceil(off).astype(np.int64), "in": working["count"]}
        return _Table(pl.DataFrame({**both, **totals}))

    return opened.memory.get((opened.etag, "tiles", "values", kind, units.key), make).frame


def _errors(opened: OpenedRelease, flows: RankedFlows) -> NDArray[np.int64]:
    """Return the expected errors of flows, whole workers, rounded up."""
    unit = _unit(opened, flows.units)
    found = figure_errors(opened).of_units(flows.count, flows.origin, flows.destination, unit, unit)
    return np.ceil(found).astype(np.int64)


def _unit(opened: OpenedRelease, units: Units) -> NDArray[np.int32]:
    """Return the unit of every code of a zone; -1 for everywhere else."""
    place = place_of(Table(opened))
    return np.where(place >= 0, units.of_zone[place], -1)


def _shown(opened: OpenedRelease, zoom: int, most: int) -> ShownFlows:
    """Return the flows shown at a zoom."""

    def ranked(units: Units) -> RankedFlows:
        key = (opened.etag, "tiles", "ranked", units.key)
        make = lambda: rank_flows(stretches(opened, units.of_zone), units)  # noqa: E731
        return opened.memory.get(key, make, largest=_RANKED)

    def make() -> ShownFlows:
        with _TURN:
            return show(ranked(_units(opened, "flows", zoom, most)), zoom, most)

    return opened.memory.get((opened.etag, "tiles", "shown", zoom, most), make)
