"""Releases as their own Parquet files tell them, read by pyarrow, to compare exported files with."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq

from synthmap.published.od import Query, find_flows
from synthmap.published.od_errors import ERROR, with_errors
from synthmap.published.store import ReleaseStore

ELSEWHERE = "elsewhere"


def read_world(store: Path, name: str) -> SimpleNamespace:
    """Return a release of `store`: opened, its flows (numbers by origin and destination), zones, totals and plan."""
    path = next(store.glob(f"{name}-*"))
    opened = ReleaseStore(store).open(path.name)
    segments = opened.manifest.segments
    flows = {}
    for part in sorted((path / "od").glob("*.parquet")):
        for row in pq.read_table(part).to_pylist():
            flows[row["origin"], row["destination"]] = tuple(row[name] for name in ("count", *segments))
    zones = {row["id"]: row for row in pq.read_table(path / "zones.parquet").to_pylist()}
    totals = {end: Counter() for end in (0, 1)}
    for ends, numbers in flows.items():
        for end in (0, 1):
            totals[end][ends[end]] += numbers[0]
    assert flows
    return SimpleNamespace(
        opened=opened, flows=flows, zones=zones, levels=opened.manifest.zones.levels, segments=segments,
        origins=totals[0], destinations=totals[1], plan=pq.read_table(path / "plan.parquet").to_pylist(),
        polygons=name == "odd",
    )  # fmt: skip


def point(world, zone):
    return world.zones[zone]["longitude"], world.zones[zone]["latitude"]


def told_errors(world, level="zone"):
    """Return the expected error of each flow between units of a level, as ``/od`` tells it."""
    query = Query(origin_level=level, destination_level=level)
    page = with_errors(world.opened, query, find_flows(world.opened, query, limit=10**6))
    return {(row["origin"], row["destination"]): row[ERROR] for row in page.rows.to_dicts()}


def check_about(world, told):
    """A file says what it is, how to cite it and what it promises."""
    manifest = world.opened.manifest
    assert told["release"] == manifest.release
    assert float(told["epsilon"]) == manifest.privacy.dp.epsilon
    assert float(told["delta"]) == manifest.privacy.dp.delta
    assert told["zones_vintage"] == manifest.zones.vintage
    assert world.opened.etag in told["citation"]
    assert "NOT PRIVATE" in told["citation"]
    assert "differential privacy" in told["privacy_statement"]
