from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synthmap.confidential.sample import FILES, LEVELS, write_sample
from synthmap.errors import ConfigurationError
from synthmap.geography.read import read_zones
from synthmap.spec import read_spec

TOTALS = {"workers": 150_000, "zones": 20_000, "destinations": 5_000}


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    return folder, write_sample(folder, **TOTALS, seed=1)


@pytest.fixture(scope="module")
def pairs(sample) -> pl.DataFrame:
    return pl.read_parquet(sample[0] / "od.parquet")


@pytest.fixture(scope="module")
def places(sample) -> pl.DataFrame:
    return pl.read_parquet(sample[0] / "zones.parquet")


@pytest.fixture(scope="module")
def commutes(pairs, places) -> pl.DataFrame:
    """Pairs with both ends' coordinates and kilometres."""
    both = pairs
    for end in ("origin", "destination"):
        both = both.join(places.rename(lambda n, end=end: n if n == "id" else f"{end}_{n}"), left_on=end, right_on="id")
    lon, lat, lon2, lat2 = (
        np.radians(both[f"{end}_{c}"].to_numpy())
        for end in ("origin", "destination")
        for c in ("longitude", "latitude")
    )
    half = np.sin((lat2 - lat) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon2 - lon) / 2) ** 2
    return both.with_columns(km=2 * 6371.0 * np.arcsin(np.sqrt(half)))


def test_totals_are_exact(sample, pairs, places):
    folder, summary = sample
    assert summary == {"directory": folder, **TOTALS, "rows": len(pairs)}
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert pairs["count"].sum() == TOTALS["workers"]
    assert pairs["count"].min() == 1
    assert places["id"].n_unique() == len(places) == TOTALS["zones"]
    assert pairs["destination"].n_unique() == TOTALS["destinations"]


def test_pairs_occur_once_and_are_sorted_by_destination(pairs):
    assert not pairs.select("destination", "origin").is_duplicated().any()
    assert pairs["destination"].is_sorted()


def test_segments_add_up(pairs):
    assert (pairs["SA01"] + pairs["SA02"] + pairs["SA03"] == pairs["count"]).all()
    assert min(pairs[s].sum() for s in ("SA01", "SA02", "SA03")) > 0.1 * TOTALS["workers"]
    assert pairs.select(pl.min_horizontal("SA01", "SA02", "SA03").min()).item() == 0


def test_ids_are_text_with_leading_zeros(pairs, places):
    assert places["id"].str.starts_with("0").all()
    assert places["id"].str.len_chars().unique().to_list() == [16]
    assert set(pairs["origin"].unique()) <= set(places["id"])
    assert set(pairs["destination"].unique()) <= set(places["id"])


def test_levels_nest_and_are_compact(places):
    for upper, lower in pairwise(LEVELS):
        assert (places.group_by(lower).agg(pl.col(upper).n_unique())[upper] == 1).all()
    assert [places[level].n_unique() for level in LEVELS] == [1, 2, 7, 191, 667]
    extent = [places.group_by(level).agg(pl.col("latitude").std())["latitude"].mean() for level in LEVELS[1:]]
    assert all(fine < 0.75 * coarse for coarse, fine in pairwise(extent))


def test_population_is_heavy_tailed(places):
    people = places["population"].to_numpy()
    assert 0.1 < (people == 0).mean() < 0.3
    assert people.max() > 15 * people.mean()
    assert people.sum() == pytest.approx(2.1 * TOTALS["workers"], rel=0.2)


def test_headcounts_are_heavy_tailed(pairs):
    headcounts = np.sort(pairs.group_by("destination").agg(pl.col("count").sum())["count"].to_numpy())
    assert 0.01 < headcounts[-1] / TOTALS["workers"] < 0.03
    assert (headcounts == 1).mean() > 0.15
    assert headcounts[-50:].sum() > 0.2 * TOTALS["workers"]


