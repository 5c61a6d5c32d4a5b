"""The registry: where specs lie, known to producing programs only."""

import stat
import subprocess
import sys
import tomllib

import polars as pl
import pytest

from pipelines.registry import read_registry, register, registered_spec
from synthmap.catalog.datasets import Dataset
from synthmap.confidential.sample import VINTAGE
from synthmap.errors import (
    ConfidentialDataError,
    ConfigurationError,
    GeographyError,
    LedgerError,
    NotFoundError,
    UnwritableError,
)


@pytest.fixture
def spec_path(make_spec, tmp_path):
    """Write a spec of the region; return its path."""

    def make(name="spec.toml", **changes):
        make_spec(**changes)
        path = tmp_path / name
        (tmp_path / "spec.toml").rename(path)
        return path

    return make


@pytest.fixture
def registry(tmp_path):
    return tmp_path / "settings" / "registry.toml"


@pytest.fixture
def flows(region):
    return pl.read_parquet(region / "od.parquet").with_columns(pl.col("origin", "destination").cast(pl.String))


def csv_table(path, flows):
    """Write a table of flows; return what a spec says of it."""
    flows.write_csv(path, separator=";")
    return {"path": str(path), "vintage": VINTAGE, "format": "long", "origin": "origin", "destination": "destination",
            "count": "count", "separator": ";"}  # fmt: skip


@pytest.fixture
def other_jobs(flows, tmp_path):
    """What a spec says of a table in which one worker lives somewhere else."""
    home = next(one for one in flows["origin"] if one != flows["origin"][0])
    one, rest = flows.head(1), flows.slice(1)
    rows = [one.with_columns(pl.lit(n, pl.Int32).alias("count"), pl.lit(origin).alias("origin"))
            for n, origin in ((one["count"][0] - 1, one["origin"][0]), (1, home))]  # fmt: skip
    return csv_table(tmp_path / "other.csv", pl.concat([*rows, rest]))


def test_what_is_registered_is_found_again(spec_path, registry, region):
    path = spec_path('it\'s "odd" \\ é 東京.toml', title="A <b>title</b>")
    levels = ("region", "state", "county", "tract", "blockgroup")
    facts = Dataset("a.b-1", "A <b>title</b>", ("SA01", "SA02", "SA03"), levels, "demo-1")
    assert register(registry, "a.b-1", path) == facts
    assert registered_spec(registry, "a.b-1").tables[0].path == region / "od.parquet"
    assert stat.S_IMODE(registry.stat().st_mode) == 0o600
    assert tomllib.loads(registry.read_text())["datasets"] == {"a.b-1": {"spec": str(path)}}


def test_a_spec_may_be_registered_again_and_an_id_belongs_to_one_spec(spec_path, registry, other_jobs):
    one, two = spec_path("one.toml"), spec_path("two.toml", segments=None, duplicates="sum", tables=[other_jobs])
    register(registry, "x", one)
    register(registry, "y", two)
    assert register(registry, "x", one).title == "x"
    with pytest.raises(ConfigurationError, match="must not belong to another spec"):
        register(registry, "x", two)
    assert read_registry(registry) == {"x": one, "y": two}


def test_relative_paths_are_those_of_where_it_was_registered(spec_path, registry, monkeypatch, tmp_path):
    path = spec_path()
    monkeypatch.chdir(tmp_path)
    register(registry, "x", path.relative_to(tmp_path))
    monkeypatch.chdir("/")
    assert registered_spec(registry, "x").name == "demo"


@pytest.mark.parametrize("id", ["", "A", ".x", "a/b", "a b", "x\n", "x" * 65, "é"])
def test_an_id_can_begin_that_of_a_release(spec_path, registry, id):
    with pytest.raises(ConfigurationError, match="must match"):
        register(registry, id, spec_path())
    assert not registry.exists()


def test_a_broken_spec_or_geography_is_not_registered(spec_path, registry, tmp_path):
    with pytest.raises(ConfigurationError, match="must be a file"):
        register(registry, "x", tmp_path / "none.toml")
    with pytest.raises(GeographyError):
        register(registry, "x", spec_path(zones={"id": "nothing"}))
    assert not registry.exists()


@pytest.mark.parametrize(
    "text",
    ["datasets = 1", "[datasets]\nx = 1", '[datasets."x"]\nplace = "y"', '[datasets."x"]\nspec = 1', "\x00", "["],
)
def test_a_file_that_is_no_registry_is_one_clear_error(registry, text):
    registry.parent.mkdir()
    registry.write_text(text)
    with pytest.raises(ConfigurationError, match="must be a TOML file of sections"):
        read_registry(registry)


def test_an_unknown_dataset_is_not_found(registry):
    with pytest.raises(NotFoundError, match="synthmap datasets add"):
        registered_spec(registry, "x")


