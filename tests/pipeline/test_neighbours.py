"""Neighbouring tables: whatever is told of a run but the draw itself is the same, to the byte."""

import io
import json
import re
from dataclasses import fields
from datetime import datetime

import numpy as np
import polars as pl
import pytest
import sites
from starlette.testclient import TestClient

import pipelines.planning
import pipelines.publish
import pipelines.synthesize
from pipelines.jobs.__main__ import _teller, carry_out
from pipelines.jobs.order import Order
from pipelines.release import plan, release
from synthmap.catalog.claims import claim
from synthmap.mechanism.table import Counts
from synthmap.service.app import create_app
from synthmap.service.settings import service_settings
from synthmap.spec import read_spec

NAME = "demo-20260101T000000Z-00000000"
NOISY = {"plan": {"mechanism": "histogram"}}
GAUSSIAN = {"plan": {"mechanism": "histogram", "noise": "gaussian"}}
DROPPING = {"plan": {"keep": "prior", "cells": 16}}
PRIOR_ALONE = {"segments": None, "plan": {"cells": 1}}  # such a draw depends on no origin
CREATED = re.compile(r'"created": ?"[^"]*"')


def scrubbed(text, spec):
    """Return a log or manifest without the run's directory, id, time and hashes."""
    text = text.replace(str(spec.parent), "DIR")
    text = re.sub(r"demo-\d{8}T\d{6}Z-[0-9a-f]{16}", "ID", text)
    text = re.sub(r'"created": "[^"]*"|"sha256": "\w{64}"|"bytes": \d+|"seconds": [\d.]+|\d:\d\d:\d\d', "…", text)
    return re.sub(r"\d{4}-\d\d-\d\d(T[\d:+]+)?", "…", text)


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ("origin", {}),
        ("segment", {"run": {"scratch": "scratch", "seed": 4, "partitions": 3}}),  # 3 draws nobody for that worker
        ("both", DROPPING),
        ("origin", NOISY),
        ("segment", NOISY),
        ("both", GAUSSIAN),
    ],
    ids=["auto, origin", "auto, segment", "dropping, both", "noisy, origin", "noisy, segment", "gaussian, both"],
)
def test_neighbouring_tables_show_no_difference_but_the_draw(neighbours, forked_command, change, changes):
    seen = []
    for spec in neighbours(change, **changes):
        done = forked_command("release", spec, "--scheduler", "threads", "--json")
        assert done.returncode == 0, done.stderr
        found = spec.parent / "store" / json.loads(done.stdout)["release"]
        names = sorted(path.relative_to(found).as_posix() for path in found.rglob("*"))
        files = [path for path in sorted(found.rglob("*")) if path.is_file()]
        draw = [path.read_bytes() for path in files if path.parent.name == "od"]
        public = {
            path.name: path.read_bytes() if path.suffix == ".parquet" else scrubbed(path.read_text("utf-8"), spec)
            for path in files
            if path.parent.name != "od"
        }
        assert {"manifest.json", "plan.parquet", "zones.parquet", "statement.html", "statement.json"} == set(public)
        seen.append(((names, public, scrubbed(done.stdout, spec), scrubbed(done.stderr, spec)), draw))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize("mechanism", ["dirichlet", "auto"])
def test_neighbouring_tables_have_the_same_plan(neighbours, forked_command, mechanism):
    specs = neighbours("both", plan={"mechanism": mechanism})
    plans = [forked_command("plan", spec, "--scheduler", "threads", "--json") for spec in specs]
    assert plans[0].returncode == plans[1].returncode == 0
    assert plans[0].stdout == plans[1].stdout


class Noon(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, zone):
        return cls(2026, 1, 1, 12, tzinfo=zone)


def released_of_both(paths):
    """Return the files of a release of each table, whose rows are in another order."""
    seen = []
    for i, path in enumerate(paths):
        table = path.parent / "od.parquet"
        pl.read_parquet(table).sample(fraction=1, shuffle=True, seed=i).write_parquet(table)
        found = release(read_spec(path), scheduler="threads", name=NAME).path
        seen.append({one.relative_to(found).as_posix(): one.read_bytes() for one in found.rglob("*") if one.is_file()})
    assert len(seen[0]) >= 5
    return seen


def test_a_draw_that_depends_on_no_origin_is_the_same_release_to_the_byte(neighbours, monkeypatch):
    """Sizes, order, encoding and statistics of the files follow from the draw alone, not from the table's rows."""
    monkeypatch.setattr(pipelines.publish, "datetime", Noon)
    one, other = released_of_both(neighbours(**PRIOR_ALONE))
    assert one == other


