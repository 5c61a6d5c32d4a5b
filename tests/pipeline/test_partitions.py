"""With a seed, a release depends on its spec and table alone: not on partitions, processes or the order of rows."""

from pathlib import Path

import daskcluster
import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import pipelines.release
from pipelines.release import release
from synthmap.confidential.table import read_table
from synthmap.errors import ConfidentialDataError, UnknownZoneError
from synthmap.geography.read import read_zones
from synthmap.spec import read_spec

SEED = 7


@pytest.fixture
def seeded(make_spec):
    """Return a seeded spec with the number of partitions and other keys changed."""

    def make(partitions=None, **changes):
        split = {"partitions": partitions} if partitions else {}
        return make_spec(run={"seed": SEED} | split, **changes)

    return make


@pytest.fixture
def expected(seeded, read_od):
    """The seeded table from one partition."""
    return read_od(release(seeded(1), scheduler="threads").path)


@pytest.fixture
def cluster(tmp_path):
    """The address of a Dask scheduler with two workers, each a process of its own in another directory."""
    with daskcluster.cluster(tmp_path / "elsewhere", 2) as found:
        yield found.address


@pytest.mark.parametrize("partitions", [2, 7, 60, None])
def test_the_number_of_partitions_does_not_matter(seeded, expected, read_od, partitions):
    found = release(seeded(partitions), scheduler="threads").path
    assert_frame_equal(read_od(found), expected)
    assert 1 < len(list((found / "od").iterdir())) <= (partitions or 4)


@pytest.mark.parametrize("keep", [0.5, "prior"])
def test_nor_does_it_where_cells_are_dropped(seeded, read_od, keep):
    tables = [read_od(release(seeded(n, plan={"keep": keep}), scheduler="threads").path) for n in (1, 7)]
    assert_frame_equal(*tables)


def test_processes_make_the_same_table_as_threads(seeded, expected, read_od):
    assert_frame_equal(read_od(release(seeded(5), scheduler="processes").path), expected)


def test_a_cluster_makes_the_same_table(
    expected, read_od, cluster, region_spec, region, write_spec, tmp_path, monkeypatch, with_changes, left_in
):
    """Its workers run in another directory: paths relative to the spec, itself named relatively, must not change."""
    for name in ("zones.parquet", "od.parquet"):
        (tmp_path / name).symlink_to(region / name)
    table = region_spec["tables"][0] | {"path": "od.parquet"}
    near = {"store": "store", "zones": {"path": "zones.parquet"}, "tables": [table]}
    write_spec(tmp_path / "near.toml", with_changes(region_spec, near | {"run": {"scratch": "scratch", "seed": SEED}}))
    monkeypatch.chdir(tmp_path)
    found = release(read_spec(Path("near.toml")), scheduler=cluster)
    assert_frame_equal(read_od(found.path), expected)
    assert found.path.parent.resolve() == tmp_path / "store"
    assert left_in(tmp_path / "scratch") == []


def test_the_order_of_rows_does_not_matter(seeded, expected, read_od, region, tmp_path):
    pl.read_parquet(region / "od.parquet").sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "od.pq")
    table = seeded().tables[0].model_dump(exclude_none=True) | {"path": tmp_path / "od.pq"}
    assert_frame_equal(read_od(release(seeded(3, tables=[table]), scheduler="threads").path), expected)


@pytest.fixture
def in_row_groups(seeded, region, tmp_path):
    """Return a spec whose table lies in row groups of ten rows, after rows were changed."""

    def make(change=lambda frame: frame, **changes):
        change(pl.read_parquet(region / "od.parquet")).write_parquet(tmp_path / "cut.parquet", row_group_size=10)
        table = seeded().tables[0].model_dump(exclude_none=True) | {"path": tmp_path / "cut.parquet"}
        return seeded(3, tables=[table], **changes)

    return make


def test_a_file_of_many_row_groups_is_read_side_by_side_into_the_same_table(in_row_groups, expected, read_od):
    spec = in_row_groups()
    rows = pq.read_metadata(spec.tables[0].path).num_rows
    zones = read_zones(spec.zones)
    parts = [
        sum(
            chunk.origin.size for chunk in read_table(spec.tables[0], zones, segments=(), outside="refuse", part=(i, 4))
        )
        for i in range(4)
    ]
    assert min(parts) > rows // 5
    assert sum(parts) == rows
    assert_frame_equal(read_od(release(spec, scheduler="threads").path), expected)


