"""A made-up region, specs for it and for the test data, and a way to run and read a release."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import polars as pl
import pytest
from forks import Forks, forking

from synthmap.confidential.sample import LEVELS, VINTAGE, write_sample
from synthmap.spec import Spec, read_spec

SEGMENTS = ["SA01", "SA02", "SA03"]


@pytest.fixture(scope="session")
def region(tmp_path_factory) -> Path:
    """The folder of a region of 3,000 workers, 400 zones and 60 destinations."""
    folder = tmp_path_factory.mktemp("region")
    write_sample(folder, workers=3000, zones=400, destinations=60, seed=5)
    return folder


@pytest.fixture(scope="session")
def forks(region) -> Iterator[Forks]:
    """A process that forks workers, for tests of what they do and not of how they start."""
    with forking(region) as found:
        yield found


@pytest.fixture
def forked_command(forks, tmp_path_factory) -> Callable[..., CompletedProcess[str]]:
    """Run `synthmap …` as the fixture `command` does, or a program whose `source` is given, in a fork."""

    def run(*words: object, **source: str) -> CompletedProcess[str]:
        place = tmp_path_factory.mktemp("command")
        line = list(map(str, words))
        ended = forks.run(directory=place, command=line, out=place / "out", environment=dict(os.environ), **source)
        return CompletedProcess(line, ended.status, *((place / name).read_text("utf-8") for name in ("out", "log")))

    return run


def merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return nested `values` with `changes`; None takes a key away."""
    out = dict(values)
    for key, change in changes.items():
        if change is None:
            out.pop(key, None)
        elif isinstance(change, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], change)
        else:
            out[key] = change
    return out


@pytest.fixture(scope="session")
def with_changes() -> Callable[..., dict[str, Any]]:
    return merged


@pytest.fixture
def region_spec(region_values, tmp_path) -> dict[str, Any]:
    """Keys of a spec for the region, everything written under `tmp_path`."""
    return region_values(tmp_path)


@pytest.fixture(scope="session")
def region_values(region) -> Callable[[Path], dict[str, Any]]:
    """Return the keys of a spec for the region, everything written under a directory."""
    return lambda directory: {
        "name": "demo",
        "segments": "SA",
        "store": str(directory / "store"),
        "zones": {
            "path": str(region / "zones.parquet"),
            "vintage": VINTAGE,
            "id": "id",
            "levels": list(LEVELS),
            "longitude": "longitude",
            "latitude": "latitude",
            "weight": "population",
        },
        "tables": [
            {
                "path": str(region / "od.parquet"),
                "vintage": VINTAGE,
                "format": "long",
                "origin": "origin",
                "destination": "destination",
                "count": "count",
            }
        ],
        "privacy": {"epsilon": 4.0, "delta": 1e-6},
        "prior": {"lengths_epsilon": 0},  # tests of measured lengths ask for them
        "run": {"scratch": str(directory / "scratch")},
    }


@pytest.fixture
def make_spec(region_spec, tmp_path, write_spec) -> Callable[..., Spec]:
    """Return the region's spec with changed keys, read from TOML like a user's."""

    def make(**changes: Any) -> Spec:
        return read_spec(write_spec(tmp_path / "spec.toml", merged(region_spec, changes)))

    return make


@pytest.fixture
def lodes_spec(data_folder, tmp_path, write_spec) -> Callable[..., Spec]:
    """Return a spec for a folder of LODES files."""

    def make(folder: str, **changes: Any) -> Spec:
        tables = sorted((data_folder / folder).glob("*_od_*.csv.gz"))
        vintage = "2020" if folder.startswith("lodes8") else "2010"
        values = {
            "name": folder.replace("_", "-"),
            "store": str(tmp_path / "store"),
            "outside": "elsewhere",
            "zones": {"path": str(*(data_folder / folder).glob("*_xwalk.csv.gz")), "vintage": vintage},
            "tables": [{"path": str(table), "vintage": vintage} for table in tables],
            "privacy": {"epsilon": 4.0, "delta": 1e-6},
            "run": {"scratch": str(tmp_path / "scratch")},
        }
        return read_spec(write_spec(tmp_path / "spec.toml", merged(values, changes)))

    return make


@pytest.fixture(scope="session")
def read_od() -> Callable[[Path], pl.DataFrame]:
    """Read the table of a release, parts in order."""

    def read(release: Path) -> pl.DataFrame:
        return pl.concat([pl.read_parquet(part) for part in sorted((release / "od").glob("*.parquet"))])

    return read


@pytest.fixture(scope="session")
def left_in() -> Callable[[Path], list[str]]:
    """Name what lies in a directory, hidden files included; nothing if there is none."""

    def left(directory: Path) -> list[str]:
        return sorted(path.name for path in directory.iterdir()) if directory.exists() else []

    return left


def neighbour(flows, zones, change):
    """Return `flows` with one worker of the largest destination changed.

    The worker gets an origin nobody there has, another segment, or both.
    """
    largest = flows.group_by("destination").agg(pl.col("count").sum()).sort("count")["destination"][-1]
    here = flows.filter(pl.col("destination") == largest)
    from_row = here.filter(pl.col("SA01") > 0).row(0, named=True)
    home = from_row["origin"] if change == "segment" else sorted(set(zones) - set(here["origin"]))[-1]
    segment = "SA01" if change == "origin" else "SA02"
    one = {name: int(name in ("count", segment)) for name in ("count", *SEGMENTS)}
    gone = {name: -int(name in ("count", "SA01")) for name in one}
    pair = {name: from_row[name] for name in ("origin", "destination")}
    changes = pl.DataFrame([pair | gone, pair | {"origin": home} | one], schema=flows.schema)
    moved = pl.concat([flows, changes]).group_by("origin", "destination", maintain_order=True).sum()
    return moved.filter(pl.col("count") > 0).select(flows.columns).cast(dict(flows.schema))


@pytest.fixture
def neighbours(region, tmp_path, region_spec, with_changes, write_spec):
    """Return spec files for the region's table and for a neighbour of it, each in a directory of its own.

    They differ in one worker's "origin", "segment", or "both".
    """

    def make(change="origin", **changes):
        flows = pl.read_parquet(region / "od.parquet").with_columns(pl.col("origin", "destination").cast(pl.String))
        zones = pl.read_parquet(region / "zones.parquet")["id"]
        specs = []
        for name, table in (("one", flows), ("two", neighbour(flows, zones, change))):
            assert table["count"].sum() == table.select(pl.sum_horizontal(SEGMENTS)).sum().item() == 3000
            (tmp_path / name).mkdir()
            table.write_parquet(tmp_path / name / "od.parquet")
            tables = [region_spec["tables"][0] | {"path": "od.parquet"}]
            run = {"scratch": "scratch", "seed": 3, "partitions": 3}
            own = {"tables": tables, "store": "store", "run": run}
            specs.append(write_spec(tmp_path / name / "spec.toml", with_changes(region_spec, own | changes)))
        return specs

    return make
