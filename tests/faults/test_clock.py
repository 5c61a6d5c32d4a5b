"""Wall clocks that jump between any two steps of a job: one owner, one charge, one release, whatever they say."""

import signal
import time
from datetime import timedelta

import clocks
import pytest
from invariants import finished_once, left
from losses import CONTENT, loss

from pipelines.leftovers import clear_old_jobs
from synthmap.catalog import claims
from synthmap.catalog.claims import ClaimLostError, Watch
from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.jobs import State, find_job, submit
from synthmap.catalog.ledger import begin_drawing, read_account, set_budget, spend

LEASE = 10.0
JUMPS = {"a year on": timedelta(days=366), "a day back": timedelta(days=-1), "to 1970": timedelta(days=-20_000)}
STEPS = ["claim", "beat", "spend", "draw", "publish", "finish"]


@pytest.fixture
def wall(monkeypatch):
    """Move the wall clock of everything that synthmap has loaded; no test's own, and no monotonic one."""
    return clocks.wall(monkeypatch.setattr).move


@pytest.fixture
def asked(catalog):
    """A job for a dataset whose budget is enough for one release."""
    put_dataset(catalog, Dataset("ri", "Rhode Island", (), (), "2010"))
    set_budget(catalog, "ri", 1, 0)
    return submit(catalog, "release", {"dataset": "ri"}, owner="ada", once="once")


class Worker:
    """The steps of a worker, one after the other."""

    def __init__(self, catalog, release, found=None):
        self.catalog, self.release, self.found = catalog, release, found

    def do(self, step):
        if step == "claim":
            self.found = self.found or claims.claim(self.catalog, lease_seconds=LEASE)
        elif step == "beat":
            claims.beat(self.catalog, self.found, "read", 10)
        elif step == "spend":
            spend(self.catalog, "ri", self.release, loss(1.0), CONTENT, job=self.found.job.id)
        elif step == "draw":
            begin_drawing(self.catalog, "ri", self.release)
        elif step == "publish":
            claims.may_publish(self.catalog, self.found)
        else:
            claims.succeed(self.catalog, self.found, {"release": self.release})


def kinds(catalog):
    return [entry.body.kind for entry in read_account(catalog, "ri").entries]


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
@pytest.mark.parametrize("before", STEPS)
def test_a_jump_takes_no_job_from_who_holds_it_and_charges_nothing_twice(catalog, asked, wall, jump, before):
    seconds = iter(range(1000))  # a monotonic second between two looks: never a whole lease
    watch, worker = Watch(catalog, lambda: float(next(seconds))), Worker(catalog, asked.release)
    for step in STEPS:
        if step == before:
            wall(jump)
        worker.do(step)
        assert claims.claim(catalog, lease_seconds=LEASE) is None
        assert watch.take_over(lease_seconds=LEASE) is None
    assert kinds(catalog) == ["budget", "release", "drawing"]
    assert read_account(catalog, "ri").spent == (1, 0)
    job = find_job(catalog, asked.id)
    assert job.state is State.SUCCESSFUL
    assert abs(job.finished - job.created - jump) < timedelta(hours=1)  # it did jump
    assert clear_old_jobs(catalog, keep_days=90) == 0
    again = submit(catalog, "release", {"dataset": "ri"}, owner="ada", once="once")
    assert again.id == asked.id  # sent again by a client whose answer was lost: not a second job, so no second loss


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
@pytest.mark.parametrize("died_after", STEPS[:-1])
def test_a_dead_worker_s_job_goes_on_after_its_lease_and_only_the_heir_publishes(
    catalog, asked, wall, jump, died_after
):
    dead, heirs, moment = Worker(catalog, asked.release), [], 0.0
    for step in STEPS[: STEPS.index(died_after) + 1]:
        dead.do(step)
    watches = [Watch(catalog, lambda: moment) for _ in range(2)]
    for seconds in (0.0, 0.9 * LEASE, 1.1 * LEASE):
        moment = seconds
        wall(jump)
        heirs += [found for watch in watches if (found := watch.take_over(lease_seconds=LEASE)) is not None]
        assert len(heirs) == (seconds > LEASE)
    heir = Worker(catalog, asked.release, heirs[0])
    for step in STEPS:
        wall(jump)
        heir.do(step)
        for late in ("beat", "publish", "finish"):
            with pytest.raises(ClaimLostError):
                dead.do(late)
    assert kinds(catalog) == ["budget", "release", "drawing"]
    assert read_account(catalog, "ri").spent == (1, 0)
    assert find_job(catalog, asked.id).state is State.SUCCESSFUL


STEPS_OF_CLOCKS = [JUMPS[name].total_seconds() for name in ("a year on", "a day back", "a day back", "to 1970")]
JUMPING = [*STEPS_OF_CLOCKS, -sum(STEPS_OF_CLOCKS)]


def test_of_two_real_workers_whose_clocks_keep_jumping_one_carries_each_job_out(forks, make_site, database):
    """One has a job, the other waits for it to be abandoned; their clocks never agree, nor do those of their jobs."""
    site = make_site(database)
    order = {"directory": site.directory, "database": site.database, "stays": True}
    order["settings"] = {"lease_seconds": 20.0}
    jobs = [site.submit() for _ in range(2)]
    workers = [forks.start(**order, clock=clock) for clock in (JUMPING, JUMPING[::-1])]
    for job in jobs:
        site.wait(job, "successful")
    assert [worker.kill(signal.SIGTERM).status for worker in workers] == [0, 0], site.log
    assert site.log.count(": begun") == len(jobs), site.log
    finished_once(site, jobs)
    assert left(site) == []
    ends = [moment for job in map(site.job, jobs) for moment in (job.created, job.finished)]
    assert max(ends) - min(ends) > timedelta(hours=12)  # they did jump


@pytest.mark.parametrize(("who", "numbers"), [("job", (9, 40, 75)), ("worker", (5, 12))])
def test_a_real_worker_takes_over_from_one_that_died_whatever_their_clocks_say(forks, make_site, who, numbers):
    site, jobs = make_site(), []
    order = {"directory": site.directory, "database": site.database}
    for number in numbers:
        jobs.append(site.submit())
        dead = forks.run(**order, clock=JUMPING, **{who: ["kill", number]}, both=True)
        assert dead.faults, site.log
        assert site.job(jobs[-1]).state != "successful" or who == "worker"
        begun = time.monotonic()
        assert forks.run(**order, clock=JUMPING[::-1]).status == 0, site.log
        assert time.monotonic() - begun < 60, "it waited for a wall clock"
    finished_once(site, jobs)
    assert left(site) == []
