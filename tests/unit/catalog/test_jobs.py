"""Jobs as the service sees them: public choices only, pages that stay right, dismissal at any time."""

import json
import re
import threading
from datetime import timedelta

import pytest

from synthmap.catalog import jobs as module
from synthmap.catalog.claims import claim, fail, succeed
from synthmap.catalog.jobs import State, dismiss, find_job, forget_jobs, list_jobs, now, submit
from synthmap.errors import JobFinishedError, NotFoundError, QueryError, RepeatedError

WEIRD = ["", "x", "0" * 31, "0" * 33, "g" * 32, "0" * 31 + "\n", "' or 1=1 --", "\x00" * 32, "é", "\ud800", "%" * 32]


def test_a_job_is_accepted_with_its_release_fixed(ready):
    job = submit(
        ready, "release", {"dataset": "ri-2019", "epsilon": 2, "title": "<b>Île</b> 'n' \"co\" 東京"}, owner="k"
    )
    assert job.state == State.ACCEPTED
    assert re.fullmatch(r"ri-2019-\d{8}T\d{6}Z-[0-9a-f]{16}", job.release)
    assert (job.percent, job.result, job.started, job.finished, job.owner) == (0, None, None, None, "k")
    assert job.created.utcoffset().total_seconds() == 0
    assert find_job(ready, job.id) == job
    assert job.inputs["title"] == "<b>Île</b> 'n' \"co\" 東京"


def test_a_name_of_its_own_begins_the_release(asked):
    assert asked(name="summer").release.startswith("summer-")


def test_two_jobs_never_make_the_same_release(asked):
    assert asked().release != asked().release


BAD = {
    "a path as dataset": {"dataset": "/etc/passwd"},
    "a way up": {"dataset": "../ri-2019"},
    "no dataset": {"dataset": None},
    "an unknown input": {"store": "elsewhere"},
    "a scratch": {"run": {"scratch": "x"}},
    "a seed": {"seed": 1},
    "epsilon 0": {"epsilon": 0},
    "epsilon nan": {"epsilon": float("nan")},
    "epsilon inf": {"epsilon": float("inf")},
    "epsilon as text": {"epsilon": "4"},
    "epsilon as truth": {"epsilon": True},
    "delta 1": {"delta": 1.0},
    "keep 0": {"keep": 0.0},
    "cells 0": {"cells": 0},
    "cells huge": {"cells": 10**30},
    "rule unknown": {"rule": "none"},
    "a name with a slash": {"name": "a/b"},
    "a name that is hidden": {"name": ".a"},
    "a name of two lines": {"name": "a\n"},
    "a title with a zero byte": {"title": "a\x00"},
    "a title of two lines": {"title": "a\nb"},
    "a title of half a character": {"title": "\ud800"},
    "a title without end": {"title": "x" * 10_000},
    "segments without names": {"segments": [""]},
    "very many segments": {"segments": ["x"] * 101},
}


@pytest.mark.parametrize("inputs", BAD.values(), ids=BAD)
def test_bad_inputs_are_one_clear_error(ready, inputs):
    with pytest.raises(QueryError, match="inputs of process release must follow their schema") as caught:
        submit(ready, "release", {"dataset": "ri-2019", **inputs})
    str(caught.value).encode()
    assert list_jobs(ready, limit=10) == []


@pytest.mark.parametrize("process", ["evaluate", "export"])
@pytest.mark.parametrize("release", ["../x", ".partial-x", "/x", "a/b", "", "x\x00", "x\n"])
def test_a_release_is_named_without_any_path(ready, process, release):
    more = {"dataset": "ri-2019"} if process == "evaluate" else {"formats": ["csv"]}
    with pytest.raises(QueryError, match="schema"):
        submit(ready, process, {"release": release, **more})


def test_what_one_job_releases_another_can_be_asked_for(ready, asked):
    name = asked(name="x" * 64).release
    assert submit(ready, "export", {"release": name, "formats": ["matrix-a%20b~.omx"]}).release == name
    assert submit(ready, "evaluate", {"release": name, "dataset": "ri-2019"}).release == name


def test_unknown_processes_and_datasets_are_not_found(ready):
    with pytest.raises(NotFoundError, match="process"):
        submit(ready, "delete", {})
    with pytest.raises(NotFoundError, match="dataset"):
        submit(ready, "release", {"dataset": "other"})
    with pytest.raises(NotFoundError, match="dataset"):
        submit(ready, "evaluate", {"dataset": "other", "release": "r"})


