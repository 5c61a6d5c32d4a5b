"""Public tables of flows as priors: what is read, what is refused, what is said about where they come from."""

import gzip
import hashlib
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from synthmap.analysis.prior_table import open_prior_table, read_prior_table, refuse_confidential, write_prior_table
from synthmap.errors import (
    ConfigurationError,
    GeographyError,
    ReleaseCorruptError,
    ReleaseNotFoundError,
    UnknownZoneError,
    VintageError,
)
from synthmap.release import wording
from synthmap.spec import Spec

FLOWS = pd.DataFrame({"o": ["a", "b", "d", "b"], "d": ["c", "c", "a", "c"], "n": [3, 1, 2, 4]})
PACKED = gzip.compress(b"d,o,n\n")


@pytest.fixture
def make(tmp_path):
    """Return the spec of a release with the given [prior]; its zones have the vintage "made-up"."""

    def make(prior, **more):
        values = {
            "name": "x",
            "zones": {"path": "z", "vintage": "made-up"},
            "tables": [{"path": tmp_path / "secret.csv", "vintage": "made-up"}],
            "privacy": {"epsilon": 2.0, "delta": 1e-6},
            "prior": prior,
        }
        return Spec.model_validate(values | more)

    return make


@pytest.fixture
def table_spec(tmp_path, make):
    """Write flows to a file and return a spec that mixes it in."""

    def write(flows, name="flows.csv", unknown=None, vintage="made-up", count="n", **more):
        path = tmp_path / name
        if name.endswith(".parquet"):
            flows.to_parquet(path)
        else:
            flows.to_csv(path, index=False)
        table = {"path": path, "origin": "o", "destination": "d", "vintage": vintage}
        table |= {"count": count} if count else {}
        return make({"table": table} | ({"unknown": unknown} if unknown else {}), **more)

    return write


def rows(table):
    destination = np.repeat(np.arange(table.first.size - 1), np.diff(table.first))
    return list(zip(destination.tolist(), table.origin.tolist(), table.workers.tolist(), strict=True))


@pytest.mark.parametrize("name", ["flows.csv", "flows.csv.gz", "flows.parquet"])
def test_a_table_is_summed_sorted_and_named(line, table_spec, tmp_path, name):
    table, source = read_prior_table(table_spec(FLOWS, name), line)
    assert rows(table) == [(0, 3, 2), (2, 0, 3), (2, 1, 5)]
    assert (source.kind, source.name, source.workers, source.mixing) == ("table", name, 10, 0.9)
    assert source.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert source.statement == "declared public by the curator"


def test_without_a_count_each_row_is_a_worker_and_fractions_are_rounded(line, table_spec):
    assert rows(read_prior_table(table_spec(FLOWS, count=None), line)[0]) == [(0, 3, 1), (2, 0, 1), (2, 1, 2)]
    table, _ = read_prior_table(table_spec(FLOWS.assign(n=[0.4, 0.5, 7.6, 0])), line)
    assert rows(table) == [(0, 3, 8), (2, 1, 1)]


def test_no_table_is_no_rows_and_no_source(line, make, tmp_path):
    table, source = read_prior_table(make({}), line)
    assert (table.first.size, source) == (0, None)
    write_prior_table(tmp_path, table, source)
    assert open_prior_table(tmp_path)[0].first.size == 0


def test_it_survives_its_files(line, table_spec, tmp_path):
    found = read_prior_table(table_spec(FLOWS), line)
    write_prior_table(tmp_path, *found)
    back, source = open_prior_table(tmp_path)
    assert (rows(back), source) == (rows(found[0]), found[1])


def test_ids_that_are_no_zones_are_refused_or_left_out(line, table_spec):
    flows = pd.concat([FLOWS, pd.DataFrame({"o": ["q", "a", "elsewhere"], "d": ["c", "r", "c"], "n": [7, 8, 9]})])
    with pytest.raises(UnknownZoneError, match=r"prior \(flows.csv\).*'q'.*leave out"):
        read_prior_table(table_spec(flows), line)
    known = rows(read_prior_table(table_spec(FLOWS), line)[0])
    assert rows(read_prior_table(table_spec(flows, unknown="leave out"), line)[0]) == known
    away = table_spec(flows, unknown="leave out", outside="elsewhere")
    assert rows(read_prior_table(away, line)[0]) == [*known, (2, 4, 16)]
    with pytest.raises(ConfigurationError, match="must have workers between these zones"):
        read_prior_table(table_spec(flows[4:5], unknown="leave out"), line)


