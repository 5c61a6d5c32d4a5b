"""Jobs: told as OGC API – Processes wants it, to curators only, from the trigger to what was made."""

import json
import shutil
from datetime import datetime, timedelta, timezone

import pytest
from bearer import bearer

from pipelines.registry import register
from synthmap.catalog import claims
from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.jobs import submit
from synthmap.catalog.keys import Role
from synthmap.catalog.ledger import set_budget
from synthmap.release.manifest import read_manifest

TYPES = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0"
NOBODY = "0" * 32


class Curator:
    """A curator at a service with a dataset, and the worker behind it."""

    def __init__(self, client):
        self.client, self.headers = client, bearer(client)
        self.catalog = client.app.state.service.catalog
        put_dataset(self.catalog, Dataset("ri", "RI", (), ("county",), "2010"))

    def get(self, path, **query):
        return self.client.get(path, params=query or None, headers=self.headers)

    def dismiss(self, job):
        return self.client.delete(f"/jobs/{job}", headers=self.headers)

    def submit(self, process="release", **inputs):
        return submit(self.catalog, process, inputs or {"dataset": "ri"}).id

    def claim(self):
        return claims.claim(self.catalog, lease_seconds=60)


@pytest.fixture
def curator(client):
    return Curator(client)


def test_a_job_is_told_as_it_goes(curator):
    job = curator.submit(dataset="ri", epsilon=2.0)
    found = curator.get(f"/jobs/{job}").json()
    assert (found["jobID"], found["processID"], found["type"], found["status"]) == (
        job,
        "release",
        "process",
        "accepted",
    )
    assert "started" not in found and "finished" not in found
    assert datetime.fromisoformat(found["created"]).utcoffset() == timedelta(0)
    held = curator.claim()
    claims.beat(curator.catalog, held, "draw", 62)
    found = curator.get(f"/jobs/{job}").json()
    assert (found["status"], found["progress"]) == ("running", 62)
    assert found["message"].startswith("draw")
    assert found["inputs"] == {"dataset": "ri", "epsilon": 2.0}
    claims.fail(curator.catalog, held, "no noise meets these parameters")
    found = curator.get(f"/jobs/{job}").json()
    assert (found["status"], found["message"]) == ("failed", "no noise meets these parameters")
    assert found["created"] <= found["started"] <= found["finished"]
    assert [one["rel"] for one in found["links"]] == ["self"]


@pytest.mark.parametrize("job", [NOBODY, "none", "%27%20or%201=1", "F" * 32, "a" * 3_000])
def test_no_such_job(curator, job):
    for answer in (curator.get(f"/jobs/{job}"), curator.get(f"/jobs/{job}/results"), curator.dismiss(job)):
        assert answer.status_code == 404
        assert answer.json()["type"] == f"{TYPES}/no-such-job"
        assert answer.headers["cache-control"] == "no-store"


def test_results_are_not_ready_until_they_are(curator):
    job = curator.submit()
    for claim in (lambda: None, curator.claim):
        held = claim()
        answer = curator.get(f"/jobs/{job}/results")
        assert answer.status_code == 404
        assert answer.json()["type"] == f"{TYPES}/result-not-ready"
    claims.fail(curator.catalog, held, "the dataset breaks a rule")
    answer = curator.get(f"/jobs/{job}/results")
    assert answer.status_code == 409
    assert "the dataset breaks a rule" in answer.json()["detail"]


def test_a_waiting_job_is_dismissed_at_once_and_again(curator):
    job = curator.submit()
    for _ in range(2):
        answer = curator.dismiss(job)
        assert answer.status_code == 200
        assert (answer.json()["jobID"], answer.json()["status"]) == (job, "dismissed")
    assert curator.get(f"/jobs/{job}/results").status_code == 410
    assert curator.claim() is None


def test_a_running_job_is_told_to_stop(curator):
    job = curator.submit()
    held = curator.claim()
    answer = curator.dismiss(job)
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert "stopped" in answer.json()["message"]
    assert claims.beat(curator.catalog, held)  # the worker hears of it
    with pytest.raises(claims.ClaimLostError):
        claims.may_publish(curator.catalog, held)
    claims.give_back(curator.catalog, held)
    assert curator.get(f"/jobs/{job}").json()["status"] == "dismissed"


