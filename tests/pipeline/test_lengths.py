"""Releases that measure mean commutes: the same however they are split, paid for once and first, and stated in full."""

import io
import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipelines.lengths
import pipelines.planning
import pipelines.synthesize
from pipelines.jobs.__main__ import _BEGINS, _teller
from pipelines.partition import SUMS
from pipelines.places import fetch
from pipelines.release import plan, release
from pipelines.spending import charge_of
from synthmap.errors import ConfidentialDataError, PrivacyParameterError, ReleaseCorruptError
from synthmap.kernels.lengths import PARTS
from synthmap.mechanism.plan import table_epsilon
from synthmap.mechanism.recertify import recertify
from synthmap.release.manifest import MANIFEST, read_manifest
from synthmap.release.statement import read_statement
from synthmap.release.verify import verify
from synthmap.spec import read_spec

LENGTHS = 0.3
SEEDED = {"segments": None, "prior": {"lengths_epsilon": LENGTHS}, "run": {"seed": 3}}
HISTOGRAM = {"mechanism": "histogram"}


@pytest.fixture
def lengths_spec(make_spec, with_changes):
    """Return the region's spec with lengths measured, seeded unless told otherwise."""
    return lambda **changes: make_spec(**with_changes(SEEDED, changes))


def without_times(manifest):
    told = manifest.model_dump()
    return {name: told[name] for name in ("privacy", "plan", "prior", "invariants")}


@pytest.mark.parametrize("plan", [{}, HISTOGRAM], ids=["resampled", "noisy"])
def test_a_release_is_the_same_however_it_is_split_and_wherever_it_runs(lengths_spec, read_od, plan):
    ways = [(1, "threads"), (4, "threads"), (4, "processes")]
    made = [release(lengths_spec(plan=plan, run={"partitions": n}), scheduler=where) for n, where in ways]
    tables, told = [read_od(one.path) for one in made], [without_times(one.manifest) for one in made]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("epsilon", [4.0, 0.7])
def test_the_parts_of_a_charge_add_up_to_the_whole(lengths_spec, jobs, epsilon):
    spec = lengths_spec(privacy={"epsilon": epsilon, "max_jobs_per_worker": jobs}, run={"seed": None})
    asked = charge_of(spec)
    lengths, table = asked.parts
    assert (lengths.name, table.name) == ("mean lengths, all jobs together", "table")
    assert (lengths.times, table.times) == (1, jobs)
    assert sum(Fraction(part.epsilon) * part.times for part in asked.parts) == jobs * Fraction(epsilon)
    assert Fraction(lengths.epsilon) == jobs * Fraction(LENGTHS)
    assert Fraction(table_epsilon(spec)) <= Fraction(table.epsilon)
    assert (Fraction(lengths.delta), Fraction(table.delta)) == (0, Fraction(1e-6))


@pytest.fixture
def calls(monkeypatch):
    """Names of what happens in a run, in order: payment, measurement and drawing."""
    seen = []

    def heard(module, name):
        done = getattr(module, name)

        def call(*args):
            seen.append(name)
            return done(*args)

        monkeypatch.setattr(module, name, call)

    heard(pipelines.lengths, "noisy_sums")
    heard(pipelines.synthesize, "synthesize")
    return seen


def test_lengths_are_paid_for_once_and_before_they_are_measured(lengths_spec, calls):
    release(
        lengths_spec(run={"partitions": 1}),
        scheduler="threads",
        before_reading=lambda name, cost: calls.append(f"reading {cost.epsilon:g}"),
        before_drawing=lambda name, cost: calls.append(f"drawing {cost.epsilon:g}"),
    )
    assert calls == ["reading 4", "drawing 4", "noisy_sums", "synthesize"]


def test_what_was_measured_is_on_the_disk_before_anybody_hears_of_it(lengths_spec, monkeypatch):
    """A run goes on with it when the machine that measured it has lost its power: it is not measured again."""
    fsync, kept = os.fsync, []

    def fsynced(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.name.startswith("lengths-"):
            kept.append(json.loads(path.read_text())["noisy"])
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fsynced)
    found = release(lengths_spec(), scheduler="threads")
    assert kept == [found.manifest.prior.lengths.noisy_sums]


