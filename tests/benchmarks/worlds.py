"""The tables that utility is measured on, as truth, and what is measured. Benchmarks only."""

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.release import release
from synthmap.analysis.lengths import length_error, mean_lengths
from synthmap.analysis.measures import common_part
from synthmap.analysis.read import read_od
from synthmap.analysis.table import ODTable, aggregate, pair, pair_km, units_by_level
from synthmap.confidential.fidelity import read_confidential
from synthmap.confidential.sample import write_sample
from synthmap.geography.read import read_zones
from synthmap.geography.zones import Zones
from synthmap.spec import Spec, read_spec

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("SYNTHMAP_TEST_DATA", ROOT.parent / "shared" / "data"))
RHODE_ISLAND, DISTRICT, LEEDS, MADE_UP = "rhode-island", "district-of-columbia", "leeds", "made-up"
SMALL = {"made-up-5000": 5_000, "made-up-20000": 20_000}  # workers
RHODE_ISLAND_WITH_AUX = """
name = "rhode-island"
outside = "elsewhere"
[zones]
path = "{data}/lodes7_ri_2019/ri_xwalk.csv.gz"
vintage = "2010"
[zones.weights]
path = "{data}/us_ri_block_pop_2010/ri_2010_block_pop_vap.csv.gz"
id = "GEOID"
column = "vap"
vintage = "2010"
[[tables]]
path = "{data}/lodes7_ri_2019/ri_od_main_JT00_2019.csv.gz"
vintage = "2010"
[[tables]]
path = "{data}/lodes7_ri_2019/ri_od_aux_JT00_2019.csv.gz"
vintage = "2010"
[privacy]
epsilon = 4.0
delta = 1e-6
"""


@dataclass(frozen=True)
class Score:
    """How far a table is from the truth."""

    mae_km: float  # of the average commute of a destination, worker-weighted
    mae_km_unweighted: float
    area_to_area: float  # common part of commuters, tract to tract (zone to zone in Leeds)
    area_to_zone: float  # origins by tract, destinations by zone


@dataclass(frozen=True)
class World:
    """A confidential table that counts as the truth, over its zones.

    `area` is the unit that origins are compared by: tracts, or the zones themselves where there are no parents.
    """

    name: str
    spec: Spec
    zones: Zones
    table: ODTable
    level: str

    @cached_property
    def area(self) -> NDArray[np.int32]:
        """Area of each rank, elsewhere included, shape (zones + 1,)."""
        return units_by_level(self.zones)[self.level]

    @cached_property
    def destinations(self) -> NDArray[np.int32]:
        """Ranks with workers, ascending."""
        return np.unique(self.table.destination)

    @cached_property
    def by_area(self) -> NDArray[np.int64]:
        """True workers, shape (destinations, areas)."""
        out = np.zeros((self.destinations.size, int(self.area.max()) + 1), np.int64)
        place = np.searchsorted(self.destinations, self.table.destination)
        np.add.at(out, (place, self.area[self.table.origin]), self.table.count)
        return out

    def score(self, table: ODTable) -> Score:
        """Return how far `table` is from the truth."""
        paired = pair(self.table, table, len(self.zones))
        error = length_error(mean_lengths(paired, pair_km(paired.origin, paired.destination, self.zones)))
        assert error is not None
        to_zone = aggregate(paired, self.area, None)
        to_area = aggregate(paired, self.area, self.area)
        return Score(error.mae_km, error.mae_km_unweighted, common_part(to_area), common_part(to_zone))

    def released(self, directory: Path, *, lengths: bool = False, seed: int | None = None, **plan: Any) -> ODTable:
        """Return the table of a release, made through the whole pipeline.

        ``epsilon`` and ``delta`` go to [privacy]; `lengths` tells whether mean commutes are measured, as by default.
        """
        privacy = {name: plan.pop(name) for name in ("epsilon", "delta") if name in plan}
        prior = self.spec.prior.model_copy(update={"lengths_epsilon": "auto" if lengths else 0.0})
        changed = {
            "prior": prior,
            "run": self.spec.run.model_copy(update={"seed": seed}),
            "store": directory,
            "segments": None,  # nothing that is compared has any
            "privacy": self.spec.privacy.model_copy(update=privacy),
            "plan": self.spec.plan.model_copy(update=plan),
        }
        found = release(self.spec.model_copy(update=changed))
        return read_od(found.path, found.manifest, self.zones)


