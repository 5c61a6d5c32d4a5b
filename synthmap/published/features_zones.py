"""Zones as features: where workers live, and where they work, with synthetic totals."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import shapely
from numpy.typing import NDArray

from synthmap.published.boxes import project
from synthmap.published.features_crs import decimals
from synthmap.published.features_layer import Operand, Property
from synthmap.published.features_region import Region
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease, unharmed
from synthmap.published.table import Table, units_of

_AT_ONCE = 20_000  # geometries transformed together


class Zones:
    """Zones of a release as a layer: all as origins, or those that are destinations; in the order of their ids.

    A zone has the geometry that it had in the release's input: a polygon, or its internal point. Everywhere else, where
    the release has it, is an origin without geometry.
    """

    def __init__(self, opened: OpenedRelease, kind: str) -> None:
        self.opened = opened
        self.kind = kind
        self.units = units_of(opened, ZONE)
        self.frame = opened.memory.get((opened.etag, "feature totals", kind), self._make).frame

    def __len__(self) -> int:
        return self.frame.height

    @property
    def properties(self) -> dict[str, Property]:
        """Properties of zones by name."""
        verb = "live" if self.kind == "origins" else "work"
        segments = self.opened.manifest.segments
        return (
            {"zone": Property("string", "id of the zone")}
            | {level: Property("string", f"{level} of the zone") for level in self.opened.manifest.zones.levels}
            | {"count": Property("integer", f"synthetic workers who {verb} here")}
            | {name: Property("integer", f"synthetic workers of segment {name} who {verb} here") for name in segments}
            | (
                {"weight": Property("integer", "public weight of the zone in the prior")}
                if self.kind == "origins"
                else {"prior_share": Property("number", "share of the synthetic workers here that is prior, not data")}
            )
        )

    def stretches(self) -> Iterator["ZoneStretch"]:
        """Yield all zones at once."""
        yield ZoneStretch(len(self))

    def column(self, name: str) -> Operand:
        """Return the values of a property."""
        values = self._column(name, self.frame)
        return Operand("string" if values.dtype == pl.String else "number", "row", lambda _: values)

    def meeting(self, region: Region) -> Operand:
        """Return which zones meet a region."""
        bounds = self._bounds(region.crs)
        shape = shapely.from_wkb(region.shape) if region.shape else None
        out = np.zeros(len(self), np.bool_)
        for box in region.boxes:
            low, high = bounds[:, :2], bounds[:, 2:]
            near = (low <= box[2:]).all(axis=1) & (high >= box[:2]).all(axis=1)
            within = (low >= box[:2]).all(axis=1) & (high <= box[2:]).all(axis=1)
            certain = within if shape is None else np.zeros_like(within)
            out |= certain
            open_ = np.flatnonzero(near & ~certain)
            for part in np.split(open_, range(_AT_ONCE, open_.size, _AT_ONCE)):
                out[part] |= shapely.intersects(shape or shapely.box(*box), self._shapes(part, region.crs))
        found = pl.Series(out)
        return Operand("boolean", "row", lambda _: found)

    def read(self, rows: NDArray[np.int64], crs: str) -> tuple[pl.DataFrame, NDArray[np.object_]]:
        """Return properties and geometries of the zones at `rows`."""
        chosen = self.frame[rows]
        columns = [self._column(name, chosen).alias(name) for name in self.properties]
        return pl.DataFrame(columns), self._shapes(rows, crs)

    def _column(self, name: str, frame: pl.DataFrame) -> pl.Series:
        """Return a property of zones, rows of the layer's frame."""
        if name in frame.columns:
            return frame[name]
        if name == "zone":
            return self.units.names.gather(frame["code"])
        return self.opened.places.table[name].gather(frame["place"])

    def _make(self) -> "_Frame":
        """Return what is not in `Places`, and where the zones are among the units and there."""
        totals = totals_of(self.opened)
        frame = pl.DataFrame({"zone": self.units.names} | totals.of(self.kind)).with_row_index("code")
        ids = self.opened.places.table.select("id").with_row_index("place")
        frame = frame.join(ids, left_on="zone", right_on="id", how="left", maintain_order="left")
        if self.kind == "destinations":
            plan = self.opened.collect(self.opened.plan.select("destination", "prior_share"))
            frame = frame.join(plan, left_on="zone", right_on="destination", how="inner", maintain_order="left")
        return _Frame(frame.drop("zone"))

    def _shapes(self, rows: NDArray[np.int64], crs: str) -> NDArray[np.object_]:
        """Return geometries in a CRS, rounded as they are given; None where there is none."""
        place = self.frame["place"].gather(rows)
        inside = place.is_not_null().to_numpy()
        out = np.full(rows.size, None, dtype=object)
        with unharmed(self.opened.id):
            found = self.opened.places.geometry(place.drop_nulls().to_numpy().astype(np.int64))
        found = shapely.orient_polygons(found)  # RFC 7946
        out[inside] = shapely.transform(found, lambda points: _projected(points, crs))
        lost = ~np.isfinite(shapely.bounds(out)).all(axis=1)
        out[lost] = None
        return out

    def _bounds(self, crs: str) -> NDArray[np.float64]:
        """Return bounds in a CRS, shape (zones, 4); NaN where there is no geometry."""

        def make() -> NDArray[np.float64]:
            starts = range(0, len(self), _AT_ONCE)
            rows = (np.arange(start, min(start + _AT_ONCE, len(self))) for start in starts)
            return np.concatenate([np.empty((0, 4)), *(shapely.bounds(self._shapes(part, crs)) for part in rows)])

        return self.opened.memory.get((self.opened.etag, "feature bounds", self.kind, crs), make)