def test_of_each_partition_only_the_sums_are_fetched(lengths_spec, monkeypatch):
    """Counts stay with the worker that collected them: from an object store they would be copied."""
    fetched = []
    monkeypatch.setattr(pipelines.lengths, "fetch", lambda path, run: fetched.append(path) or fetch(path, run))
    release(lengths_spec(run={"partitions": 3}), scheduler="threads")
    assert {path.name for path in fetched if path.parent.name.startswith("partition-")} == {SUMS}
    assert not any(path.name.startswith("partition-") for path in fetched)


def test_what_cannot_be_planned_is_found_before_it_is_paid_where_no_lengths_are(lengths_spec, calls, monkeypatch):
    def refuse(*args):
        raise PrivacyParameterError("no noise suffices")

    monkeypatch.setattr(pipelines.planning, "plan_destinations", refuse)
    with pytest.raises(PrivacyParameterError, match="no noise suffices"):
        release(
            lengths_spec(prior={"lengths_epsilon": 0}),
            scheduler="threads",
            before_drawing=lambda name, cost: calls.append("drawing"),
        )
    assert calls == []


@pytest.mark.parametrize("lengths", [0, LENGTHS])
def test_what_a_job_shows_of_its_way_never_goes_back_and_is_whole_only_in_the_end(lengths_spec, lengths):
    calls, events = [], io.StringIO()
    spec = lengths_spec(prior={"lengths_epsilon": lengths})
    release(spec, scheduler="threads", progress=lambda *call: calls.append(call))
    progress = _teller(events)
    for call in calls:
        progress(*call)
    told = [json.loads(line) for line in events.getvalue().splitlines()]
    shares = [one["percent"] for one in told]
    assert shares == sorted(shares)
    assert [one["stage"] for one in told if one["percent"] >= 90][:1] == ["draw"]  # its end
    assert {one["stage"] for one in told} == set(_BEGINS) - (set() if lengths else {"collect", "lengths"})
    assert shares[-1] == 99


def test_who_may_not_draw_measures_nothing(lengths_spec, calls, left_in, tmp_path):
    def refuse(name, cost):
        raise ConfidentialDataError("no")

    with pytest.raises(ConfidentialDataError, match="no"):
        release(lengths_spec(), scheduler="threads", before_drawing=refuse)
    assert calls == left_in(tmp_path / "store") == left_in(tmp_path / "scratch") == []


def test_a_pair_that_occurs_twice_is_refused_before_it_is_paid_for(lengths_spec, region, calls, tmp_path):
    rows = pl.read_parquet(region / "od.parquet").select("origin", "destination", "count")
    pl.concat([rows, rows[-1:]]).write_parquet(tmp_path / "twice.parquet")
    table = lengths_spec().tables[0].model_dump(exclude_none=True) | {"path": tmp_path / "twice.parquet"}
    with pytest.raises(ConfidentialDataError):
        release(lengths_spec(tables=[table]), scheduler="threads", before_drawing=lambda *_: calls.append("paid"))
    assert calls == []
    release(lengths_spec(tables=[table], duplicates="sum"), scheduler="threads")
    assert calls[0] == "noisy_sums"


def test_a_plan_measures_and_spends_nothing(lengths_spec, calls):
    spec = lengths_spec()
    planned = plan(spec, scheduler="threads")
    assert calls == []
    assert planned.settings.scales_km == ()
    assert planned.settings.epsilon == table_epsilon(spec) < 4.0
    assert planned.settings.strength == 5
    assert planned.promise.epsilon == 4.0


@pytest.fixture
def usual_spec(region_spec, write_spec, tmp_path):
    """Return the region's spec without a word on lengths."""
    del region_spec["prior"]
    return lambda **changes: read_spec(write_spec(tmp_path / "spec.toml", {**region_spec, **changes}))


