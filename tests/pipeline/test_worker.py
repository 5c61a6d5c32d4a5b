"""`synthmap worker`: jobs become releases, once each, whatever happens to the workers."""

import json
import os
import signal
import sqlite3
import stat
import time
from contextlib import closing

import polars as pl
import psutil
import pytest
import sites
from sqlalchemy import create_engine, text
from waiting import PATIENCE, wait_for

from pipelines.jobs.published import published
from pipelines.release import release
from synthmap.catalog.claims import ClaimLostError, may_publish
from synthmap.catalog.jobs import dismiss
from synthmap.errors import ReleaseError
from synthmap.release.verify import verify
from synthmap.spec import read_spec

MOMENTS = {
    "the table is read": "scratch/*/table-*/*.npy",
    "a part is drawn": "store/.partial-*/draws/draw-*",
    "the manifest is written": "store/.partial-*/manifest.json",
}
ALL = {"release", "epsilon", "delta", "workers", "destinations"}


@pytest.fixture
def make_site(make_spec, tmp_path, forks):
    """Set up a site over a database, with a dataset registered; workers, forks if not `real`, end with the test."""
    made = []

    def make(database=f"sqlite:///{tmp_path / 'catalog.sqlite'}", real=False, **changes):
        make_spec(**changes)
        made.append(sites.site(tmp_path, database, None if real else forks))
        made[-1].register(tmp_path / "spec.toml")
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def site(make_site):
    return make_site()


@pytest.fixture
def real_site(make_site):
    return make_site(real=True)


def test_a_job_becomes_the_release_that_it_named(make_site, database):
    site = make_site(database, real=True)
    job = site.submit(dataset=sites.DATASET, epsilon=3.0, segments=[], name="summer", title="A <b>title</b>")
    assert site.work() == {"successful": 1}
    done = site.job(job)
    assert (done.state, done.percent, done.release) == ("successful", 100, job.release)
    assert set(done.result) == ALL
    assert (done.result["release"], done.result["epsilon"], done.result["workers"]) == (job.release, 3.0, 3000)
    assert site.releases() == [job.release]
    assert verify(site.store / job.release).workers == 3000
    manifest = json.loads((site.store / job.release / "manifest.json").read_text())
    assert (manifest["name"], manifest["title"], manifest["segments"]) == ("summer", "A <b>title</b>", [])
    assert list(site.scratch.iterdir()) == []


def test_two_workers_share_the_jobs_and_each_is_run_once(make_site, database):
    site = make_site(database)
    jobs = [site.submit() for _ in range(3)]
    both = [site.worker("--once") for _ in range(2)]
    counts = [json.loads(one.communicate()[0])["successful"] for one in both]
    assert sum(counts) == 3
    assert site.log.count(": begun") == 3
    assert site.releases() == sorted(job.release for job in jobs)


@pytest.mark.parametrize("sign", MOMENTS.values(), ids=MOMENTS)
def test_a_job_whose_worker_was_killed_is_taken_up_and_published_once(make_site, sign):
    site = make_site(real=sign == MOMENTS["a part is drawn"])
    job = site.submit()
    with site.worker_at(sign) as killed:
        left = sites.children(killed)
        killed.kill()
        killed.wait()  # only then its job learns of it
        assert left
        assert site.job(job).state == "running"
    assert site.work() == {"successful": 1}
    assert psutil.wait_procs(left, timeout=PATIENCE)[1] == []
    assert site.releases() == [job.release]
    assert verify(site.store / job.release).release == site.job(job).result["release"] == job.release
    assert list(site.scratch.iterdir()) == []


def test_a_job_whose_process_was_killed_is_tried_again(site):
    job = site.submit()
    with site.worker_at(MOMENTS["the table is read"], "--once") as worker:
        (process,) = sites.children(worker)
        process.kill()
    assert json.loads(worker.communicate()[0])["successful"] == 1
    assert "ended with status -9" in site.log
    assert site.releases() == [job.release]
    assert list(site.scratch.iterdir()) == []


def freeze(site, processes):
    """Suspend processes when none of them is writing to the catalog: one that freezes there keeps all others out."""
    while True:
        for process in processes:
            process.suspend()
        with closing(sqlite3.connect(site.directory / "catalog.sqlite", timeout=0.1)) as probe:
            try:
                probe.execute("begin immediate")
            except sqlite3.OperationalError:
                for process in processes:
                    process.resume()
                time.sleep(0.02)  # it has to get on
            else:
                return


