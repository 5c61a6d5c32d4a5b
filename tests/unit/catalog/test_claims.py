"""Two workers never have one job, a dead one loses nothing, and a zombie can neither report nor publish."""

import json
import subprocess
import sys
import threading

import pytest

from synthmap.catalog.claims import (
    ATTEMPTS,
    ClaimLostError,
    Watch,
    beat,
    claim,
    fail,
    give_back,
    held,
    may_publish,
    succeed,
)
from synthmap.catalog.database import open_catalog
from synthmap.catalog.jobs import State, dismiss, find_job

LEASE = 10.0


class Clock:
    """A monotonic clock that tests move."""

    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watch(ready, clock):
    return Watch(ready, clock)


@pytest.fixture
def abandoned(ready, watch, clock):
    """Let another worker take a running job over, as after the death of its worker."""

    def take():
        assert watch.take_over(lease_seconds=LEASE) is None
        clock.time += LEASE
        found = watch.take_over(lease_seconds=LEASE)
        assert found is not None
        return found

    return take


def refused(*actions):
    for action in actions:
        with pytest.raises(ClaimLostError):
            action()


def all_of(ready, lost):
    """Everything a worker may do with a claim."""
    return (
        lambda: beat(ready, lost),
        lambda: may_publish(ready, lost),
        lambda: succeed(ready, lost, {"release": "mine"}),
        lambda: fail(ready, lost, "mine"),
        lambda: give_back(ready, lost),
        lambda: give_back(ready, lost, lost=True),
        lambda: held(ready, lost.job.id, lost.attempt),
    )


def test_jobs_are_claimed_oldest_first_each_once(asked, ready):
    jobs = [asked().id for _ in range(3)]
    assert [claim(ready, lease_seconds=LEASE).job.id for _ in jobs] == jobs
    assert claim(ready, lease_seconds=LEASE) is None
    assert find_job(ready, jobs[0]).state == State.RUNNING
    assert find_job(ready, jobs[0]).started is not None


CLAIM_ALL = """
import json, sys
from synthmap.catalog.claims import claim
from synthmap.catalog.database import open_catalog
catalog = open_catalog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
found = []
while (one := claim(catalog, lease_seconds=60)) is not None:
    found.append(one.job.id)
print(json.dumps(found))
"""


def test_processes_that_race_share_the_jobs_and_none_is_had_twice(asked, database):
    jobs = [asked().id for _ in range(60)]
    line = [sys.executable, "-c", CLAIM_ALL, database]
    racing = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for process in racing:
        process.stdout.readline()
    for process in racing:
        process.stdin.write(b"\n")
        process.stdin.flush()
    claimed = [json.loads(process.communicate()[0]) for process in racing]
    assert sorted(job for each in claimed for job in each) == sorted(jobs)


def test_threads_that_race_for_an_abandoned_job_share_it_too(asked, ready, clock):
    asked()
    claim(ready, lease_seconds=LEASE)
    watches = [Watch(ready, clock) for _ in range(6)]
    for watch in watches:
        watch.take_over(lease_seconds=LEASE)
    clock.time += LEASE
    barrier, found = threading.Barrier(len(watches)), []

    def race(watch):
        barrier.wait()
        found.append(watch.take_over(lease_seconds=LEASE))

    threads = [threading.Thread(target=race, args=[watch]) for watch in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.attempt for one in found if one is not None] == [2]


def test_a_job_whose_worker_shows_life_is_left_to_it(asked, ready, watch, clock):
    asked()
    mine = claim(ready, lease_seconds=LEASE)
    assert watch.take_over(lease_seconds=LEASE) is None
    assert watch.undecided
    for _ in range(20):
        beat(ready, mine)
        clock.time += LEASE - 1
        assert watch.take_over(lease_seconds=LEASE) is None
        assert not watch.undecided


def test_the_lease_is_that_of_the_worker_that_holds_it(asked, ready, watch, clock):
    asked()
    claim(ready, lease_seconds=1000.0)
    watch.take_over(lease_seconds=1.0)
    clock.time += 999
    assert watch.take_over(lease_seconds=1.0) is None
    clock.time += 1
    assert watch.take_over(lease_seconds=1.0) is not None


def test_a_sign_of_life_at_the_last_moment_counts(asked, ready, watch, clock, monkeypatch):
    """The worker may show life between the look of another one and its grasp."""
    asked()
    mine = claim(ready, lease_seconds=LEASE)
    watch.take_over(lease_seconds=LEASE)
    clock.time += LEASE
    grasp = watch._take
    monkeypatch.setattr(watch, "_take", lambda *words: (beat(ready, mine), grasp(*words))[1])
    assert watch.take_over(lease_seconds=LEASE) is None
    assert succeed(ready, mine, {"release": "r"}) == State.SUCCESSFUL