@pytest.mark.parametrize("choice", [{}, HISTOGRAM, {"mechanism": "auto"}], ids=["resampled", "noisy", "auto"])
def test_by_itself_a_tenth_is_measured_of_few_workers_out_of_the_whole(usual_spec, choice):
    spec = usual_spec(plan=choice)
    found = release(spec, scheduler="threads")
    verify(found.path)
    recertify(found.path)
    privacy = found.manifest.privacy
    dearest = pl.read_parquet(found.path / "plan.parquet")["epsilon"].max()
    assert privacy.steps.lengths_epsilon == found.manifest.prior.lengths.epsilon == 4 / 10
    assert dearest > 3.5
    assert Fraction(dearest) + Fraction(0.4) <= Fraction(privacy.certified_per_job.epsilon) <= 4 == privacy.dp.epsilon


def test_of_more_workers_less_of_the_whole_is_measured(usual_spec):
    """An ε of 5,000 divided by the workers, of which the region has 3,000."""
    found = plan(usual_spec(privacy={"epsilon": 20.0, "delta": 1e-6}), scheduler="threads")
    assert found.lengths_epsilon == 5000 / 3000
    assert found.settings.epsilon == pytest.approx(20 - 5 / 3)
    assert found.settings.epsilon < found.per_job.epsilon <= 20 == found.promise.epsilon


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_charge_is_one_loss_where_only_headcounts_will_tell_its_parts(usual_spec, jobs):
    asked = charge_of(usual_spec(privacy={"epsilon": 4.0, "delta": 1e-6, "max_jobs_per_worker": jobs}))
    (part,) = asked.parts
    assert (part.name, part.times) == ("mean lengths and table, all jobs together", 1)
    assert (Fraction(part.epsilon), Fraction(part.delta)) == (4 * jobs, jobs * Fraction(1e-6))


def test_the_noise_of_lengths_is_new_each_time_and_known_to_nobody(lengths_spec):
    """Neither the same for all releases nor that of a seed."""
    drawn = [
        tuple(release(lengths_spec(run={"seed": seed}), scheduler="threads").manifest.prior.lengths.noisy_sums)
        for seed in (None, None, 0, 0, 1)
    ]
    assert drawn[2] == drawn[3]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("choice", [{}, HISTOGRAM, {"mechanism": "auto"}], ids=["resampled", "noisy", "auto"])
def test_a_manifest_tells_all_that_was_paid(lengths_spec, choice, jobs):
    found = release(lengths_spec(plan=choice, privacy={"max_jobs_per_worker": jobs}), scheduler="threads")
    assert verify(found.path).workers == 3000
    assert recertify(found.path) > 0
    privacy, prior = found.manifest.privacy, found.manifest.prior
    table = pl.read_parquet(found.path / "plan.parquet")["epsilon"].max()
    assert privacy.dp.epsilon == jobs * 4.0
    assert privacy.steps.lengths_epsilon == prior.lengths.epsilon == LENGTHS
    assert Fraction(table) + Fraction(LENGTHS) <= Fraction(privacy.certified_per_job.epsilon) <= 4
    assert len(prior.class_scales_km) == len(prior.class_edges_km) + 1 == len(prior.lengths.noisy_sums)
    assert sum(prior.lengths.workers) == 3000
    assert 5 < prior.strength < 15  # of 3,000 workers means are noisy
    told = json.dumps(read_statement(found.path).model_dump(mode="json"), ensure_ascii=False)
    assert "That took ε = 0.3 of" in told
    assert "beliefs, lengths" in told
    assert "and for mean commute lengths measured with noise" in told
    assert "sums of commute lengths are measured once" in told


def test_a_release_without_lengths_does_not_speak_of_them(make_spec):
    found = release(make_spec(run={"seed": 3}), scheduler="threads")
    assert found.manifest.prior.lengths is None
    assert found.manifest.privacy.steps.lengths_epsilon == 0
    assert "mean commutes" not in read_statement(found.path).model_dump_json().lower()


