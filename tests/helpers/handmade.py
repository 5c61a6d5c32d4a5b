"""Releases written by hand for tests of queries: any zones, any flows, any row groups, in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from synthmap.published.memory import Memory
from synthmap.published.store import OpenedRelease
from synthmap.release.manifest import (
    FileRecord,
    Invariants,
    Loss,
    Manifest,
    PlanSummary,
    PriorSummary,
    Privacy,
    Software,
    ZonesSummary,
)
from synthmap.release.verify import sha256

ELSEWHERE = "elsewhere"

Flow = tuple[str, str, tuple[int, ...]]  # origin, destination, count by segment


@dataclass(frozen=True)
class Zone:
    """A zone: its id, its parents (coarsest first), its point, what it is drawn as (its point, unless told)."""

    id: str
    parents: tuple[str, ...] = ()
    longitude: float = 0.0
    latitude: float = 0.0
    weight: int = 1
    shape: shapely.Geometry | None = None


@dataclass(frozen=True)
class World:
    """Zones and flows; a flow's count is the sum of its segments."""

    zones: Sequence[Zone]
    flows: Sequence[Flow]
    levels: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    elsewhere: bool = True
    vintage: str = "1"
    year: int | None = None
    prior_share: float = 0.2  # of every destination
    cells: int = 16
    rows: list[dict[str, object]] = field(init=False)

    def __post_init__(self) -> None:
        rows = [
            {"origin": origin, "destination": destination, "count": sum(parts)}
            | dict(zip(self.segments, parts, strict=False))
            for origin, destination, parts in self.flows
        ]
        rows.sort(key=lambda row: (str(row["destination"]).encode(), str(row["origin"]).encode()))
        object.__setattr__(self, "rows", rows)


def open_world(
    directory: Path, world: World, *, part: int = 1000, group: int = 1000, memory: int = 2**20
) -> OpenedRelease:
    """Return a release of `world`, in parts of `part` rows and row groups of `group`, as a store would open it."""
    (directory / "od").mkdir(parents=True)
    schema = pa.schema(
        [("origin", pa.string()), ("destination", pa.string())]
        + [(name, pa.int64()) for name in ("count", *world.segments)]
    )
    for number, start in enumerate(range(0, max(1, len(world.rows)), part)):
        table = pa.Table.from_pylist(world.rows[start : start + part], schema=schema)
        pq.write_table(table, directory / "od" / f"part-{number:05}.parquet", compression="zstd", row_group_size=group)
    zones = sorted(world.zones, key=lambda zone: zone.id.encode())
    columns = {"id": [zone.id for zone in zones]}
    columns |= {name: [zone.parents[depth] for zone in zones] for depth, name in enumerate(world.levels)}
    numbers = {
        "weight": [zone.weight for zone in zones],
        "longitude": [float(zone.longitude) for zone in zones],
        "latitude": [float(zone.latitude) for zone in zones],
    }
    drawn = [zone.shape or shapely.Point(zone.longitude, zone.latitude) for zone in zones]
    shapes = {"geometry": pa.array(shapely.to_wkb(drawn), pa.binary())}
    pq.write_table(pa.table(columns | numbers | shapes), directory / "zones.parquet")
    sizes: dict[str, int] = {}
    for row in world.rows:
        sizes[str(row["destination"])] = sizes.get(str(row["destination"]), 0) + int(str(row["count"]))
    sizes = {name: size for name, size in sizes.items() if size}
    plan = {
        "destination": pa.array(sizes, pa.string()),
        "headcount": pa.array(sizes.values(), pa.int64()),
        "synthetic_size": pa.array(sizes.values(), pa.int64()),
        "cells": pa.array([world.cells] * len(sizes), pa.int64()),
        "prior_share": pa.array([world.prior_share] * len(sizes), pa.float64()),
    }
    pq.write_table(pa.table(plan), directory / "plan.parquet")
    files = {
        path.relative_to(directory).as_posix(): FileRecord(sha256=sha256(path), bytes=path.stat().st_size)
        for path in directory.rglob("*.parquet")
    }
    manifest = Manifest.model_construct(
        release=directory.name,
        name="handmade",
        title="Made by hand",
        year=world.year,
        segments=list(world.segments),
        invariants=Invariants(
            statements=[],
            workers=sum(int(str(row["count"])) for row in world.rows),
            destinations=len({row["destination"] for row in world.rows}),
        ),
        zones=ZonesSummary(
            vintage=world.vintage,
            zones=len(zones),
            levels=list(world.levels),
            elsewhere=ELSEWHERE if world.elsewhere else None,
        ),
        private=True,
        warning=None,
        created="2026-01-02T03:04:05+00:00",
        privacy=Privacy.model_construct(dp=Loss(epsilon=4.0, delta=1e-6)),
        plan=PlanSummary.model_construct(mechanism="dirichlet", interval=None),
        prior=PriorSummary.model_construct(scale_km=10.0, strength=20.0, source=None),
        software=Software(synthmap="0", source="0", python="3", packages={}),
        files=files,
    )
    return OpenedRelease(directory, manifest, directory.name, memory=Memory(memory))