@pytest.mark.parametrize("count", [-1, "many", np.nan, np.inf, 1e12])
def test_counts_that_are_no_workers_are_refused(line, table_spec, count):
    flows = FLOWS.assign(n=[1, 2, 3, count])
    with pytest.raises(GeographyError, match="column n must be a number of workers"):
        read_prior_table(table_spec(flows, "flows.csv"), line)


def test_ids_as_numbers_missing_columns_and_files_are_refused(line, table_spec, make, tmp_path):
    with pytest.raises(GeographyError, match="ids must be text"):
        read_prior_table(table_spec(FLOWS.assign(o=[1, 2, 3, 4]), "flows.parquet"), line)
    with pytest.raises(GeographyError, match="must have the column n"):
        read_prior_table(table_spec(FLOWS.drop(columns="n")), line)
    missing = {"path": tmp_path / "no.csv", "origin": "o", "destination": "d", "vintage": "made-up"}
    with pytest.raises(GeographyError, match="there is none of that name"):
        read_prior_table(make({"table": missing}), line)


def test_another_vintage_is_refused(line, table_spec):
    with pytest.raises(VintageError, match=r"vintage \(2020\) must be that of the zones \(made-up\)"):
        read_prior_table(table_spec(FLOWS, vintage="2020"), line)


@pytest.mark.parametrize("how", ["same", "copy", "gzipped", "link"])
def test_a_confidential_table_is_refused_as_prior(table_spec, tmp_path, how):
    spec = table_spec(FLOWS, "secret.csv" if how == "same" else "flows.csv")
    here, secret = tmp_path / "flows.csv", tmp_path / "secret.csv"
    if how == "copy":
        shutil.copy(here, secret)
    if how == "link":
        secret.symlink_to(here)
    if how == "gzipped":
        (tmp_path / "secret.csv.gz").write_bytes(gzip.compress(here.read_bytes()))
        table = spec.tables[0].model_copy(update={"path": tmp_path / "secret.csv.gz"})
        spec = spec.model_copy(update={"tables": [table]})
    with pytest.raises(ConfigurationError, match="another file than the confidential table"):
        refuse_confidential(spec)


@pytest.mark.parametrize(
    "bad", [b"", b"no gzip", PACKED[:-4], PACKED[:10] + b"\xff" * 99], ids=["empty", "plain", "cut", "corrupt"]
)
def test_a_confidential_gzip_that_cannot_be_unpacked_is_left_to_who_reads_it(table_spec, tmp_path, bad):
    """Two that break off in the same place are not taken for the same file."""
    tables = []
    for name in ("secret.csv.gz", "other.csv.gz"):
        (tmp_path / name).write_bytes(bad + (b"" if not bad else name.encode()))
        tables.append(table_spec(FLOWS).tables[0].model_copy(update={"path": tmp_path / name}))
    refuse_confidential(table_spec(FLOWS).model_copy(update={"tables": tables[: 2 if bad else 1]}))


@pytest.mark.parametrize("key", ["zones", "weights", "shapes"])
@pytest.mark.parametrize("how", ["same", "copy", "gzipped", "gzipped under another name"])
def test_nor_may_zones_weights_or_shapes_be_made_of_it(make, tmp_path, key, how):
    secret, public = tmp_path / "secret.csv", tmp_path / "public.csv"
    FLOWS.to_csv(secret, index=False)
    if how == "same":
        public = secret
    else:
        public.write_bytes(secret.read_bytes() if how == "copy" else gzip.compress(secret.read_bytes()))
    if how == "gzipped":
        public = public.rename(tmp_path / "public.csv.gz")
    more = {"weights": {"column": "n"}, "shapes": {}}
    zones = {"path": tmp_path / "zones.csv", "vintage": "made-up"}
    named = {"path": public, "id": "d", "vintage": "made-up"}
    zones |= {"path": public} if key == "zones" else {key: named | more[key]}
    with pytest.raises(ConfigurationError, match=rf"{key} \(.*another file than the confidential table secret\.csv"):
        refuse_confidential(make({}, zones=zones))