def test_a_frozen_worker_that_wakes_disturbs_nothing(site):
    job = site.submit()
    with site.worker_at(MOMENTS["a part is drawn"]) as zombie:
        asleep = [psutil.Process(zombie.pid), *sites.children(zombie)]
        freeze(site, asleep)
    assert site.work() == {"successful": 1}
    done, manifest = site.job(job), (site.store / job.release / "manifest.json").read_bytes()
    for process in asleep:
        process.resume()
    wait_for(lambda: "must still be held" in site.log)
    assert psutil.wait_procs(asleep[1:], timeout=PATIENCE)[1] == []
    assert site.job(job) == done
    assert site.releases() == [job.release]
    assert list(site.scratch.iterdir()) == []
    assert (site.store / job.release / "manifest.json").read_bytes() == manifest


def test_whoever_lost_the_job_while_it_worked_is_refused_before_it_publishes(site, tmp_path):
    job = site.submit()
    zombie = site.dead_worker()
    site.heir()
    spec = read_spec(tmp_path / "spec.toml")
    with pytest.raises(ClaimLostError):
        release(
            spec, scheduler="threads", name=job.release, before_publishing=lambda: may_publish(site.catalog, zombie)
        )
    assert site.releases() == []


def test_whoever_loses_the_job_after_it_was_allowed_to_publish_cannot_either(site, tmp_path):
    job = site.submit()
    zombie = site.dead_worker()

    def freeze():
        may_publish(site.catalog, zombie)
        assert site.heir().attempt == zombie.attempt + 1
        assert published(site.store, job.release) is None

    with pytest.raises(ReleaseError, match="must be renamed into the store"):
        release(read_spec(tmp_path / "spec.toml"), scheduler="threads", name=job.release, before_publishing=freeze)
    assert site.releases() == []


def test_a_release_that_is_in_the_store_is_a_success_without_running_again(site, tmp_path):
    """Its worker died after publishing and before saying so."""
    job = site.submit()
    dead = site.dead_worker()
    made = release(
        read_spec(tmp_path / "spec.toml"),
        scheduler="threads",
        name=job.release,
        before_publishing=lambda: may_publish(site.catalog, dead),
    )
    site.registry.unlink()  # nothing could be run
    before = (made.path / "manifest.json").read_bytes()
    assert site.work() == {"successful": 1}
    done = site.job(job)
    assert (done.result["release"], done.result["workers"], done.percent) == (job.release, 3000, 100)
    assert (made.path / "manifest.json").read_bytes() == before


def test_a_running_job_is_dismissed_and_leaves_nothing(site):
    job = site.submit()
    with site.worker_at(MOMENTS["the table is read"], "--once") as worker:
        dismiss(site.catalog, job.id)
    assert json.loads(worker.communicate()[0])["dismissed"] == 1
    done = site.job(job)
    assert (done.state, done.result) == ("dismissed", None)
    assert site.releases() == []
    assert list(site.scratch.iterdir()) == []


def test_a_process_that_does_not_end_when_told_is_killed(site):
    job = site.submit()
    with site.worker_at(MOMENTS["the table is read"], "--once", GRACE_SECONDS="0.5") as worker:
        (process,) = sites.children(worker)
        freeze(site, [process])
    dismiss(site.catalog, job.id)
    assert json.loads(worker.communicate()[0])["dismissed"] == 1
    assert not process.is_running()
    assert site.releases() == []


def test_a_job_that_was_dismissed_before_it_began_is_not_run(site):
    dismiss(site.catalog, site.submit().id)
    assert site.work() == {}
    assert site.releases() == []


def test_a_dismissed_job_of_a_dead_worker_is_not_run_again(site):
    job = site.submit()
    site.dead_worker()
    dismiss(site.catalog, job.id)
    assert site.work() == {"dismissed": 1}
    assert site.job(job).state == "dismissed"
    assert site.releases() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_worker_that_is_stopped_gives_its_job_back(make_site, number):
    site = make_site(real=number == signal.SIGTERM)
    job = site.submit()
    with site.worker_at(MOMENTS["the table is read"]) as worker:
        worker.send_signal(number)
    assert json.loads(worker.communicate()[0])["given_back"] == 1
    assert worker.returncode == 0
    back = site.job(job)
    assert (back.state, back.percent, back.started, back.release) == ("accepted", 0, None, job.release)
    assert list(site.scratch.iterdir()) == []
    assert site.releases() == []
    if number == signal.SIGTERM:
        assert site.work() == {"successful": 1}
        assert site.releases() == [job.release]