@pytest.mark.parametrize("changes", [{}, NOISY, GAUSSIAN], ids=["resampled", "noisy", "gaussian"])
@pytest.mark.parametrize("change", ["segment", "both"])
def test_so_is_one_of_any_mechanism_that_was_given_public_counts(neighbours, monkeypatch, change, changes):
    """As if everybody lived in one place and were in one segment: what is around the mechanism gets nothing past it."""

    def of_public_counts(plan, counts, *others):
        rows = np.arange(len(plan) + 1)
        workers = np.zeros((len(plan), counts.workers.shape[1]), np.int64)
        workers[:, 0] = plan.headcount
        return made(plan, Counts(rows, np.zeros(len(plan), np.int32), workers), *others)

    made = pipelines.synthesize.synthesize
    monkeypatch.setattr(pipelines.synthesize, "synthesize", of_public_counts)
    monkeypatch.setattr(pipelines.publish, "datetime", Noon)
    one, other = released_of_both(neighbours(change, **changes))
    assert one == other


@pytest.mark.parametrize(("change", "changes"), [("origin", {}), ("both", NOISY)], ids=["origin", "noisy, both"])
def test_a_plan_is_made_from_the_same_for_both(neighbours, monkeypatch, change, changes):
    """What a plan takes long over can tell nothing where it is given nothing else."""
    given = []

    def spy(region, destination, headcount, *others):
        zones = region.zones.ids.to_pylist()
        given[-1].append((destination.tolist(), headcount.tolist(), zones, region.tree.cumulative.tolist(), *others))
        return made(region, destination, headcount, *others)

    made = pipelines.planning.plan_destinations
    monkeypatch.setattr(pipelines.planning, "plan_destinations", spy)
    plans = []
    for path in neighbours(change, **changes):
        given.append([])
        plans.append(plan(read_spec(path), scheduler="threads"))
    one, other = (sorted(calls, key=lambda call: call[0]) for calls in given)
    assert len(one) == 3
    assert one == other
    for field in fields(plans[0].plan):
        np.testing.assert_array_equal(getattr(plans[0].plan, field.name), getattr(plans[1].plan, field.name))
    assert plans[0].settings == plans[1].settings
    assert plans[0].promise == plans[1].promise
    assert plans[0].certified == plans[1].certified
    assert plans[0].summary == plans[1].summary


@pytest.mark.parametrize(("change", "changes"), [("origin", {}), ("both", NOISY)], ids=["origin", "noisy, both"])
def test_a_job_tells_the_same_of_both(neighbours, change, changes):
    """Stages, per cent and result, in the order in which the job's process tells them; each draws with its own key."""
    told = []
    for path in neighbours(change, run={"scratch": "scratch", "partitions": 3}, **changes):
        site = sites.site(path.parent / "site", f"sqlite:///{path.parent / 'catalog.sqlite'}")
        site.register(path)
        job = site.submit()
        found = claim(site.catalog, lease_seconds=600)
        order = Order(site.database, path.parent / "store", site.registry, "threads", job.id, found.attempt, 0, 60.0)
        events = io.StringIO()
        result = carry_out(order, _teller(events))
        site.stop()
        assert result.pop("release") == job.release
        told.append((events.getvalue(), result))
    assert len(told[0][0].splitlines()) > 10
    assert told[0] == told[1]


def answers(path, urls):
    """Return what a service over the store of a spec answers, without times."""
    found = {}
    database = f"sqlite:///{path.parent / 'service.sqlite'}"
    with TestClient(create_app(service_settings(store=path.parent / "store", database=database))) as client:
        for url in urls:
            answer = client.get(url)
            assert answer.status_code == 200, url
            found[url] = CREATED.sub("", answer.text)
    return found


OF_ALL = ["/", "/api", "/conformance", "/processes", "/processes/release", "/releases", "/collections"]


@pytest.mark.parametrize(("change", "changes"), [("origin", {}), ("segment", NOISY)], ids=["origin", "noisy, segment"])
def test_the_service_describes_both_alike(neighbours, change, changes):
    """Landing page, OpenAPI and its examples, processes, lists: none looks at more than manifests."""
    seen = []
    for path in neighbours(change, **changes):
        release(read_spec(path), scheduler="threads", name=NAME)
        seen.append(answers(path, OF_ALL))
    assert NAME in seen[0]["/releases"]
    assert seen[0] == seen[1]


def test_the_description_of_the_service_holds_nothing_of_any_release(make_spec, tmp_path):
    """Its examples are made up: with a release in the store it is what it is without."""
    path = tmp_path / "spec.toml"
    spec = make_spec(run={"seed": 3})
    empty = answers(path, ["/api", "/processes/release"])
    release(spec, scheduler="threads", name=NAME)
    assert NAME in answers(path, ["/releases"])["/releases"]
    assert answers(path, list(empty)) == empty
    zones = {str(one) for one in pl.read_parquet(spec.zones.path)["id"]}
    assert not zones & set(re.findall(r"\w+", empty["/api"]))
