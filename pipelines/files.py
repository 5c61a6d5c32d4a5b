"""The files of a release: the OD table in parts, the zones, the plan."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthmap.geography.region import Region
from synthmap.mechanism.plan import Plan
from synthmap.mechanism.table import SyntheticCounts

ROW_GROUP = 131_072


def write_part(path: Path, table: SyntheticCounts, region: Region, segments: tuple[str, ...]) -> None:
    """Write a part of the OD table, sorted by destination and origin: those two, count, segments, interval of count."""
    place = region.position[table.destination] * np.int64(region.position.size) + region.position[table.origin]
    order = np.argsort(place, kind="stable")
    workers = table.workers[order]
    columns = {
        "origin": region.names.take(pa.array(table.origin[order])),
        "destination": region.names.take(pa.array(table.destination[order])),
        "count": workers.sum(axis=1),
    }
    if segments:
        columns |= {name: workers[:, i] for i, name in enumerate(segments)}
    if table.interval is not None:
        columns |= {"low": table.interval[order, 0], "high": table.interval[order, 1]}
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=ROW_GROUP)


def write_zones(path: Path, region: Region, *, elsewhere: bool) -> None:
    """Write the zones as GeoParquet, WGS 84: polygons where they are known, else points.

    The columns longitude and latitude are the internal points; everywhere else gets a row without either.
    """
    import geopandas
    import pandas as pd

    zones = region.zones
    if zones.shapes is None:
        drawn = geopandas.GeoSeries.from_xy(zones.longitude, zones.latitude, crs="EPSG:4326")
    else:
        drawn = geopandas.GeoSeries.from_wkb(zones.shapes.to_numpy(zero_copy_only=False), crs="EPSG:4326")
    frame = geopandas.GeoDataFrame({"id": zones.ids.to_pandas()}, geometry=drawn)
    for level, parent in zip(zones.levels, zones.parents, strict=True):
        frame[level] = parent.to_pandas()
    frame["weight"] = zones.weight
    frame["longitude"], frame["latitude"] = zones.longitude, zones.latitude
    frame = frame.iloc[np.argsort(region.position[:-1])].reset_index(drop=True)
    if elsewhere:
        extra = geopandas.GeoDataFrame({"id": [str(region.names[-1])], "weight": [0]}, geometry=[None], crs="EPSG:4326")
        frame = pd.concat([frame, extra], ignore_index=True)
    columns = ["id", *zones.levels, "weight", "longitude", "latitude", "geometry"]
    frame[columns].to_parquet(path, compression="zstd", row_group_size=ROW_GROUP)


def write_plan(path: Path, plan: Plan, region: Region) -> None:
    """Write the plan, one row a destination in the order of ids: public, enough to certify the noise again."""
    table = plan.to_table()
    table = table.set_column(0, "destination", region.names.take(pa.array(plan.destination)))
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)