def raised(manifest, to):
    """State another ε of lengths wherever it stands."""
    manifest["prior"]["lengths"]["epsilon"] = manifest["privacy"]["steps"]["lengths_epsilon"] = to


def gone(manifest):
    manifest["prior"]["lengths"] = None


def scaled(factor):
    def change(manifest):
        units = manifest["prior"]["lengths"]["noise_units"]
        manifest["prior"]["lengths"]["noise_units"] = int(units * factor)

    return change


TAMPERED = {
    "another ε of lengths": (verify, lambda m: m["prior"]["lengths"].update(epsilon=0.1)),
    "another step": (verify, lambda m: m["privacy"]["steps"].update(lengths_epsilon=0.1)),
    "more than was certified": (verify, lambda m: raised(m, 0.4)),
    "no lengths but their step": (verify, gone),
    "a negative ε": (verify, lambda m: raised(m, -1.0)),
    "no ε": (verify, lambda m: raised(m, 0.0)),
    "an infinite ε": (verify, lambda m: raised(m, float("inf"))),
    "no number": (verify, lambda m: raised(m, float("nan"))),
    "certified for the table alone": (
        verify,
        lambda m: m["privacy"]["certified_per_job"].update(epsilon=4.0 - LENGTHS),
    ),
    "promised for the table alone": (verify, lambda m: m["privacy"]["dp"].update(epsilon=4.0 - LENGTHS)),
    "cells promised for the table alone": (verify, lambda m: m["privacy"]["pdp_cells"].update(epsilon=4.0 - LENGTHS)),
    "gaussian noise beside them": (verify, lambda m: m["plan"].update(noise_law="gaussian")),
    "less ε than the noise costs": (recertify, lambda m: raised(m, 0.29)),
    "less noise": (recertify, scaled(0.9999)),
    "no noise": (recertify, scaled(0)),
    "no such noise": (recertify, scaled(2)),
    "ε beyond all": (recertify, lambda m: raised(m, 1e9)),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory, region_values, with_changes, write_spec):
    directory = tmp_path_factory.mktemp("released")
    spec = write_spec(directory / "spec.toml", with_changes(region_values(directory), SEEDED))
    return release(read_spec(spec), scheduler="threads").path


@pytest.mark.parametrize("kind", TAMPERED)
def test_a_changed_manifest_is_refused(released, kind):
    check, change = TAMPERED[kind]
    path = released / MANIFEST
    before = path.read_bytes()
    try:
        changed = json.loads(before)
        change(changed)
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ReleaseCorruptError):
            check(released)
    finally:
        path.write_bytes(before)
    verify(released)
    recertify(released)


@pytest.mark.parametrize("change", ["origin", "segment", "both"])
def test_neighbours_differ_in_one_sum_by_at_most_the_sensitivity_and_what_is_fitted_to_it(neighbours, change):
    one, other = (
        read_manifest(release(read_spec(path), scheduler="threads").path)
        for path in neighbours(change, prior={"lengths_epsilon": LENGTHS})
    )
    moved = np.subtract(one.prior.lengths.noisy_sums, other.prior.lengths.noisy_sums)
    assert np.abs(moved).sum() <= PARTS
    assert np.count_nonzero(moved) == (0 if change == "segment" else 1)
    same = moved == 0
    for name in ("mean_km", "class_scales_km"):
        told = [getattr(m.prior, name, None) or getattr(m.prior.lengths, name) for m in (one, other)]
        assert np.array(told[0])[same].tolist() == np.array(told[1])[same].tolist()
    fitted = {"noisy_sums", "mean_km"}
    assert one.prior.lengths.model_dump(exclude=fitted) == other.prior.lengths.model_dump(exclude=fitted)
    fitted = {"lengths", "class_scales_km"}
    assert one.prior.model_dump(exclude=fitted) == other.prior.model_dump(exclude=fitted)
    assert one.privacy.dp == other.privacy.dp
    assert one.invariants == other.invariants