def test_a_finished_job_cannot_be_dismissed(curator):
    job = curator.submit()
    held = curator.claim()
    claims.fail(curator.catalog, held, "x")
    answer = curator.dismiss(job)
    assert answer.status_code == 409
    assert curator.get(f"/jobs/{job}").json()["status"] == "failed"


def test_pages_hold_every_job_once_while_others_are_made(curator):
    made = [curator.submit() for _ in range(7)]
    page = curator.get("/jobs", limit=3).json()
    seen = [one["jobID"] for one in page["jobs"]]
    while following := [one["href"] for one in page["links"] if one["rel"] == "next"]:
        curator.submit()
        page = curator.get(following[0].replace("http://testserver", "")).json()
        assert 0 < len(page["jobs"]) <= 3
        seen += [one["jobID"] for one in page["jobs"]]
    assert seen == made[::-1]
    assert curator.get("/jobs", limit=10_000_000).status_code == 200


def test_a_list_without_jobs_is_empty(curator):
    answer = curator.get("/jobs")
    assert answer.json()["jobs"] == []
    assert answer.headers["cache-control"] == "no-store"


def test_lists_are_filtered(curator, odd):
    waiting = curator.submit()
    curator.submit("export", release=odd, formats=["csv"])
    failed = curator.submit("evaluate", release=odd, dataset="ri")
    curator.dismiss(waiting)
    for _ in range(2):
        held = curator.claim()
        if held.job.id == failed:
            claims.fail(curator.catalog, held, "x")

    def states(**query):
        return sorted(one["status"] for one in curator.get("/jobs", **query).json()["jobs"])

    assert states() == ["dismissed", "failed", "running"]
    assert states(status="failed") == ["failed"]
    assert states(status=["failed", "running"]) == ["failed", "running"]
    assert states(processID="export") == ["running"]
    assert states(processID=["export", "evaluate"], status="failed") == ["failed"]
    assert states(type="process") == ["dismissed", "failed", "running"]
    assert states(minDuration=0) == ["failed", "running"]  # who never started did not last
    assert states(maxDuration=1000) == ["failed", "running"]
    assert states(minDuration=1000) == []
    page = curator.get("/jobs", status=["failed", "running"], limit=1).json()
    (following,) = [one["href"] for one in page["links"] if one["rel"] == "next"]
    rest = curator.get(following.replace("http://testserver", "")).json()
    assert [one["status"] for one in page["jobs"] + rest["jobs"]] == ["failed", "running"]
    assert len(rest["links"]) == 1  # the filter goes on to the next page


def test_lists_are_filtered_by_time(curator):
    job = curator.submit()
    created = curator.get(f"/jobs/{job}").json()["created"]
    second = created[:19] + "Z"
    hour = timedelta(hours=1)
    now = datetime.fromisoformat(created)
    before, after = (now - hour).isoformat(), (now + hour).isoformat()

    def count(interval):
        return len(curator.get("/jobs", datetime=interval).json()["jobs"])

    for interval in (second, f"{before}/{after}", f"{before}/..", f"../{after}", f"{second}/{second}"):
        assert count(interval) == 1
    for interval in (before, f"../{before}", f"{after}/..", f"{before}/{before}", f"{after}/{before}"):
        assert count(interval) == 0
    assert count(f"{now.astimezone(timezone(3 * hour)).isoformat()}/..") == 1  # the same moment told elsewhere


@pytest.mark.parametrize("query", [
    {"status": "late"}, {"processID": "sell"}, {"type": "dataset"}, {"limit": 0}, {"limit": "x"}, {"after": "none"},
    {"after": NOBODY}, {"minDuration": -1}, {"maxDuration": "1h"}, {"datetime": "yesterday"}, {"datetime": ".."},
    {"datetime": "../.."}, {"datetime": "2026-01-01"}, {"datetime": "2026-01-01T00:00:00"}, {"datetime": ""},
    {"datetime": "0001-01-01T00:00:00+23:59"}, {"datetime": "9999-12-31T23:59:59Z"},
    {"datetime": "a/b/c"}, {"state": "failed"}, {"process": "release"},
])  # fmt: skip
def test_a_filter_that_is_none_is_a_bad_request(curator, query):
    answer = curator.get("/jobs", **query)
    assert answer.status_code == (200 if query == {"datetime": "9999-12-31T23:59:59Z"} else 400)