def _projected(points: NDArray[np.float64], crs: str) -> NDArray[np.float64]:
    """Return points (degrees, WGS 84), shape (points, 2), in the axes of a CRS, rounded."""
    there = project(points[:, 0], points[:, 1], crs)
    return np.asarray(np.round(np.stack([there.first, there.second], axis=1), decimals(crs)), np.float64)


@dataclass(frozen=True)
class ZoneStretch:
    """All zones of a layer."""

    rows: int

    def __len__(self) -> int:
        return self.rows

    def codes(self, end: str) -> NDArray[np.uint32]:
        """Return the zones themselves: each is its only end."""
        return np.arange(self.rows, dtype=np.uint32)

    def units(self, end: str) -> None:
        """Return that no end is known."""


@dataclass(frozen=True)
class _Frame:
    """A table that knows its size."""

    frame: pl.DataFrame

    @property
    def nbytes(self) -> int:
        return int(self.frame.estimated_size())


@dataclass(frozen=True)
class Totals:
    """Synthetic workers of every unit, in the order of `Units`: arrays of shape (count and segments, units)."""

    names: tuple[str, ...]
    origins: NDArray[np.int64]
    destinations: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        return self.origins.nbytes + self.destinations.nbytes

    def of(self, kind: str) -> dict[str, NDArray[np.int64]]:
        """Return the totals of ``origins`` or ``destinations`` by column."""
        return dict(zip(self.names, self.origins if kind == "origins" else self.destinations, strict=True))


def totals_of(opened: OpenedRelease) -> Totals:
    """Return what lives and works in every zone of a release."""

    def make() -> Totals:
        table = Table(opened)
        names = ("count", *opened.manifest.segments)
        origins, destinations = (np.zeros((len(names), len(table.zones)), np.int64) for _ in range(2))
        for number in range(len(table)):
            block = table.block(number, keep=False)
            for place, values in enumerate(block.values):
                weights = values.astype(np.float64)  # exact: sums stay below 2**53
                origins[place] += np.bincount(block.origins, weights, len(table.zones)).astype(np.int64)
                sums = np.add.reduceat(values, block.starts[:-1], dtype=np.int64)
                destinations[place, block.destinations] += sums
        return Totals(names, origins, destinations)

    return opened.memory.get((opened.etag, "totals"), make)