def test_an_idle_worker_stops_at_once_and_a_waiting_one_takes_new_jobs(site):
    worker = site.worker(POLL_SECONDS="0.2")
    job = site.submit("export", release="none", formats=["csv"])
    assert site.wait(job, "failed").message == "the release must be one of the store's"
    worker.terminate()
    assert worker.wait() == 0


def test_a_job_whose_workers_always_die_fails_in_the_end(site):
    job = site.submit()
    for _ in range(3):
        claimed = site.dead_worker() if site.job(job).state == "accepted" else site.heir()
    assert claimed.lost == 2
    assert site.work() == {"failed": 1}
    assert "lost 3 times" in site.job(job).message
    assert site.releases() == []


def test_a_failed_job_says_nothing_of_the_tables(make_site, tmp_path, make_spec, region):
    secret = tmp_path / "secret-ministry.csv"
    pl.read_parquet(region / "od.parquet").write_csv(secret)
    table = make_spec().tables[0].model_dump(exclude_none=True) | {"path": secret}
    site = make_site(segments=None, tables=[table])
    secret.write_text("origin,destination,count\nnobody-lives-here,4711,x\n")
    job = site.submit()
    assert site.work() == {"failed": 1}
    assert site.job(job).message.startswith("the dataset breaks a rule; the operator")
    assert "secret-ministry.csv" in site.log
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        stored = "\n".join(connection.iterdump())
    for secret in ("secret-ministry", "nobody-lives-here", "4711", str(tmp_path), "spec.toml"):
        assert secret not in stored


def test_inputs_that_do_not_fit_the_dataset_fail_with_a_fixed_text(site):
    job = site.submit(dataset=sites.DATASET, segments=["no-such-column"])
    assert site.work() == {"failed": 1}
    assert "no-such-column" not in site.job(job).message
    assert "no-such-column" in site.log


def test_a_dataset_that_left_the_registry_fails_at_once(site):
    job = site.submit()
    site.registry.unlink()
    assert site.work() == {"failed": 1}
    assert site.job(job).message == "the dataset must be in the registry of the worker; its operator adds it"


def test_measures_and_files_of_a_release_are_made_by_jobs(site):
    made = site.submit()
    measured = site.submit("evaluate", release=made.release, dataset=sites.DATASET)
    exported = site.submit("export", release=made.release, formats=["csv"])
    assert site.work() == {"successful": 3}
    path = site.store / ".metrics" / f"{made.release}.json"
    assert json.loads(path.read_text())["confidential"] is True
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert site.job(measured).result == {"release": made.release, "metrics": f".metrics/{made.release}.json"}
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    files = site.job(exported).result["files"]
    assert "flows.csv" in files
    written = {one.name for one in (site.store / ".exports").rglob("*") if one.is_file()}
    assert set(files) <= written


def test_a_database_that_goes_and_comes_back_costs_nothing(make_site, postgresql):
    import postgres

    with postgres.database(postgresql) as url:
        site = make_site(url)
        job = site.submit()
        name = url.rpartition("/")[2].partition("?")[0]
        engine = create_engine(postgresql, isolation_level="AUTOCOMMIT")
        with engine.connect() as admin:
            with site.worker_at(MOMENTS["the table is read"]):
                admin.execute(text(f"alter database {name} allow_connections false"))
                cut = text("select pg_terminate_backend(pid) from pg_stat_activity where datname = :name")
                admin.execute(cut, {"name": name})
            wait_for(lambda: "does not answer" in site.log)
            admin.execute(text(f"alter database {name} allow_connections true"))
        engine.dispose()
        done = site.wait(job, "successful", "failed")
        assert (done.state, done.result["release"]) == ("successful", job.release)
        assert site.releases() == [job.release]
        site.stop()


def test_the_order_of_a_job_shows_in_no_list_of_processes(real_site):
    site = real_site
    site.submit()
    with site.worker_at(MOMENTS["the table is read"]) as worker:
        (process,) = sites.children(worker)
        assert not [word for word in process.cmdline() if str(site.directory) in word]
        assert os.getpgid(process.pid) == process.pid