@pytest.mark.parametrize(("role", "status"), [(None, 401), (Role.READER, 403), (Role.ANALYST, 403)])
def test_jobs_are_the_curators(curator, role, status):
    job = curator.submit(dataset="ri", title="a name that nobody else reads")
    headers = {} if role is None else bearer(curator.client, role)
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{NOBODY}", f"/jobs/{job}/results", "/jobs?status=x"):
        answer = curator.client.get(path, headers=headers)
        assert answer.status_code == status
        assert "nobody else" not in answer.text
    assert curator.client.delete(f"/jobs/{job}", headers=headers).status_code == status
    assert curator.get(f"/jobs/{job}").json()["status"] == "accepted"


def test_what_a_job_made_may_be_gone(curator):
    job = curator.submit()
    claims.succeed(curator.catalog, curator.claim(), {"release": "x"})
    answer = curator.get(f"/jobs/{job}/results")
    assert answer.status_code == 410


def test_from_the_trigger_to_what_was_made(make_client, store, tmp_path, command):
    """The whole way, with a worker in a process of its own: a release, then its measures, then files of it."""
    own, registry = tmp_path / "own", tmp_path / "registry.toml"
    own.mkdir()
    shutil.copytree(store.parent / "region", tmp_path / "secret-place")
    database = f"sqlite:///{tmp_path / 'jobs.sqlite'}"
    client = make_client(store=own, database=database)
    curator = Curator(client)
    put_dataset(curator.catalog, register(registry, "region", tmp_path / "secret-place" / "spec.toml"))
    set_budget(curator.catalog, "region", 3, 1e-5)

    def trigger(process, inputs):
        headers = {**curator.headers, "Prefer": "respond-async", "Idempotency-Key": process}
        answer = client.post(f"/processes/{process}/execution", json={"inputs": inputs}, headers=headers)
        assert answer.status_code == 201
        return answer.headers["location"]

    def work():
        where = ("--store", own, "--database", database, "--registry", registry)
        done = command("worker", *where, "--scheduler", "threads", "--once")
        assert done.returncode == 0, done.stderr

    def made(job):
        found = curator.get(job).json()
        assert (found["status"], found["progress"]) == ("successful", 100), found["message"]
        (there,) = [one["href"] for one in found["links"] if one["rel"].endswith("/results")]
        answer = curator.get(there)
        assert answer.status_code == 200
        texts.extend([json.dumps(found), answer.text])
        return answer.json()

    texts = []
    asked = {"dataset": "region", "epsilon": 3, "delta": 1e-5, "segments": [], "cells": 16, "title": "Île"}
    job = trigger("release", asked)
    work()
    release = made(job)["release"]
    manifest = read_manifest(own / release["id"])
    assert manifest.private and release["private"]  # no seed can be asked for
    assert (
        (release["epsilon"], release["delta"]) == (3, 1e-5) == (manifest.privacy.dp.epsilon, manifest.privacy.dp.delta)
    )
    assert (release["title"], release["workers"]) == ("Île", 3000)
    assert (manifest.segments, manifest.plan.cells) == ([], "16")
    for one in release["links"]:
        assert client.get(one["href"]).status_code == 200, one["href"]

    name = release["id"]
    confidential = f"/releases/{name}/metrics/confidential"
    assert curator.get(confidential).status_code == 404
    jobs = [
        trigger("evaluate", {"release": name, "dataset": "region"}),
        trigger("export", {"release": name, "formats": ["csv"]}),
    ]
    work()
    measured = made(jobs[0])["metrics"]
    assert measured["links"][0]["href"].endswith(confidential)
    found = curator.get(confidential)
    assert found.json()["release"] == name and found.json()["distance_mae_km"] > 0
    assert client.get(confidential).status_code == 401

    files = made(jobs[1])["files"]
    assert "flows.csv" in [one["name"] for one in files]
    for one in files:
        assert client.get(one["href"]).status_code == 200
    texts.append(client.get(f"/releases/{name}/metrics").text)
    for text in texts:
        assert "secret-place" not in text and "od.parquet" not in text and str(tmp_path) not in text


def test_there_is_json_only(curator):
    job = curator.submit()
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/results", "/processes", "/processes/release", "/datasets"):
        assert curator.get(path, f="xml").status_code == 400
        answer = curator.client.get(path, headers=curator.headers | {"Accept": "text/csv"})
        assert answer.status_code == 406
    assert curator.get("/jobs", f="json").status_code == 200
