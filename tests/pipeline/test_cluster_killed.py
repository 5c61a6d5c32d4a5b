"""A worker of a Dask cluster is killed while a job reads or draws: another does its tasks, nothing is paid anew."""

import json
import subprocess
import tempfile
from pathlib import Path

import daskcluster
import objectstore
import polars as pl
import pytest
import sites
from polars.testing import assert_frame_equal

from pipelines.release import release
from synthmap import remote
from synthmap.catalog.ledger import read_account
from synthmap.release.remote_store import on_disk
from synthmap.release.store import sweep_scratch
from synthmap.release.verify import verify
from synthmap.remote import listed, upload


@pytest.mark.parametrize("sign", ["scratch/*/table-*/*.npy", "store/.partial-*/draws/draw-*"])
def test_a_dask_worker_that_is_killed_costs_time_and_nothing_else(make_spec, tmp_path, sign):
    make_spec(run={"scratch": tmp_path / "scratch", "partitions": 40})
    site = sites.site(tmp_path, f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    site.register(tmp_path / "spec.toml")
    with daskcluster.cluster(tmp_path / "dask", 2) as cluster:
        try:
            job = site.submit()
            with site.worker_at(sign, "--once", "--scheduler", cluster.address) as running:
                cluster.kill(0)
                assert site.job(job).state == "running"
            assert json.loads(running.communicate()[0])["successful"] == 1, site.log
            assert site.releases() == [job.release]
            assert verify(site.store / job.release).workers == 3000
            kinds = [entry.body.kind for entry in read_account(site.catalog, sites.DATASET).entries]
            assert kinds == ["budget", "release", "drawing"]
        finally:
            site.stop()


@pytest.fixture
def three(make_spec, region, tmp_path):
    """Return a seeded spec over three tables, so that each of three workers has one to read."""
    flows = pl.read_parquet(region / "od.parquet")
    tables = []
    for i in range(3):
        flows.gather_every(3, i).write_parquet(tmp_path / f"od-{i}.parquet")
        tables.append(make_spec().tables[0].model_dump(exclude_none=True) | {"path": tmp_path / f"od-{i}.parquet"})

    def make(**run):
        return make_spec(tables=tables, run={"seed": 7, "partitions": 12} | run)

    return make


@pytest.fixture
def expected(three, read_od):
    """The table that is made where nothing happens."""
    return read_od(release(three(partitions=1), scheduler="threads").path)


def limits(number):
    """Each worker has a nanny that holds it to a memory limit of its own."""
    return "--nanny", "--memory-limit", f"{1000 + 200 * number}MiB"


def killing(cluster, at):
    """Return a callback that kills the first worker once a task of stage `at` has ended and others run."""

    def progress(stage, done, total):
        if (stage, done) == (at, 1):
            assert total > 1
            cluster.kill(0)

    return progress


def left(place):
    """Name what is left of copies and intermediate files below a directory."""
    return [path.name for path in place.rglob("synthmap-scratch-*")]


@pytest.mark.parametrize("stage", ["read", "draw"])
def test_three_workers_of_which_one_is_killed_make_the_same_table(three, expected, read_od, tmp_path, left_in, stage):
    with daskcluster.cluster(tmp_path / "dask", 3, options=limits) as cluster:
        found = release(three(), scheduler=cluster.address, progress=killing(cluster, stage))
        assert cluster.log.count("Remove worker addr") == 1
        assert_frame_equal(read_od(found.path), expected)
        assert left_in(tmp_path / "scratch") == left(tmp_path) == []


def hidden(directory):
    """Return the start of a command that does not see a directory, where this machine has such; else nothing."""
    start = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{directory}" && exec "$@"', "sh"]
    tried = subprocess.run([*start, "test", "-e", directory / "dask"], capture_output=True, check=False)
    return start if tried.returncode == 1 else []


@pytest.fixture(scope="module")
def far_away():
    """An object store, and how processes reach it."""
    with objectstore.server() as environment:
        yield environment


@pytest.mark.skipif(bool(objectstore.MISSING), reason=f"not installed: {', '.join(objectstore.MISSING)}")
@pytest.mark.parametrize("stage", ["plan", "draw"])
def test_so_do_workers_that_see_no_file_of_the_driver(
    three, expected, read_od, region, tmp_path, tmp_path_factory, monkeypatch, far_away, stage
):
    """Tables, zones, scratch and store are in a bucket; where the system allows it, the driver's disk is hidden."""
    with tempfile.TemporaryDirectory() as elsewhere:
        for name, value in far_away.items():
            monkeypatch.setenv(name, value)
        remote._files.cache_clear()
        bucket = Path("s3:/bucket") / stage
        for path in (*tmp_path.glob("od-*.parquet"), region / "zones.parquet"):
            upload(path, bucket / "in" / path.name)
        near = three()
        tables = [one.model_copy(update={"path": bucket / "in" / one.path.name}) for one in near.tables]
        zones = near.zones.model_copy(update={"path": bucket / "in" / "zones.parquet"})
        run = near.run.model_copy(update={"scratch": bucket / "scratch"})
        spec = near.model_copy(update={"tables": tables, "zones": zones, "run": run, "store": bucket / "store"})
        place = Path(elsewhere) / "dask"
        before = hidden(tmp_path_factory.getbasetemp())
        with daskcluster.cluster(place, 3, options=limits, before=before, environment=far_away) as cluster:
            found = release(spec, scheduler=cluster.address, progress=killing(cluster, stage))
            assert cluster.log.count("Remove worker addr") == 1
            with on_disk(found.path) as directory:
                verify(directory)
                assert_frame_equal(read_od(directory), expected)
            assert left(place / "worker-1") == left(place / "worker-2") == []
        assert not listed(bucket / "scratch", deep=True)
        assert left(place / "worker-0")  # the copies of the one that was killed, until its machine is used again
        for directory in place.glob("worker-0/dask-scratch-space*"):
            sweep_scratch(directory)
        assert left(place / "worker-0") == []
        remote._files.cache_clear()
