"""Flows as features: lines between internal points, points where a flow stays in its zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import shapely
from numpy.typing import NDArray

from synthmap.geography.sphere import arc_km, unit_vectors
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.boxes import Projected, project
from synthmap.published.features_crs import WRAPPING, decimals
from synthmap.published.features_layer import Operand, Property
from synthmap.published.features_region import Region, segments_meet, sides
from synthmap.published.figure_errors import figure_errors
from synthmap.published.od_errors import DIGITS, ERROR
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Block, Table

Codes = NDArray[np.uint32]
ENDS = ("origin", "destination")
_INTERVAL = {
    "low": "the least that the true count is likely to be; the release's interval",
    "high": "the most that the true count is likely to be; the release's interval",
}


class Flows:
    """The OD table of a release between zones as a layer, in the order of destinations, then origins.

    A flow is a line from the internal point of its origin to that of its destination, straight in the axes of the CRS
    it is asked for; a line that is shorter the other way around the globe is cut at the antimeridian, as RFC 7946
    wants. A flow within a zone, or between two at one point, is a point, since lines without length are invalid. A
    flow from everywhere else has no geometry.
    """

    kind = "flows"

    def __init__(self, opened: OpenedRelease) -> None:
        self.opened = opened
        self.table = Table(opened)
        self.names = ("count", *opened.manifest.segments, *opened.interval)
        index = self.table.index
        self.starts = np.concatenate(([0], np.cumsum(index.lengths)))[index.first]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def properties(self) -> dict[str, Property]:
        """Properties of flows by name."""
        levels = self.opened.manifest.zones.levels
        return (
            {
                "origin": Property("string", "zone where the workers live (synthetic)"),
                "destination": Property("string", "zone where they work"),
                "count": Property("integer", "synthetic workers"),
            }
            | {
                name: Property("integer", f"synthetic workers of segment {name}")
                for name in self.opened.manifest.segments
            }
            | {name: Property("integer", _INTERVAL[name]) for name in self.opened.interval}
            | {ERROR: Property("number", "root mean square error to be expected of count, from public data, workers")}
            | {"distance_km": Property("number", "great-circle distance between the internal points, km")}
            | {f"{end}_{level}": Property("string", f"{level} of the {end}") for end in ENDS for level in levels}
        )

    def stretches(self) -> Iterator["FlowStretch"]:
        """Yield all flows in order, a block of the table at a time."""
        for number in range(len(self.table)):
            yield FlowStretch(self.table, number)

    def column(self, name: str) -> Operand:
        """Return the values of a property."""
        if name == "distance_km":
            return Operand("number", "row", lambda s: self._distance(*(s.codes(end) for end in ENDS)))
        if name == ERROR:

            def error(stretch: FlowStretch) -> pl.Series:
                return self._error(stretch.codes("origin"), stretch.codes("destination"), stretch.block.values[0])

            return Operand("number", "row", error)  # type: ignore[arg-type]
        if name in self.names:
            place = self.names.index(name)
            return Operand("number", "row", lambda s: pl.Series(_numbers(s.block)[place]))  # type: ignore[attr-defined]
        end, _, level = name.partition("_")
        units = self._of_units(level, np.arange(len(self.table.zones), dtype=np.uint32))
        return Operand("string", end, lambda _: units)

    def meeting(self, region: Region) -> Operand:
        """Return which flows meet a region."""
        points = self._points(region.crs)
        around = [sides(points.first, points.second, box) for box in region.boxes]
        shape = shapely.from_wkb(region.shape) if region.shape else None
        shapely.prepare(shape)

        def find(stretch: FlowStretch) -> pl.Series:
            origin, destination = (stretch.codes(end) for end in ENDS)
            out = np.zeros(len(stretch), np.bool_)
            for box, side in zip(region.boxes, around, strict=True):
                out |= _meet(points, origin, destination, side, box)
            cut = self._cut(origin, destination, region.crs)
            out[cut] = False
            for part in self._halves(origin[cut], destination[cut], region.crs) if cut.size else ():
                for box in region.boxes:
                    of, to = (sides(part[:, end, 0], part[:, end, 1], box) for end in (0, 1))
                    out[cut] |= segments_meet(part, of, to, box)
            if shape is not None:
                near = np.flatnonzero(out)
                out[near] = shapely.intersects(shape, self._shapes(origin[near], destination[near], region.crs))
            return pl.Series(out)

        return Operand("boolean", "row", find)  # type: ignore[arg-type]

    def read(self, rows: NDArray[np.int64], crs: str) -> tuple[pl.DataFrame, NDArray[np.object_]]:
        """Return properties and geometries of the flows at `rows`, ascending."""
        blocks = np.searchsorted(self.starts, rows, side="right") - 1
        origins, destinations, values = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)], []
        for number in np.unique(blocks).tolist():
            block, inside = self.table.block(number), rows[blocks == number] - self.starts[number]
            origins.append(block.origins[inside])
            destinations.append(block.destination_of(inside))
            values.append([column[inside].astype(np.int64) for column in _numbers(block)])
        origin, destination = np.concatenate(origins), np.concatenate(destinations)
        columns = [np.concatenate(parts) for parts in zip(*values, strict=True)] or [np.empty(0, np.int64)] * len(
            self.names
        )
        names = self.table.zones.names
        frame = pl.DataFrame(
            [names.gather(origin).alias("origin"), names.gather(destination).alias("destination")]
            + [pl.Series(name, column) for name, column in zip(self.names, columns, strict=True)]
            + [self._error(origin, destination, columns[0]).alias(ERROR)]
            + [self._distance(origin, destination).alias("distance_km")]
            + [
                self._of_units(level, codes).alias(f"{end}_{level}")
                for end, codes in zip(ENDS, (origin, destination), strict=True)
                for level in self.opened.manifest.zones.levels
            ]
        )
        return frame, self._shapes(origin, destination, crs)

    def _error(self, origin: Codes, destination: Codes, count: NDArray[np.integer]) -> pl.Series:
        """Return the expected errors of counts, workers."""
        return pl.Series(figure_errors(self.opened).of_flows(count, origin, destination)).round_sig_figs(DIGITS)

    def _of_units(self, level: str, codes: Codes) -> pl.Series:
        """Return ids, or parents at a level, of units; everywhere else has no parents."""
        if not level:
            return self.table.zones.names.gather(codes)
        places = self.opened.places
        rows = codes.astype(np.int64)
        if self.opened.manifest.zones.elsewhere is None:
            return places.table[level].gather(rows)
        gap = int(self.table.zones.names.search_sorted(ELSEWHERE))
        inside = pl.Series(np.where(rows > gap, rows - 1, rows)).set(pl.Series(rows == gap), None)
        return places.table[level].gather(inside)

    def _distance(self, origin: Codes, destination: Codes) -> pl.Series:
        """Return great-circle distances in km to the metre; null where there is none."""
        zones = self.table.zones
        of, to = (unit_vectors(zones.longitude[codes], zones.latitude[codes]) for codes in (origin, destination))
        return pl.Series(np.round(arc_km(of, to), 3)).fill_nan(None)

    def _points(self, crs: str) -> Projected:
        """Return internal points in a CRS, rounded as they are given."""

        def make() -> Projected:
            zones = self.table.zones
            there = project(zones.longitude, zones.latitude, crs)
            return Projected(np.round(there.first, decimals(crs)), np.round(there.second, decimals(crs)))

        return self.opened.memory.get((self.opened.etag, "feature points", crs), make)

    def _cut(self, origin: Codes, destination: Codes, crs: str) -> NDArray[np.int64]:
        """Return the places of flows whose lines are cut at the antimeridian."""
        longitude = self.table.zones.longitude
        if crs not in WRAPPING or np.nanmax(longitude) - np.nanmin(longitude) <= 180:
            return np.empty(0, np.int64)
        return np.flatnonzero(np.abs(longitude[origin] - longitude[destination]) > 180)

    def _halves(self, origin: Codes, destination: Codes, crs: str) -> list[NDArray[np.float64]]:
        """Return the two parts of lines cut at the antimeridian, each of shape (lines, 2, 2)."""
        zones = self.table.zones
        east, north = (of[np.stack([origin, destination])] for of in (zones.longitude, zones.latitude))
        edge = np.copysign(180.0, east[0])
        share = (edge - east[0]) / (east[1] + 2 * edge - east[0])
        crossing = north[0] + share * (north[1] - north[0])
        longitude = np.stack([east[0], edge, -edge, east[1]])
        there = project(longitude, np.stack([north[0], crossing, crossing, north[1]]), crs)
        corners = np.asarray(np.round(np.stack([there.first, there.second], axis=-1), decimals(crs)), np.float64)
        return [corners[:2].swapaxes(0, 1), corners[2:].swapaxes(0, 1)]

    def _shapes(self, origin: Codes, destination: Codes, crs: str) -> NDArray[np.object_]:
        """Return geometries of flows."""
        points = self._points(crs)
        ends = np.stack([np.stack([of[code] for of in (points.first, points.second)], axis=1)
                         for code in (origin, destination)], axis=1)  # fmt: skip
        out = np.full(origin.size, None, dtype=object)
        placed = np.isfinite(ends).all(axis=(1, 2))
        still = (ends[:, 0] == ends[:, 1]).all(axis=1)
        out[placed & still] = shapely.points(ends[placed & still, 0])
        out[placed & ~still] = shapely.linestrings(ends[placed & ~still])
        cut = self._cut(origin, destination, crs)
        if cut.size:
            for place, *parts in zip(cut, *self._halves(origin[cut], destination[cut], crs), strict=True):
                out[place] = shapely.MultiLineString([part for part in parts if (part[0] != part[1]).any()])
        return out


def _numbers(block: Block) -> tuple[NDArray[np.integer], ...]:
    """Return the columns of numbers of a block, in the order of `Flows.names`."""
    return (*block.values, *block.interval)


def _meet(
    points: Projected,
    origin: Codes,
    destination: Codes,
    side: NDArray[np.uint8],
    box: tuple[float, float, float, float],
) -> NDArray[np.bool_]:
    """Return which flows meet a box; coordinates are looked up only where the sides of their ends do not tell."""
    of, to = side[origin], side[destination]
    open_ = np.flatnonzero(((of & to) == 0) & (of != 0) & (to != 0))
    out = np.asarray((of == 0) & (to < 16) | (to == 0) & (of < 16))
    ends = np.stack([np.stack([axis[code[open_]] for axis in (points.first, points.second)], axis=1)
                     for code in (origin, destination)], axis=1)  # fmt: skip
    out[open_] = segments_meet(ends, of[open_], to[open_], box)
    return out


@dataclass(frozen=True)
class FlowStretch:
    """The flows of one block; it is read only when more than destinations is asked for."""

    table: Table
    number: int

    def __len__(self) -> int:
        return int(self.table.index.lengths[self._runs].sum())

    @property
    def _runs(self) -> slice:
        return slice(*self.table.index.first[self.number : self.number + 2])

    @cached_property
    def block(self) -> Block:
        """The block."""
        return self.table.block(self.number)

    def codes(self, end: str) -> Codes:
        """Return the codes of origins or destinations."""
        if end == "origin":
            return self.block.origins
        return np.repeat(self.table.index.destinations[self._runs], self.table.index.lengths[self._runs])

    def units(self, end: str) -> Codes | None:
        """Return the codes of destinations, each once."""
        return self.table.index.destinations[self._runs] if end == "destination" else None
