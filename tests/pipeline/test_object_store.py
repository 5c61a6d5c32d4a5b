"""Inputs, scratch and releases in an object store: the same table, nothing left, never a half release."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import objectstore
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from waiting import wait_for

from pipelines import places
from pipelines.release import release
from pipelines.seal import Seal
from synthmap import remote
from synthmap.errors import ConfigurationError, ReleaseError, ReleaseNotFoundError, StorageError, UnknownZoneError
from synthmap.release import remote_store
from synthmap.release.manifest import MANIFEST
from synthmap.release.remote_store import on_disk, publish_remotely, remote_scratch
from synthmap.release.verify import verify
from synthmap.remote import download, is_there, listed, upload
from synthmap.spec import read_spec

pytestmark = pytest.mark.skipif(bool(objectstore.MISSING), reason=f"not installed: {', '.join(objectstore.MISSING)}")
ROOT = Path("s3:/bucket")
LENGTHS = {"lengths_epsilon": "auto"}


@pytest.fixture(scope="module")
def environment():
    with objectstore.server() as found:
        yield found


@pytest.fixture
def bucket(environment, monkeypatch):
    """An empty bucket that this process, and those it starts, reach."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    remote._files.cache_clear()
    for path in listed(ROOT):
        remote.remove(path)
    yield ROOT
    remote._files.cache_clear()


def objects(directory=ROOT):
    """Name all objects below a directory."""
    return sorted(str(path.relative_to(ROOT)) for path, time in listed(directory, deep=True).items() if time)


@pytest.fixture
def far(bucket, region, region_spec, write_spec, with_changes, tmp_path):
    """Return a spec of which every part lies in the bucket, read from TOML like a user's."""
    for name in ("zones.parquet", "od.parquet"):
        upload(region / name, bucket / "in" / name)

    def make(**changes):
        table = region_spec["tables"][0] | {"path": "s3://bucket/in/od.parquet"}
        own = {"store": "s3://bucket/store", "zones": {"path": "s3://bucket/in/zones.parquet"}, "tables": [table],
               "run": {"scratch": "s3://bucket/scratch", "seed": 7, "partitions": 3}, "prior": LENGTHS}  # fmt: skip
        values = with_changes(with_changes(region_spec, own), changes)
        return read_spec(write_spec(tmp_path / "far.toml", values))

    return make


@pytest.fixture
def expected(make_spec, read_od):
    """The same table, made on a disk."""
    return read_od(release(make_spec(run={"seed": 7}, prior=LENGTHS), scheduler="threads").path)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_all_in_a_bucket_gives_the_same_table_and_leaves_only_the_release(
    far, expected, read_od, scheduler, monkeypatch, tmp_path, left_in
):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    found = release(far(), scheduler=scheduler)
    assert found.path == ROOT / "store" / found.release
    with on_disk(found.path) as directory:
        assert verify(directory).workers == 3000
        assert_frame_equal(read_od(directory), expected)
    kept = {str(Path("store", found.release, name)) for name in [*found.manifest.files, MANIFEST]}
    assert set(objects()) == {"in/od.parquet", "in/zones.parquet"} | kept
    left = [path for path in (tmp_path / "tmp").rglob("*") if "synthmap" in path.name]
    assert left == []


def test_a_bucket_may_hold_a_part(far, expected, read_od, tmp_path):
    """Workers leave draws where the driver reaches them, whichever of scratch and store is on a disk."""
    for changes in ({"store": str(tmp_path / "here")}, {"run": {"scratch": str(tmp_path / "scratch")}}):
        with on_disk(release(far(**changes), scheduler="threads").path) as directory:
            assert_frame_equal(read_od(directory), expected)


