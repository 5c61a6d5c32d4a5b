"""A worker of a Dask cluster is killed while a job reads or draws: another does its tasks, nothing is paid anew."""

import json
import subprocess
import sys

import pytest
import sites
from waiting import wait_for

from synthmap.catalog.ledger import read_account
from synthmap.release.verify import verify


@pytest.fixture
def cluster(tmp_path):
    """Return the address of a Dask scheduler and its two workers, each a process of its own."""
    place = tmp_path / "dask"
    place.mkdir()
    common = ("--scheduler-file", f"{place}/address", "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    worker = ("worker", *common, "--no-nanny", "--nthreads", "1", "--local-directory", str(place))
    with (place / "log").open("w") as log:
        started = [
            subprocess.Popen([sys.executable, "-m", "dask", *words], cwd=place, stdout=log, stderr=log)
            for words in (("scheduler", *common, "--port", "0"), worker, worker)
        ]
        try:
            wait_for(lambda: (place / "log").read_text().count("Register worker addr") == 2, patience=120)
            yield json.loads((place / "address").read_text())["address"], started[1:]
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()


@pytest.mark.parametrize("sign", ["scratch/*/table-*/*.npy", "store/.partial-*/draws/draw-*"])
def test_a_dask_worker_that_is_killed_costs_time_and_nothing_else(cluster, make_spec, tmp_path, sign):
    address, workers = cluster
    make_spec(run={"scratch": tmp_path / "scratch", "partitions": 40})
    site = sites.site(tmp_path, f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    site.register(tmp_path / "spec.toml")
    try:
        job = site.submit()
        running = site.worker("--once", "--scheduler", address)
        site.reach(sign)
        workers[0].kill()
        assert site.job(job).state == "running"
        assert json.loads(running.communicate(timeout=240)[0])["successful"] == 1, site.log
        assert site.releases() == [job.release]
        assert verify(site.store / job.release).workers == 3000
        kinds = [entry.body.kind for entry in read_account(site.catalog, sites.DATASET).entries]
        assert kinds == ["budget", "release", "drawing"]
    finally:
        site.stop()