def test_a_table_may_not_be_there_twice(make, tmp_path):
    FLOWS.to_csv(tmp_path / "secret.csv", index=False)
    (tmp_path / "other.csv.gz").write_bytes(gzip.compress((tmp_path / "secret.csv").read_bytes()))
    FLOWS.assign(n=5).to_csv(tmp_path / "third.csv", index=False)

    def spec(*names):
        return make({}, tables=[{"path": tmp_path / name, "vintage": "made-up"} for name in names])

    refuse_confidential(spec("secret.csv", "third.csv"))
    for same in ("secret.csv", "other.csv.gz"):
        with pytest.raises(ConfigurationError, match=r"tables \(.*is the same file.*counted twice"):
            refuse_confidential(spec("secret.csv", "third.csv", same))


def test_tables_that_only_begin_alike_are_others(make, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("d,o,n\n" * 100_000 + name)
    refuse_confidential(make({}, tables=[{"path": tmp_path / f"{n}.csv", "vintage": "made-up"} for n in "ab"]))


def test_other_tables_are_not(table_spec, tmp_path):
    FLOWS.assign(n=5).to_csv(tmp_path / "secret.csv", index=False)
    refuse_confidential(table_spec(FLOWS))


@pytest.fixture
def earlier(small_release):
    """A made-up release over 01, 02, 03 and elsewhere, not private."""

    def make(**changes):
        def change(manifest):
            manifest["zones"]["vintage"] = "made-up"
            manifest.update(changes)

        return small_release(change=change)

    return make


@pytest.fixture
def three(line):
    import pyarrow as pa

    return replace(
        line,
        ids=pa.array(["01", "02", "03"]),
        longitude=np.zeros(3),
        latitude=np.arange(3.0),
        weight=np.ones(3, np.int64),
        parents=(pa.array(["x", "x", "y"]),),
        by_id=np.arange(3, dtype=np.int32),
    )


def test_an_earlier_release_is_verified_and_named_by_the_hash_of_its_manifest(three, earlier, make):
    directory = earlier()
    table, source = read_prior_table(make({"release": directory, "mixing": 0.5}), three)
    assert rows(table) == [(0, 0, 2), (0, 2, 1), (2, 1, 5)]
    assert (source.kind, source.name, source.mixing) == ("release", directory.name, 0.5)
    assert source.sha256 == hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest()
    assert "its loss adds to this one's" in source.statement
    away, _ = read_prior_table(make({"release": directory}, outside="elsewhere"), three)
    assert rows(away) == [(0, 0, 2), (0, 2, 1), (0, 3, 1), (2, 1, 5)]


def test_a_release_that_is_not_private_says_so(three, earlier, make):
    warning = wording.warning(private=False, source=None)
    source = read_prior_table(make({"release": earlier(private=False, warning=warning)}), three)[1]
    assert not source.private
    assert "NOT PRIVATE itself: drawn with a fixed seed" in source.statement


def test_a_release_that_is_damaged_missing_or_of_other_zones_is_refused(three, line, earlier, make, tmp_path):
    directory = earlier()
    with pytest.raises(UnknownZoneError, match="'01'"):
        read_prior_table(make({"release": directory}), line)
    with pytest.raises(ReleaseNotFoundError):
        read_prior_table(make({"release": tmp_path / "no"}), three)
    with pytest.raises(VintageError):
        spec = make({"release": directory}, zones={"path": "z", "vintage": "2020"})
        read_prior_table(spec, three)
    shutil.copy(directory / "od" / "part-00000.parquet", tmp_path / "secret.csv")
    with pytest.raises(ConfigurationError, match="another file than the confidential table"):
        refuse_confidential(make({"release": directory}))
    part = directory / "od" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(ReleaseCorruptError, match="must have the hash"):
        read_prior_table(make({"release": directory}), three)