def test_the_command_line_takes_addresses(far, command, forked_command, tmp_path):
    far()
    made = command("release", tmp_path / "far.toml", "--scheduler", "threads")
    assert made.returncode == 0, made.stderr
    address = made.stdout.splitlines()[-1]
    assert address.startswith("s3://bucket/store/demo-")
    for words in (["verify", address], ["statement", address]):
        done = forked_command(*words)
        assert done.returncode == 0, done.stderr
    for words, told in (
        (["evaluate", address, "--against", tmp_path / "far.toml"], "CONFIDENTIAL"),
        (["export", address, tmp_path / "out", "--format", "csv"], str(tmp_path / "out" / address.rsplit("/", 1)[1])),
        (["compare", address, address], "Release demo-"),
    ):
        done = forked_command(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(told)
    assert [name for name in objects() if not name.startswith(("in/", "store/"))] == []  # no copies stay
    none = forked_command("verify", "s3://bucket/store/none")
    assert none.returncode == 2
    assert none.stderr == "synthmap: release (s3://bucket/store/none) must hold a manifest.json\n"


def test_a_prior_may_be_a_release_in_a_bucket(far):
    first = release(far(), scheduler="threads")
    source = release(far(prior={"release": remote.shown(first.path)}), scheduler="threads").manifest.prior.source
    assert source.name == first.release


def test_the_confidential_table_is_refused_as_prior_there_too(far):
    table = {"path": "s3://bucket/in/od.parquet", "origin": "origin", "destination": "destination", "count": "count",
             "vintage": far().zones.vintage}  # fmt: skip
    with pytest.raises(ConfigurationError, match="must be another file than the confidential table"):
        release(far(prior={"table": table}), scheduler="threads")


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_what_is_wrong_with_a_table_is_told_and_nothing_stays(far, bucket, tmp_path, scheduler):
    (tmp_path / "bad.csv").write_text("origin,destination,count\nnowhere,nowhere,1\n")
    upload(tmp_path / "bad.csv", bucket / "in" / "bad.csv")
    table = far().tables[0].model_dump(exclude_none=True) | {"path": "s3://bucket/in/bad.csv"}
    with pytest.raises(UnknownZoneError, match=r"^bad\.csv: every id of column destination must be one of the zones"):
        release(far(tables=[table], segments=None), scheduler=scheduler)
    assert {name.split("/")[0] for name in objects()} == {"in"}


@pytest.mark.parametrize("part", ["tables", "zones", "scratch", "store"])
def test_what_is_not_there_is_one_clear_error(far, part):
    table = far().tables[0].model_dump(exclude_none=True) | {"path": "s3://bucket/in/none.parquet"}
    changes = {
        "tables": {"tables": [table]},
        "zones": {"zones": {"path": "s3://bucket/in/none.parquet"}},
        "scratch": {"run": {"scratch": "s3://nobody/scratch"}},
        "store": {"store": "s3://nobody/store"},
    }
    with pytest.raises(
        (ConfigurationError, StorageError), match=r"^s3://(bucket/in/none.parquet|nobody/s\S*) must be "
    ):
        release(far(**changes[part]), scheduler="threads")
    assert {name.split("/")[0] for name in objects()} == {"in"}


def test_a_store_that_does_not_answer_is_one_clear_error(far, monkeypatch):
    spec = far()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    remote._files.cache_clear()
    with pytest.raises(StorageError, match=r"^s3://bucket/scratch/\S* must be an address .* network connection$"):
        release(spec, scheduler="threads")


def test_a_release_that_fails_while_it_is_copied_was_never_there(bucket, small_release, monkeypatch):
    partial = small_release()

    def broken(source, target):
        if source.name == MANIFEST:
            raise StorageError("away")
        upload(source, target)
        assert is_there(bucket / "store" / partial.name / MANIFEST) is False

    monkeypatch.setattr(remote_store, "upload", broken)
    with pytest.raises(StorageError):
        publish_remotely(partial, bucket / "store", partial.name)
    assert objects() == []


def test_a_release_is_never_overwritten(bucket, small_release):
    partial = small_release()
    publish_remotely(partial, bucket / "store", partial.name)
    before = listed(bucket, deep=True)
    with pytest.raises(ReleaseError, match="must not exist yet"):
        publish_remotely(partial, bucket / "store", partial.name)
    assert listed(bucket, deep=True) == before


def test_files_without_a_manifest_are_no_release(bucket, small_release):
    partial = small_release()
    publish_remotely(partial, bucket / "store", partial.name)
    remote.remove(bucket / "store" / partial.name / MANIFEST)
    upload(partial / "zones.parquet", bucket / "store" / "half" / "zones.parquet")
    with pytest.raises(ReleaseNotFoundError), on_disk(bucket / "store" / "half"):
        pass


def test_what_a_killed_driver_left_goes_once_it_shows_no_sign_of_life(far, bucket, monkeypatch, tmp_path):
    far()
    code = "from synthmap.cli import main; main()"
    line = [sys.executable, "-c", code, "release", str(tmp_path / "far.toml"), "--scheduler", "threads"]
    driver = subprocess.Popen(line, env=os.environ, start_new_session=True, stderr=subprocess.DEVNULL)
    wait_for(lambda: any("/partition-" in name for name in objects(bucket / "scratch")))
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    left = objects(bucket / "scratch")
    assert any(name.endswith("-workers.npy") for name in left)
    with remote_scratch(bucket / "scratch"):
        assert set(left) <= set(objects(bucket / "scratch"))  # it may live
    monkeypatch.setattr(remote_store, "DEAD_AFTER", timedelta(seconds=-1))
    with remote_scratch(bucket / "scratch") as mine:
        assert objects(bucket / "scratch") == [str((mine / ".alive").relative_to(ROOT))]
    assert objects(bucket / "scratch") == []


def test_copies_that_nobody_asks_for_go(bucket, region, monkeypatch, tmp_path):
    monkeypatch.setattr(places, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    upload(region / "od.parquet", bucket / "od.parquet")
    copy = places.fetch(bucket / "od.parquet", bucket / "run")
    assert copy.read_bytes() == (region / "od.parquet").read_bytes()
    assert copy.parents[1].stat().st_mode & 0o777 == 0o700
    wait_for(lambda: not copy.exists() and not list(tmp_path.glob("synthmap-scratch-*")))


def test_a_run_that_has_ended_gets_no_results(bucket):
    with remote_scratch(bucket / "scratch") as directory:
        late = places.results(directory)
        here = late.__enter__()
        (here / "secret.npy").write_bytes(b"x")
    late.__exit__(None, None, None)
    places.forget(directory)
    assert objects() == []


def test_a_shapefile_comes_with_its_other_files(bucket, tmp_path):
    for name in ("z.shp", "z.dbf", "z.prj", "y.dbf"):
        (tmp_path / name).write_text(name)
        upload(tmp_path / name, bucket / "in" / name)
    copy = places.fetch(bucket / "in" / "z.shp", bucket / "run")
    assert sorted(path.name for path in copy.parent.iterdir()) == ["z.dbf", "z.prj", "z.shp"]
    places.forget(bucket / "run")
    assert not copy.exists()


def test_a_copy_is_there_only_when_it_is_whole(bucket, tmp_path, monkeypatch):
    with pytest.raises(ConfigurationError, match=r"s3://bucket/none must be a file or a directory .* missing"):
        download(bucket / "none", tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_marks_of_files_are_those_of_their_copies_on_a_disk(far, make_spec, region, tmp_path, bucket):
    seal = Seal(tmp_path / "registry.toml")
    assert seal.content(far()) == seal.content(make_spec())
    table, other = bucket / "in" / "od.parquet", tmp_path / "other"
    before = remote.state(table)
    assert remote.state(table) == before
    pl.read_parquet(region / "od.parquet").head(-1).write_parquet(other)
    upload(other, table)
    assert remote.state(table) != before
    assert seal.content(far()) != seal.content(make_spec())


def test_a_dataset_in_a_bucket_pays_like_one_on_a_disk(far, tmp_path, forked_command):
    far(store=str(tmp_path / "store"), run={"seed": None})
    site = ["--store", tmp_path / "store", "--registry", tmp_path / "registry.toml"]
    assert forked_command("datasets", "add", "far", tmp_path / "far.toml", *site).returncode == 0
    assert forked_command("ledger", "budget", "far", "--epsilon", "9", "--delta", "1e-4", *site[:2]).returncode == 0
    words = ["release", tmp_path / "far.toml", "--dataset", "far", "--registry", tmp_path / "registry.toml"]
    made = forked_command(*words, "--scheduler", "threads", "--json")
    assert made.returncode == 0, made.stderr
    found = forked_command("evaluate", json.loads(made.stdout)["path"], "--against", tmp_path / "far.toml")
    assert found.returncode == 0, found.stderr
    refused = forked_command(*words, "--store", "s3://bucket/store")
    assert refused.returncode == 2
    assert "store (s3://bucket/store) must be a directory" in refused.stderr