@pytest.mark.parametrize("id", WEIRD)
def test_an_unknown_job_is_not_found_whatever_its_id(ready, id):
    for ask in (lambda: find_job(ready, id), lambda: dismiss(ready, id), lambda: list_jobs(ready, limit=1, after=id)):
        with pytest.raises(NotFoundError):
            ask()


def test_pages_are_newest_first_and_stay_right_while_jobs_come_in(asked, ready):
    made = [asked().id for _ in range(5)]
    first = list_jobs(ready, limit=2)
    made.append(asked().id)
    second = list_jobs(ready, limit=2, after=first[-1].id)
    third = list_jobs(ready, limit=9, after=second[-1].id)
    assert [job.id for job in first + second + third] == made[-2::-1]
    assert list_jobs(ready, limit=9, after=made[0]) == []


def test_lists_are_filtered(asked, ready):
    first, second = asked(), asked()
    export = submit(ready, "export", {"release": "r", "formats": ["csv"]})
    dismiss(ready, first.id)
    assert [job.id for job in list_jobs(ready, limit=9, process="export")] == [export.id]
    assert [job.id for job in list_jobs(ready, limit=9, state="accepted", process="release")] == [second.id]
    assert [job.id for job in list_jobs(ready, limit=9, state="dismissed")] == [first.id]
    for wrong in ({"process": "x\x00"}, {"state": "asleep"}):
        with pytest.raises(QueryError):
            list_jobs(ready, limit=9, **wrong)


def test_a_job_that_nobody_has_is_dismissed_at_once_and_never_run(asked, ready):
    job = dismiss(ready, asked().id)
    assert job.state == State.DISMISSED
    assert job.finished is not None
    assert claim(ready, lease_seconds=9) is None


def test_a_running_job_is_asked_to_stop_and_asked_twice_is_no_error(asked, ready):
    job = asked()
    claim(ready, lease_seconds=9)
    for _ in range(2):
        found = dismiss(ready, job.id)
        assert (found.state, found.message) == (State.RUNNING, "is being stopped")


@pytest.mark.parametrize("end", ["dismissed", "failed", "successful"])
def test_what_is_finished_cannot_be_dismissed(asked, ready, end):
    job = asked()
    if end == "dismissed":
        dismiss(ready, job.id)
    else:
        held = claim(ready, lease_seconds=9)
        fail(ready, held, "no") if end == "failed" else succeed(ready, held, {"release": "r"})
    before = find_job(ready, job.id)
    with pytest.raises(JobFinishedError, match=end):
        dismiss(ready, job.id)
    assert find_job(ready, job.id) == before


def test_a_job_is_plain_values(asked):
    job = asked(segments=["SA01"], cells="auto", keep=0.5)
    assert json.loads(json.dumps(job.inputs)) == job.inputs
    assert job.inputs == {"dataset": "ri-2019", "segments": ["SA01"], "cells": "auto", "keep": 0.5}


def test_a_request_sent_again_under_its_name_is_the_same_job(ready):
    inputs = {"dataset": "ri-2019", "epsilon": 2.0}
    first = submit(ready, "release", inputs, owner="k", once="monday")
    assert submit(ready, "release", inputs, owner="k", once="monday") == first
    with pytest.raises(RepeatedError):
        submit(ready, "release", {"dataset": "ri-2019"}, owner="k", once="monday")
    others = [submit(ready, "release", inputs, owner="l", once="monday"), submit(ready, "release", inputs, owner="k")]
    assert len({first.id, *(job.id for job in others)}) == 3


def test_requests_that_race_under_one_name_are_one_job(ready):
    barrier, found = threading.Barrier(5), []

    def send():
        barrier.wait()
        found.append(submit(ready, "release", {"dataset": "ri-2019"}, owner="k", once="x").id)

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 5
    assert len(set(found)) == 1


def test_jobs_of_long_ago_are_forgotten_but_never_the_newest_nor_one_that_goes_on(ready, asked, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    jobs = [asked() for _ in range(5)]
    for job in (jobs[0], jobs[2], jobs[3]):
        dismiss(ready, job.id)
    assert forget_jobs(ready, ended_before=now() - timedelta(days=1)) == 0
    assert forget_jobs(ready, ended_before=now() + timedelta(days=36_500)) == 2  # a clock that jumped
    assert [job.id for job in list_jobs(ready, limit=9)] == [jobs[i].id for i in (4, 3, 1)]
    assert forget_jobs(ready, ended_before=now() + timedelta(days=1)) == 0
