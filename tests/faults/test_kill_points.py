"""SIGKILL at every step that a job and its worker do to files and to the catalog, and at random instants.

After each: no half release, none that is not in the ledger, nothing spent twice; the next worker makes the same
release. But for who is killed between the mark that a release may have been shown and the rename that shows it: its
job fails, since nothing is drawn twice for one payment.
"""

import itertools
import random

import postgres
import pytest
from invariants import finished_once, left, published, spent_for_nothing, spent_on
from waiting import wait_for

CHUNKS = 10  # spread over the processes that run the tests
# what is asserted here and in test_kill_commands.py adds up to more than 200 deaths, even without PostgreSQL:
# 120 + 26 + 20 + 8, and 30


def survives(forks, site, asked, **fault):
    """Let a worker meet a fault, look at the site, let the next worker go on; return at which step it was killed."""
    order = {"directory": site.directory, "database": site.database}
    ended = forks.run(**order, **fault)
    before, paid = published(site), spent_on(site).get(asked.release)
    assert paid in (None, ["release"], ["release", "drawing"])
    again = forks.run(**order)
    assert again.status == 0, site.log
    assert published(site).items() >= before.items()  # what was there is as it was
    lost = asked.release in spent_for_nothing(site)
    assert site.job(asked).state == ("failed" if lost else "successful"), site.log
    assert not lost or site.job(asked).message.startswith("an earlier attempt may have shown the release")
    assert spent_on(site)[asked.release] == ["release", "drawing"]
    wait_for(lambda: left(site) == [])
    assert "Traceback" not in site.log, site.log
    return ended.faults[0] if ended.faults else None


def walk(forks, site, who, numbers, *, both=False):
    """Kill `who` at each step of `numbers` until nothing is left to be killed; return the steps."""
    jobs, killed = [], []
    for number in numbers:
        jobs.append(site.submit())
        step = survives(forks, site, jobs[-1], **{who: ["kill", number]}, both=both)
        if step is None:
            break
        killed.append(step)
    finished_once(site, not_lost(site, jobs))
    return killed


def not_lost(site, jobs):
    """Return the jobs but those that were killed between mark and rename; these are few."""
    lost = spent_for_nothing(site)
    assert len(lost) <= 3
    return [job for job in jobs if job.release not in lost]


@pytest.mark.parametrize("chunk", range(1, CHUNKS + 1))
def test_job_and_worker_killed_at_every_step_of_the_job(forks, make_site, chunk):
    killed = walk(forks, make_site(), "job", itertools.count(chunk, CHUNKS), both=True)
    assert len(killed) >= 12


def test_a_job_killed_at_its_steps_is_tried_again_by_its_worker(forks, make_site):
    assert len(walk(forks, make_site(), "job", itertools.count(2, 4))) >= 26


@pytest.mark.parametrize("both", [False, True], ids=["alone", "with its job"])
def test_a_worker_killed_at_its_steps(forks, make_site, both):
    assert len(walk(forks, make_site(), "worker", range(1, 40, 3), both=both)) >= 10


@pytest.mark.parametrize("chunk", range(2))
def test_killed_at_random_instants(forks, make_site, chunk):
    site, draw, jobs = make_site(), random.Random(chunk), []
    killed = 0
    for _ in range(10):
        jobs.append(site.submit())
        fault = draw.choice([{"job": "", "both": True}, {"job": ""}, {"worker": "", "both": True}, {"worker": ""}])
        seconds = draw.uniform(0, 0.35)
        fault = {key: ["after", seconds] if value == "" else value for key, value in fault.items()}
        killed += survives(forks, site, jobs[-1], **fault) is not None
    finished_once(site, not_lost(site, jobs))
    assert killed >= 4


@pytest.mark.parametrize("who", ["job", "worker"])
def test_killed_over_postgresql(forks, make_site, postgresql, who):
    with postgres.database(postgresql) as url:
        site = make_site(url)
        numbers = {"job": itertools.count(1, 12), "worker": range(2, 40, 4)}[who]  # a worker goes on as long as its job
        killed = walk(forks, site, who, numbers, both=True)
        site.stop()
    assert len(killed) >= 8