def test_an_abandoned_job_keeps_its_release_and_its_zombie_is_refused_everything(asked, ready, abandoned):
    job = asked()
    zombie = claim(ready, lease_seconds=LEASE)
    beat(ready, zombie, "draw", 70)
    heir = abandoned()
    assert (heir.job.id, heir.job.release, heir.attempt, heir.lost) == (job.id, job.release, 2, 1)
    assert (heir.job.stage, heir.job.percent) == ("", 0)
    refused(*all_of(ready, zombie))
    may_publish(ready, heir)
    assert find_job(ready, job.id).stage == "publish"
    succeed(ready, heir, {"release": job.release})
    done = find_job(ready, job.id)
    assert (done.state, done.percent, done.result) == (State.SUCCESSFUL, 100, {"release": job.release})
    refused(*all_of(ready, zombie), *all_of(ready, heir))
    assert find_job(ready, job.id) == done


def test_a_job_that_was_given_back_is_no_longer_held(asked, ready):
    job = asked()
    first = claim(ready, lease_seconds=LEASE)
    assert give_back(ready, first) == State.ACCEPTED
    assert find_job(ready, job.id).started is None
    refused(*all_of(ready, first))
    second = claim(ready, lease_seconds=LEASE)
    assert (second.attempt, second.lost, second.job.release) == (2, 0, job.release)
    refused(*all_of(ready, first))


def test_giving_back_in_good_order_is_no_loss_however_often(asked, ready):
    asked()
    for _ in range(3 * ATTEMPTS):
        assert give_back(ready, claim(ready, lease_seconds=LEASE)) == State.ACCEPTED


def test_a_job_that_kills_every_process_fails_in_the_end(asked, ready):
    job = asked()
    states = [give_back(ready, claim(ready, lease_seconds=LEASE), lost=True) for _ in range(ATTEMPTS)]
    assert states == [State.ACCEPTED] * (ATTEMPTS - 1) + [State.FAILED]
    assert "lost 3 times" in find_job(ready, job.id).message


def test_a_job_that_kills_every_worker_is_known_to_the_next(asked, ready, abandoned):
    job = asked()
    claim(ready, lease_seconds=LEASE)
    heirs = [abandoned() for _ in range(ATTEMPTS)]
    assert [one.lost for one in heirs] == [1, 2, 3]
    assert give_back(ready, heirs[-1]) == State.FAILED
    assert "lost 3 times" in find_job(ready, job.id).message


def test_a_dismissed_job_may_not_publish(asked, ready):
    job = asked()
    mine = claim(ready, lease_seconds=LEASE)
    assert beat(ready, mine) is False
    dismiss(ready, job.id)
    assert beat(ready, mine) is True
    refused(lambda: may_publish(ready, mine))
    assert give_back(ready, mine, lost=True) == State.DISMISSED
    done = find_job(ready, job.id)
    assert (done.state, done.result) == (State.DISMISSED, None)
    assert claim(ready, lease_seconds=LEASE) is None


def test_what_was_published_before_the_dismissal_is_successful(asked, ready):
    job = asked()
    mine = claim(ready, lease_seconds=LEASE)
    may_publish(ready, mine)
    dismiss(ready, job.id)
    assert succeed(ready, mine, {"release": job.release}) == State.SUCCESSFUL


def test_whoever_takes_over_a_dismissed_job_is_told(asked, ready, abandoned):
    job = asked()
    claim(ready, lease_seconds=LEASE)
    dismiss(ready, job.id)
    heir = abandoned()
    assert heir.stop
    assert find_job(ready, job.id).message == "is being stopped"
    assert give_back(ready, heir) == State.DISMISSED


def test_progress_never_goes_back_and_publishing_shows(asked, ready):
    job = asked()
    mine = claim(ready, lease_seconds=LEASE)
    seen = []
    for stage, percent in [("read", 20), ("plan", 10), ("draw", 70)]:
        beat(ready, mine, stage, percent)
        found = find_job(ready, job.id)
        seen.append((found.stage, found.percent))
    may_publish(ready, mine)
    beat(ready, mine, "draw", 80)
    found = find_job(ready, job.id)
    assert seen == [("read", 20), ("plan", 20), ("draw", 70)]
    assert (found.stage, found.percent) == ("publish", 99)


def test_a_claim_on_one_row_does_not_hold_up_the_next(postgresql):
    """On PostgreSQL a worker steps over the row that another one is just taking."""
    import postgres
    from sqlalchemy import select

    from synthmap.catalog.jobs import submit
    from synthmap.catalog.tables import JobRow

    with postgres.database(postgresql) as url:
        catalog = open_catalog(url)
        jobs = [submit(catalog, "export", {"release": "r", "formats": ["csv"]}).id for _ in range(2)]
        with catalog.write() as session:
            session.scalar(select(JobRow).where(JobRow.id == jobs[0]).with_for_update())
            assert claim(catalog, lease_seconds=LEASE).job.id == jobs[1]
            assert claim(catalog, lease_seconds=LEASE) is None
        assert claim(catalog, lease_seconds=LEASE).job.id == jobs[0]
        catalog.close()
