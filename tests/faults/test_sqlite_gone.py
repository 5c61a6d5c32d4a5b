"""A catalog of SQLite that goes away under service and worker and comes back: refusals meanwhile, nothing twice after.

The file is moved away, another process writes for longer than anybody waits, or nothing of the site can be written.
"""

import sqlite3
import time
from contextlib import contextmanager

import pytest
from invariants import finished_once, left, published, spent_on
from served import Served
from waiting import wait_for

from synthmap.catalog.jobs import list_jobs
from synthmap.catalog.keys import Role, add_key

BUSY = 0.1  # seconds that a writer waits here
LONG = 0.8


@contextmanager
def moved(site):
    path = site.directory / "catalog.sqlite"
    path.rename(path.with_name("away"))
    try:
        yield
        assert not path.exists()
    finally:
        path.with_name("away").rename(path)


@contextmanager
def locked(site):
    connection = sqlite3.connect(site.directory / "catalog.sqlite", isolation_level=None, timeout=30)
    connection.execute("begin immediate")
    try:
        yield
    finally:
        connection.close()


@contextmanager
def unwritable(site):
    places = [site.directory, *(path for path in (site.store, site.scratch) if path.exists())]
    files = list(site.directory.glob("catalog.sqlite*"))
    modes = {path: path.stat().st_mode for path in places + files}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


OUTAGES = {"moved away": moved, "locked": locked, "unwritable": unwritable}


@pytest.fixture
def order(make_site):
    site = make_site()
    return site, {"directory": site.directory, "database": site.database, "busy": BUSY, "plain": True}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_a_worker_waits_for_its_catalog_and_the_job_is_made_once(forks, order, outage):
    """It goes when a job has just begun, before it pays and after it has drawn."""
    site, common = order
    held, jobs = site.directory.with_name(f"{site.directory.name}.held"), []
    for number in (2, 25, 70):
        jobs.append(site.submit())
        worker = forks.start(**common, job=["hold", number])
        wait_for(held.exists)
        with outage(site):
            held.unlink()
            time.sleep(LONG)
        ended = worker.wait()
        assert ended.faults, "there are not that many steps"
        assert ended.status == 0, site.log
        if site.job(jobs[-1]).state == "failed":  # nothing could be written for as long as all its attempts took
            assert outage is unwritable
            assert "was lost 3 times" in site.job(jobs[-1]).message
            assert spent_on(site).get(jobs[-1].release, []) in ([], ["release", "refund"], ["release", "drawing"])
            assert jobs.pop().release not in published(site)
    jobs.append(site.submit())
    assert forks.run(**common).status == 0, site.log
    assert "Traceback" not in site.log, site.log
    assert [site.job(job).state for job in jobs] == ["successful"] * len(jobs)
    if outage is not unwritable:
        finished_once(site, jobs)
        assert len(jobs) == 4
    assert left(site) == []


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_a_service_refuses_meanwhile_and_goes_on_afterwards(forks, order, outage):
    site, common = order
    site.submit()
    assert forks.run(**common).status == 0, site.log
    (made,) = published(site)
    served = Served(forks, site, add_key(site.catalog, "test", Role.CURATOR))
    service = served.start(busy=BUSY, plain=True)
    asked = [served.submit("before")]
    with outage(site):
        answer = served.submit("meanwhile")
        assert answer[0] == 201 if outage is unwritable else answer[0] == 503, answer  # what is open stays so
        time.sleep(1.1)  # the last answer about the catalog is kept for a second
        assert served.ask("GET", "/readyz")[0] == (503 if outage is moved else 200)
        assert served.ask("GET", f"/releases/{made}/downloads/manifest.json")[0] in (200, 503)
        line = ["serve", "--store", site.store, "--database", site.database, "--port", "0"]
        if outage is moved:  # one that starts now does not make another catalog
            assert forks.run(**common, command=[str(word) for word in line]).status == 2, site.log
    asked += [wait_for(lambda: accepted(served, "meanwhile")), served.submit("after")]
    for job in [*asked, served.submit("before")]:
        assert job[0] == 201
        assert served.ask("GET", f"/jobs/{job[1]}")[0] == 200
    assert served.submit("before") == asked[0]
    assert {job.id for job in list_jobs(site.catalog, limit=100)[:-1]} == {job for _, job in asked}
    assert served.ask("GET", f"/releases/{made}/downloads/manifest.json") == (200, published(site)[made])
    served.stop(service)
    assert "Traceback" not in site.log, site.log


def accepted(served, name):
    """Return the answer to a request once it is taken; a catalog that was down is not asked for a second."""
    answer = served.submit(name)
    return answer if answer[0] == 201 else None