def cut_finer(region: Path, directory: Path, parts: int) -> Spec:
    """Return the spec of a region in `directory`: that in `region`, a sample, with each zone cut into parts.

    People are shared out evenly, homes at random; workplaces keep one part each.
    """
    rng = np.random.default_rng(1)
    zones, table = (pl.read_parquet(region / name) for name in ("zones.parquet", "od.parquet"))
    whole, part = np.repeat(np.arange(len(zones)), parts), np.tile(np.arange(parts), len(zones))
    longitude, latitude, people = (zones[name].to_numpy() for name in ("longitude", "latitude", "population"))
    shrink = np.cos(np.radians(latitude))
    size = np.hypot(np.diff(longitude, append=longitude[-2]) * shrink, np.diff(latitude, append=latitude[-2])) / 3
    east, north = rng.uniform(-1, 1, (2, whole.size)) * size[whole]
    directory.mkdir(exist_ok=True)
    zones[whole].with_columns(
        id=pl.col("id") + pl.Series(part.astype(str)),
        longitude=pl.Series(longitude[whole] + east / shrink[whole]),
        latitude=pl.Series(latitude[whole] + north),
        population=pl.Series(people[whole] // parts + (part < people[whole] % parts)),
    ).write_parquet(directory / "zones.parquet")
    segments = [name for name in table.columns if name.startswith("SA")]
    long = table.unpivot(segments, index=["destination", "origin"])
    workers = long[np.repeat(np.arange(len(long)), long["value"].to_numpy())]
    part = rng.integers(0, parts, len(workers))
    workers.select(
        pl.col("destination").cast(pl.String) + "0",
        pl.col("origin").cast(pl.String) + pl.Series(part.astype(str)),
        "variable",
    ).group_by("destination", "origin").agg(
        pl.len().cast(pl.Int32).alias("count"),
        *[(pl.col("variable") == name).sum().cast(pl.Int32).alias(name) for name in segments],
    ).sort("destination", "origin").write_parquet(directory / "od.parquet")
    shutil.copy(region / "spec.toml", directory)
    return read_spec(directory / "spec.toml")


def world(name: str, directory: Path) -> World:
    """Return a world by name; a made-up one is written to `directory`."""
    spec = read_spec(_specs(directory)[name](directory))
    zones = read_zones(spec.zones)
    level = zones.levels[-2] if name != LEEDS and len(zones.levels) > 1 else "zone"
    level = next((one for one in ("trct", "tract") if one in zones.levels), level)
    return World(name, spec, zones, read_confidential(spec, zones), level)


def _specs(directory: Path) -> dict[str, Any]:
    def lodes(folder: str, tables: str, zones: str, vintage: str, weights: str = "") -> Any:
        def write(place: Path) -> Path:
            path = place / "spec.toml"
            path.write_text(
                f'name = "world"\n[zones]\npath = "{DATA / folder / zones}"\nvintage = "{vintage}"\n{weights}'
                f'[[tables]]\npath = "{DATA / folder / tables}"\nvintage = "{vintage}"\n'
                "[privacy]\nepsilon = 4.0\ndelta = 1e-5\n"
            )
            return path

        return write

    def leeds(place: Path) -> Path:
        path, folder = place / "spec.toml", DATA / "uk_leeds_msoa_2011"
        path.write_text(
            f'name = "world"\n[zones]\npath = "{folder / "od_data_centroids.csv"}"\nvintage = "2011"\nid = "geo_code"\n'
            f'longitude = "lon"\nlatitude = "lat"\n[[tables]]\npath = "{folder / "od_data_df_medium.csv"}"\n'
            'vintage = "2011"\nformat = "long"\norigin = "geo_code1"\ndestination = "geo_code2"\ncount = "all"\n'
            "[privacy]\nepsilon = 4.0\ndelta = 1e-5\n"
        )
        return path

    def made_up(workers: int, zones: int, destinations: int) -> Any:
        def write(place: Path) -> Path:
            write_sample(place / "region", workers=workers, zones=zones, destinations=destinations, seed=1)
            return place / "region" / "spec.toml"

        return write

    weights = (
        f'[zones.weights]\npath = "{DATA}/us_ri_block_pop_2010/ri_2010_block_pop_vap.csv.gz"\nid = "GEOID"\n'
        'column = "vap"\nvintage = "2010"\n'
    )
    return {
        RHODE_ISLAND: lodes("lodes7_ri_2019", "ri_od_main_JT00_2019.csv.gz", "ri_xwalk.csv.gz", "2010", weights),
        DISTRICT: lodes("lodes8_dc_2023", "dc_od_main_JT00_2023.csv.gz", "dc_xwalk.csv.gz", "2020"),
        LEEDS: leeds,
        MADE_UP: made_up(200_000, 5_000, 2_000),
        **{name: made_up(workers, 2_000, workers // 50) for name, workers in SMALL.items()},
    }