def test_a_fault_is_told_for_the_whole_file_however_it_was_cut(in_row_groups):
    wrong = pl.when(pl.int_range(pl.len()) % 100 == 0).then("nowhere-" + pl.int_range(pl.len()).cast(pl.String))
    spec = in_row_groups(lambda frame: frame.with_columns(origin=wrong.otherwise("origin")))
    assert sum(name.startswith("nowhere") for name in pl.read_parquet(spec.tables[0].path)["origin"]) > 4
    with pytest.raises(UnknownZoneError, match=r"column origin must be one of the zones.*looks otherwise") as fault:
        release(spec, scheduler="threads")
    assert "nowhere" not in str(fault.value)


def test_row_groups_without_rows_are_no_fault(in_row_groups, expected, read_od):
    spec = in_row_groups()
    whole = pq.read_table(spec.tables[0].path)
    with pq.ParquetWriter(spec.tables[0].path, whole.schema) as writer:
        for part in (whole.slice(0, 0), whole.slice(0, 7), whole.slice(0, 0), whole.slice(7)):
            writer.write_table(part)
    assert_frame_equal(read_od(release(spec, scheduler="threads").path), expected)


def test_the_order_of_zones_does_not_matter(seeded, expected, read_od, region, tmp_path):
    zones = pl.read_parquet(region / "zones.parquet").sample(fraction=1, shuffle=True, seed=1)
    zones.write_parquet(tmp_path / "zones.parquet")
    spec = seeded(3, zones={"path": tmp_path / "zones.parquet"})
    assert_frame_equal(read_od(release(spec, scheduler="threads").path), expected)


@pytest.mark.parametrize("duplicates", ["refuse", "sum"])
def test_rows_in_two_tables_are_the_same_as_in_one(seeded, expected, read_od, region, tmp_path, duplicates):
    whole = pl.read_parquet(region / "od.parquet")
    halves = [whole.gather_every(2), whole.gather_every(2, 1)]
    if duplicates == "sum":  # cut every flow in two, of which one half may be empty
        counts = ["SA01", "SA02", "SA03"]
        first = whole.with_columns(pl.col(counts) // 2).with_columns(count=pl.sum_horizontal(counts))
        rest = whole.with_columns([whole[name] - first[name] for name in ("count", *counts)])
        halves = [first, rest]
    tables = []
    for i, half in enumerate(halves):
        half.write_csv(tmp_path / f"half-{i}.csv")
        table = seeded().tables[0].model_dump(exclude_none=True)
        tables.append(table | {"path": tmp_path / f"half-{i}.csv"})
    spec = seeded(3, tables=tables, duplicates=duplicates)
    assert_frame_equal(read_od(release(spec, scheduler="threads").path), expected)


def test_a_seeded_release_says_that_it_is_not_private(seeded):
    manifest = release(seeded(), scheduler="threads").manifest
    assert manifest.private is False
    assert "seed" in manifest.warning
    assert str(SEED) not in manifest.warning


def test_another_seed_gives_another_table(seeded, expected, read_od):
    other = release(
        seeded().model_copy(update={"run": seeded().run.model_copy(update={"seed": 8})}), scheduler="threads"
    )
    assert not read_od(other.path).equals(expected)


def test_two_releases_without_a_seed_differ(make_spec, read_od):
    one, two = (release(make_spec(), scheduler="threads") for _ in range(2))
    assert one.manifest.private
    assert one.manifest.warning is None
    assert not read_od(one.path).equals(read_od(two.path))


def test_a_fault_that_is_gone_when_the_table_is_read_again_does_no_harm(seeded, expected, read_od, monkeypatch):
    """Someone repaired the table meanwhile: the zones, written beside the first reading, are there still."""
    tabulate = pipelines.release.tabulate

    def at_first_faulty(spec, stretch, *places):
        if stretch.of > 1 and stretch.part == 0:
            raise ConfidentialDataError("od.parquet must be whole")
        return tabulate(spec, stretch, *places)

    monkeypatch.setattr(pipelines.release, "tabulate", at_first_faulty)
    found = release(seeded(3), scheduler="threads").path
    assert_frame_equal(read_od(found), expected)
    assert (found / "zones.parquet").is_file()
