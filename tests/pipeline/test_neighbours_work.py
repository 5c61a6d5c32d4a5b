"""What a plan takes long over, and what an error says, is the same for neighbouring tables: counted, not timed."""

import gc
import io
import re
import shutil
import sys
import threading
from collections import Counter
from contextlib import contextmanager

import polars as pl
import pytest
import sites

import pipelines.planning
import synthmap.mechanism.dirichlet_plan
import synthmap.privacy.gaussian
from pipelines.jobs.__main__ import _described, _teller, carry_out
from pipelines.jobs.order import Order
from pipelines.release import plan
from synthmap.catalog.claims import claim
from synthmap.errors import SynthmapError
from synthmap.spec import read_spec

REMEMBERED = [
    synthmap.mechanism.dirichlet_plan._remembering,
    synthmap.privacy.gaussian.gaussian_delta,
    synthmap.privacy.gaussian.gaussian_tails,
    synthmap.privacy.gaussian.minimum_gaussian,
]
SEEN = threading.local()  # where this thread notes the files it opens; an audit hook cannot be taken away again


def note_opens(event, arguments):
    if event == "open" and getattr(SEEN, "opens", None) is not None:
        SEEN.opens.append(str(arguments[0]))


sys.addaudithook(note_opens)


@contextmanager
def watched():
    """Count the calls of this thread, of Python functions and of compiled ones, and note what it opens.

    Collecting garbage waits: it comes when enough was made by all that ran before, and calls whoever listens (Dask).
    """
    calls = Counter()

    def count(frame, event, argument):
        if event == "call":
            calls[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            calls[f"{getattr(argument, '__module__', '')}.{getattr(argument, '__qualname__', argument)}"] += 1

    SEEN.opens = opens = []
    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        yield calls, opens
    finally:
        sys.setprofile(before)
        SEEN.opens = None
        if collecting:
            gc.enable()


@contextmanager
def taken_away(paths):
    """Let files be away for a while."""
    moved = [(path, path.with_name(path.name + ".away")) for path in paths]
    for path, away in moved:
        path.rename(away)
    try:
        yield
    finally:
        for path, away in moved:
            away.rename(path)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ("origin", {}),
        ("segment", {"keep": "prior", "cells": 16}),
        ("origin", {"coarsening": "distance"}),
        ("both", {"mechanism": "histogram"}),
        ("segment", {"mechanism": "histogram", "noise": "gaussian"}),
    ],
    ids=["auto", "dropping", "distance", "histogram", "gaussian"],
)
def test_planning_opens_nothing_and_does_the_same_work_for_both(neighbours, monkeypatch, change, options):
    """It goes on where every confidential file is away: the table, and what was made of it on the way."""
    made, found = pipelines.planning.plan_destinations, []
    specs = neighbours(change, run={"scratch": "scratch", "seed": 3, "partitions": 1}, plan=options)

    def spy(*given):
        place = specs[len(found) % 2].parent
        confidential = [place / "od.parquet", *(place / "scratch").rglob("*.npy")]
        for cached in REMEMBERED:  # what the other run left there, too
            cached.cache_clear()
        with taken_away(confidential):
            made(*given)  # compiled, imported and remembered
            with watched() as (calls, opens):
                planned = made(*given)
        found.append((len(confidential), opens, calls, planned.to_table().to_pydict()))
        return planned

    monkeypatch.setattr(pipelines.planning, "plan_destinations", spy)
    for path in specs:
        plan(read_spec(path), scheduler="threads")
    (files, opens, calls, planned), other = found
    assert files >= 4
    assert opens == []
    assert sum(calls.values()) > 50
    made_noise = ("survey", "calibrate", "minimum_units", "gaussian_variance")
    assert any(work in name for name in calls for work in made_noise)
    assert (files, opens, calls, planned) == other


def test_what_is_watched_would_be_noticed(tmp_path):
    """The negative control: work that depends on the table is counted, and a file that is opened is named."""
    table = tmp_path / "od.csv"
    counted = []
    for rows in (3, 4):
        table.write_text("x\n" * rows)
        with watched() as (calls, opens), table.open() as file:
            for line in file:
                line.strip()
        assert opens == [str(table)]
        counted.append(calls)
    assert counted[0] != counted[1]


FAULTS = {
    "a count below 0": lambda od: od.with_columns(
        count=pl.when(pl.int_range(pl.len()) == 5).then(-1).otherwise("count")
    ),
    "counts that are no numbers": lambda od: od.with_columns(pl.col("count").cast(pl.String) + "x"),
    "no column of counts": lambda od: od.drop("count"),
    "a zone that is none": lambda od: pl.concat([od, od.head(1).with_columns(destination=pl.lit("nowhere"))]),
    "an empty origin": lambda od: od.with_columns(
        origin=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("origin")
    ),
    "a pair twice": lambda od: pl.concat([od, od.head(3)]),
    "segments that do not add up": lambda od: od.with_columns(SA02=pl.col("SA02") + 1),
    "no rows": lambda od: od.clear(),
}


@pytest.fixture
def bad_neighbours(neighbours):
    """Return spec files for two neighbouring tables that break the same rule."""

    def make(fault, change="origin", **changes):
        specs = neighbours(change, **changes)
        for path in specs:
            table = path.parent / "od.parquet"
            shutil.copyfile(table, table.with_name("od.good"))
            FAULTS[fault](pl.read_parquet(table)).write_parquet(table)
        return specs

    return make


@pytest.mark.parametrize(
    ("fault", "change"),
    [*((fault, "origin") for fault in FAULTS), ("segments that do not add up", "segment"), ("a pair twice", "both")],
)
def test_neighbouring_tables_with_a_fault_are_refused_alike(bad_neighbours, fault, change):
    """Progress up to there, the text that the public reads, and the line for the operator's log."""
    told = []
    # one part: of several, which ends first is chance
    for path in bad_neighbours(fault, change, run={"scratch": "scratch", "partitions": 1}):
        site = sites.site(path.parent / "site", f"sqlite:///{path.parent / 'catalog.sqlite'}")
        table, bad = path.parent / "od.parquet", path.parent / "od.bad"
        table.rename(bad)
        table.with_name("od.good").rename(table)
        site.register(path)
        bad.rename(table)
        job = site.submit()
        found = claim(site.catalog, lease_seconds=600)
        order = Order(site.database, path.parent / "store", site.registry, "threads", job.id, found.attempt, 0, 60.0)
        events = io.StringIO()
        with pytest.raises(SynthmapError) as caught:
            carry_out(order, _teller(events))
        site.stop()
        told.append((events.getvalue(), _described(caught.value)))
    assert told[0] == told[1]
    assert told[0][1]["message"] == "the dataset breaks a rule; the operator finds which in the log of the worker"


def test_and_on_the_command_line(bad_neighbours, command):
    specs = bad_neighbours("a count below 0")
    done = [command("release", spec, "--scheduler", "threads", "--json") for spec in specs]
    assert [(one.returncode, one.stdout) for one in done] == [(2, "")] * 2
    said = [re.sub(r"[\d.]+ ?s\b|\d:\d\d:\d\d", "…", one.stderr) for one in done]
    assert said[0] == said[1]
    assert said[0].splitlines()[-1].startswith("synthmap: od.parquet: ")