def test_a_place_that_cannot_be_written_is_one_clear_error(spec_path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableError, match="writable"):
        register(tmp_path / "file" / "registry.toml", "x", spec_path())


ADD = """
import sys
from pathlib import Path
from pipelines.registry import register
register(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
"""


def test_two_that_register_at_once_lose_nothing(spec_path, registry, other_jobs):
    paths = {
        "x": spec_path("one.toml"),
        "y": spec_path("two.toml", segments=None, duplicates="sum", tables=[other_jobs]),
    }
    both = [subprocess.Popen([sys.executable, "-c", ADD, registry, *one]) for one in paths.items()]
    assert [one.wait() for one in both] == [0, 0]
    assert read_registry(registry) == paths


def merged_csv(flows, folder):
    """As a semicolon-separated CSV, rows in another order, every flow in parts of one worker."""
    rows = flows.select("origin", "destination").select(pl.all().repeat_by(flows["count"]).explode())
    return [{**csv_table(folder / "b.csv", rows.sample(fraction=1, shuffle=True, seed=1)), "count": None}]


def renamed_parquet(flows, folder):
    """With other names of columns, other compression, other row groups, and an empty flow."""
    names = {"origin": "home", "destination": "work", "count": "n"}
    none = flows.head(1).with_columns(pl.lit(0, pl.Int32).alias("count"))
    other = pl.concat([flows.reverse(), none]).rename(names).drop("SA01", "SA02", "SA03")
    other.write_parquet(folder / "b.parquet", compression="gzip", row_group_size=100)
    return [{"path": str(folder / "b.parquet"), "vintage": VINTAGE, "format": "long",
             "origin": "home", "destination": "work", "count": "n"}]  # fmt: skip


def split_files(flows, folder):
    """In two files."""
    return [csv_table(folder / "b.csv", flows[:100]), csv_table(folder / "c.csv", flows[100:])]


def turned_round(flows, folder):
    """With the two ends exchanged."""
    return [{**csv_table(folder / "b.csv", flows), "origin": "destination", "destination": "origin"}]


def with_more(flows, folder):
    """Beside a table of other jobs."""
    more = flows.head(1).with_columns(pl.lit(7, pl.Int32).alias("count"))
    return [csv_table(folder / "b.csv", flows), csv_table(folder / "c.csv", more)]


@pytest.mark.parametrize("again", [merged_csv, renamed_parquet, split_files, turned_round, with_more])
def test_the_same_jobs_written_down_differently_are_no_second_dataset(spec_path, registry, flows, tmp_path, again):
    first = spec_path("one.toml")
    register(registry, "x", first)
    tables = [{k: v for k, v in one.items() if v is not None} for one in again(flows, tmp_path)]
    second = spec_path("two.toml", segments=None, duplicates="sum", tables=tables)
    with pytest.raises(LedgerError, match=r"dataset \(y\) must have tables of its own; .* as dataset \(x\)"):
        register(registry, "y", second)
    assert read_registry(registry) == {"x": first}


def test_some_of_several_tables_in_one_file_are_no_second_dataset(spec_path, registry, flows, tmp_path):
    parts = [flows[:100], flows[100:200], flows[200:]]
    several = [csv_table(tmp_path / f"{i}.csv", part) for i, part in enumerate(parts)]
    register(registry, "x", spec_path("one.toml", segments=None, duplicates="sum", tables=several))
    for some in ((0, 1), (0, 2), (1, 2)):
        rows = pl.concat(parts[i] for i in some).sample(fraction=1, shuffle=True)
        merged = csv_table(tmp_path / f"m{some}.csv", rows)
        with pytest.raises(LedgerError, match=r"as dataset \(x\)"):
            register(registry, "y", spec_path("y.toml", segments=None, duplicates="sum", tables=[merged]))


def test_one_worker_more_or_elsewhere_is_other_data(spec_path, registry, flows, other_jobs, tmp_path):
    register(registry, "x", spec_path("one.toml"))
    more = flows.with_columns(pl.col("count") + (pl.int_range(pl.len()) == 0).cast(pl.Int32))
    for id, table in (("y", other_jobs), ("z", csv_table(tmp_path / "more.csv", more))):
        register(registry, id, spec_path(f"{id}.toml", segments=None, duplicates="sum", tables=[table]))
    assert set(read_registry(registry)) == {"x", "y", "z"}


def test_a_table_that_cannot_be_read_is_not_registered(spec_path, registry, tmp_path):
    (tmp_path / "bad.csv").write_text("origin;destination;count\na;b;c\n")
    table = csv_table(tmp_path / "none.csv", pl.DataFrame({"origin": [], "destination": [], "count": []}))
    for name in ("bad.csv", "none.csv", "missing.csv"):
        with pytest.raises(ConfidentialDataError, match=name):
            register(registry, "x", spec_path(segments=None, tables=[table | {"path": str(tmp_path / name)}]))
    assert not registry.exists()