def test_most_commutes_are_short_and_some_are_local(commutes):
    workers = commutes["count"].to_numpy()
    assert 10 < np.average(commutes["km"].to_numpy(), weights=workers) < 20
    same = {
        level: workers[(commutes[f"origin_{level}"] == commutes[f"destination_{level}"]).to_numpy()].sum()
        for level in LEVELS
    }
    shares = np.array([same[level] for level in LEVELS]) / TOTALS["workers"]
    assert (shares[2:] > [0.4, 0.06, 0.02]).all()


def test_some_live_alone_and_far_away(commutes):
    living = pl.col("count").sum().over("origin")
    lone = commutes.filter((living == 1) & (pl.col("origin_population") <= 3) & (pl.col("km") > 30))
    assert len(lone) > 20


def test_nobody_lives_where_nobody_lives(commutes):
    assert commutes["origin_population"].min() >= 1


def test_the_spec_opens_the_zones(sample, places):
    spec = read_spec(sample[0] / "spec.toml")
    assert (spec.name, spec.privacy.epsilon, spec.privacy.delta) == ("demo", 4.0, 1e-6)
    assert spec.tables[0].format == "long"
    assert spec.tables[0].path.exists()
    assert spec.segment_columns == ("SA01", "SA02", "SA03")
    zones = read_zones(spec.zones)
    assert zones.levels == LEVELS
    assert set(zones.ids.to_pylist()) == set(places["id"])
    assert zones.weight.sum() == places["population"].sum()


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    totals = {"workers": 3_000, "zones": 900, "destinations": 200}
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        write_sample(tmp_path / name, **totals, seed=seed)
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / FILES[1]).read_bytes() != (tmp_path / "c" / FILES[1]).read_bytes()


@pytest.mark.parametrize("totals", [(1, 1, 1), (5, 1, 1), (1, 50, 1), (40, 40, 40), (200, 31, 3), (60_000, 2, 2)])
def test_small_worlds(tmp_path, totals):
    workers, zones, destinations = totals
    write_sample(tmp_path, workers=workers, zones=zones, destinations=destinations, seed=0)
    table = pl.read_parquet(tmp_path / "od.parquet")
    assert (table["count"].sum(), table["destination"].n_unique()) == (workers, destinations)
    assert len(read_zones(read_spec(tmp_path / "spec.toml").zones)) == zones


def test_several_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("synthmap.confidential.sample._BATCH", 700)
    shares: list[float] = []
    write_sample(tmp_path, workers=9_000, zones=800, destinations=300, seed=3, progress=shares.append)
    table = pl.read_parquet(tmp_path / "od.parquet")
    assert (table["count"].sum(), table["destination"].n_unique()) == (9_000, 300)
    assert not table.select("destination", "origin").is_duplicated().any()
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 9}, r"destinations \(10\) must be at most workers \(9\)"),
        ({"zones": 9}, r"destinations \(10\) must be at most zones \(9\)"),
        ({"workers": 0}, r"workers \(0\) must be at least 1"),
        ({"zones": -1}, r"zones \(-1\) must be at least 1"),
        ({"destinations": 0}, r"destinations \(0\) must be at least 1"),
        ({"seed": -1}, r"seed \(-1\) must be at least 0"),
    ],
)
def test_impossible_totals_are_refused(tmp_path, change, message):
    totals = {"workers": 20, "zones": 20, "destinations": 10, "seed": 1, **change}
    with pytest.raises(ConfigurationError, match=message):
        write_sample(tmp_path / "new", **totals)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigurationError, match=f"must not hold {name} yet"):
        write_sample(tmp_path, workers=2, zones=2, destinations=1, seed=1)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    with pytest.raises(ConfigurationError, match="must be a directory, not a file"):
        write_sample(tmp_path / name, workers=2, zones=2, destinations=1, seed=1)


def test_a_fault_leaves_no_file(tmp_path):
    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sample(tmp_path, workers=200, zones=50, destinations=10, seed=1, progress=stop)
    assert list(tmp_path.iterdir()) == []
