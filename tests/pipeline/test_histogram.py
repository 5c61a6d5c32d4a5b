"""Releases of noisy counts: through the same pipeline, manifest, verification, evaluation and service as any other."""

import hashlib
import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from pipelines.publish import promise
from pipelines.release import plan, release
from pipelines.spending import charge_of
from synthmap.confidential.fidelity import evaluate
from synthmap.errors import ReleaseCorruptError
from synthmap.mechanism.chosen import promised
from synthmap.mechanism.recertify import recertify
from synthmap.privacy.gaussian import gaussian_variance
from synthmap.published.boxes import CRS84
from synthmap.published.exports.csv import write_csv
from synthmap.published.features import open_layer
from synthmap.published.od import Query, find_flows
from synthmap.published.places import ZONE
from synthmap.published.store import ReleaseStore
from synthmap.published.utility import destination_utility, release_utility
from synthmap.release.statement import read_statement
from synthmap.release.verify import verify

SEGMENTS = ["SA01", "SA02", "SA03"]


@pytest.fixture
def released(make_spec):
    def make(scheduler="threads", **changes):
        plan = {"mechanism": "histogram"} | changes.pop("plan", {})
        spec = make_spec(plan=plan, **({"run": {"seed": 1}} | changes))
        return release(spec, scheduler=scheduler), spec

    return make


def test_a_release_keeps_headcounts_and_tells_an_interval_for_every_row(released, read_od, region):
    found, _ = released(run={"seed": None})
    verify(found.path)
    published = read_od(found.path)
    assert published.columns == ["origin", "destination", "count", *SEGMENTS, "low", "high"]
    true = pl.read_parquet(region / "od.parquet")
    sums = [table.group_by("destination").agg(pl.col("count").sum()).sort("destination") for table in (published, true)]
    assert sums[0]["count"].cast(pl.Int64).to_list() == sums[1]["count"].cast(pl.Int64).to_list()
    assert (published.select(pl.sum_horizontal(SEGMENTS)).to_series() == published["count"]).all()
    assert published.select(pl.col("count").is_between(pl.col("low"), pl.col("high"))).to_series().all()
    both = published.join(true, on=["origin", "destination"], how="left").with_columns(
        pl.col("count_right").fill_null(0)
    )
    inside = both.select(pl.col("count_right").is_between(pl.col("low"), pl.col("high"))).to_series()
    assert 0.8 < inside.mean() < 1


def test_the_manifest_promises_pure_differential_privacy(released):
    found, spec = released(privacy={"max_jobs_per_worker": 2})
    privacy, told = found.manifest.privacy, found.manifest.plan
    assert (privacy.rule, privacy.pdp_cells) == ("pure", None)
    assert (privacy.dp.epsilon, privacy.dp.delta) == (8.0, 0.0)
    assert 3.9 < privacy.certified_per_job.epsilon <= 4.0
    assert privacy.certified_per_job.delta == 0
    assert (told.mechanism, told.reading, told.interval, told.coarsening) == ("histogram", "means", 0.9, "auto")
    assert privacy.steps.cells_epsilon > 0
    assert privacy.steps.resampling_epsilon == 0
    assert all(part.noise_sd_median > 0 and part.alpha_median is None for part in told.classes)
    words = read_statement(found.path).model_dump_json()
    assert "integer noise is added to the count" in words
    assert '"form":"pure"' in words
    assert spec.plan.mechanism == "histogram"


def test_noise_is_certified_again_and_too_little_of_it_refused(released):
    found, _ = released()
    assert recertify(found.path) > 0
    path = found.path / "plan.parquet"
    table = pq.read_table(path)
    free_groups = ("group_noise_units", [2**30] * len(table))
    for name, values in (("noise_units", [1] * len(table)), ("noise_units", [2**31] * len(table)), free_groups):
        place = table.column_names.index(name)
        path.unlink()
        pq.write_table(table.set_column(place, name, [values]), path)
        with pytest.raises(ReleaseCorruptError, match="must meet the ε and δ"):
            recertify(found.path)


GAUSSIAN = {"plan": {"noise": "gaussian"}, "privacy": {"delta": 1e-6, "max_jobs_per_worker": 8, "epsilon": 0.5}}


def test_gaussian_noise_is_promised_for_all_jobs_together_and_certified_again(released):
    found, spec = released(run={"seed": None}, **GAUSSIAN)
    verify(found.path)
    assert recertify(found.path) > 0
    privacy, told = found.manifest.privacy, found.manifest.plan
    assert (privacy.rule, privacy.pdp_cells, told.noise_law) == ("adp", None, "gaussian")
    assert (privacy.dp.epsilon, privacy.dp.delta) == (4.0, 8e-6)
    assert 0.5 < privacy.certified_per_job.epsilon < 2.0
    assert 0 < privacy.steps.cells_delta == privacy.certified_per_job.delta <= 1e-6
    geometric, _ = released(privacy=GAUSSIAN["privacy"])
    sds = [max(part.noise_sd_median for part in one.manifest.plan.classes) for one in (found, geometric)]
    assert sds[0] < 0.8 * sds[1]
    words = read_statement(found.path).model_dump_json()
    assert '"form":"approximate"' in words
    assert "Discrete Gaussian noise" in words
    assert "certified together" in words
    assert promise(spec) == privacy.dp
    asked = charge_of(spec)
    assert (asked.rule, float(Fraction(asked.epsilon)), float(Fraction(asked.delta))) == ("adp", 4.0, 8e-6)
    assert [part.times for part in asked.parts] == [1]  # one loss: no rule for several makes it less
    opened = ReleaseStore(found.path.parent).open(found.release)
    largest = opened.collect(opened.plan.sort("headcount", descending=True).head(1))["destination"][0]
    assert destination_utility(opened, largest).noise_sd == pytest.approx(sds[0])
    measured = evaluate(found.path, spec)
    assert 0.3 < measured.expected.distance_mae_km / measured.distance_mae_km < 2
    assert measured.expected.if_prior_were_true is not None


@pytest.mark.parametrize("change", ["less", "different"])
def test_too_little_gaussian_noise_is_refused(released, change):
    found, _ = released(**GAUSSIAN)
    path = found.path / "plan.parquet"
    table = pq.read_table(path)
    units, headcount = table["gaussian_units"].to_numpy().copy(), table["headcount"].to_numpy()
    if change == "less":
        units[:] = units * 7 // 10
    else:
        units[0] += 1000
    path.unlink()
    place = table.column_names.index("gaussian_units")
    pq.write_table(table.set_column(place, "gaussian_units", [units]), path)
    if change == "less":
        with pytest.raises(ReleaseCorruptError, match="must meet the ε and δ"):
            recertify(found.path)
    manifest = found.path / "manifest.json"
    told = json.loads(manifest.read_text())
    for one in told["plan"]["classes"]:  # else these tell at once
        inside = (headcount >= one["headcount_from"]) & (headcount <= one["headcount_to"])
        one["noise_sd_median"] = math.sqrt(gaussian_variance(int(units[inside].max())))
    told["files"]["plan.parquet"] = {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bytes": path.stat().st_size,
    }
    manifest.unlink()
    manifest.write_text(json.dumps(told))
    rule = "the promise must cover" if change == "less" else "must be the same at every destination"
    with pytest.raises(ReleaseCorruptError, match=rule):
        verify(found.path)


@pytest.mark.parametrize("partitions", [1, 7])
def test_the_table_does_not_depend_on_partitions(released, read_od, partitions):
    once, _ = released(run={"seed": 3, "partitions": 3})
    again, _ = released(run={"seed": 3, "partitions": partitions}, scheduler="processes")
    assert read_od(once.path).equals(read_od(again.path))


def test_the_other_reading_is_another_table(released, read_od):
    means, _ = released()
    likely, _ = released(plan={"reading": "agreement"})
    assert likely.manifest.plan.reading == "agreement"
    assert not read_od(means.path).equals(read_od(likely.path))


def test_the_planner_chooses_a_mechanism_and_says_why(released):
    found, spec = released(plan={"mechanism": "auto"})
    told = found.manifest.plan
    km = {name: float(told.choice.split(f"{name} ")[1].split(" km")[0]) for name in ("dirichlet", "histogram")}
    assert told.mechanism == min(km, key=lambda name: km[name])
    assert found.manifest.privacy.dp.delta == 0
    assert plan(spec, scheduler="threads").summary.choice == told.choice


def test_it_is_evaluated_beside_what_was_expected(released):
    found, spec = released(segments=None)
    measured = evaluate(found.path, spec)
    assert measured.expected.cpc_cells is None
    assert 0.3 < measured.expected.distance_mae_km / measured.distance_mae_km < 2
    assert measured.expected.if_prior_were_true is not None
    assert measured.cpc_cells is not None
    resampled, other = released(plan={"mechanism": "dirichlet"}, segments=None)
    assert measured.cpc["tract/tract"] > evaluate(resampled.path, other).cpc["tract/tract"]


def test_what_is_served_knows_its_errors(released, tmp_path):
    found, _ = released()
    opened = ReleaseStore(found.path.parent).open(found.release)
    whole = release_utility(opened)
    assert whole.model_dump_json()
    largest = opened.collect(opened.plan.sort("headcount", descending=True).head(1))["destination"][0]
    one = destination_utility(opened, largest)
    assert (one.alpha, one.keep) == (None, None)
    assert one.noise_sd > 0
    assert 0 < one.common_part <= 1
    errors = [figure.error for figure in one.figures]
    assert errors == sorted(errors)
    assert all(math.isfinite(error) for error in errors)
    path = tmp_path / "flows.csv"
    write_csv(opened, path, "")
    table = pl.read_csv(path, infer_schema=False)
    assert {"low", "high"} <= set(table.columns)


def test_the_command_line_tells_the_noise(make_spec, command, tmp_path):
    make_spec(plan={"mechanism": "auto"})
    found = command("plan", tmp_path / "spec.toml")
    assert found.returncode == 0, found.stderr
    assert "predicted error of average commutes" in found.stdout
    values = json.loads(command("plan", tmp_path / "spec.toml", "--json").stdout)
    assert values["plan"]["mechanism"] in ("dirichlet", "histogram")
    made = command("release", tmp_path / "spec.toml", "--json")
    assert command("verify", json.loads(made.stdout)["path"]).returncode == 0


@pytest.mark.parametrize("mechanism", ["histogram", "dirichlet", "auto"])
def test_the_ledger_is_charged_what_the_manifest_promises_or_more(make_spec, mechanism):
    spec = make_spec(plan={"mechanism": mechanism})
    cost, (rule, delta) = promise(spec), promised(spec)
    asked = charge_of(spec)
    assert (asked.rule, float(Fraction(asked.epsilon)), float(Fraction(asked.delta))) == (
        rule.value,
        cost.epsilon,
        cost.delta,
    )
    assert (delta == 0) == (mechanism == "histogram")


def test_measured_lengths_are_one_loss_of_all_jobs_since_one_sum_may_hold_them_all(make_spec):
    """Counted as a loss for each job, the tighter sum that the ledger tells would be too small (composition.md)."""
    jobs = {"epsilon": 1.0, "delta": 1e-6, "max_jobs_per_worker": 8}
    asked = charge_of(make_spec(privacy=jobs, prior={"lengths_epsilon": 0.125}))
    assert [(part.times, Fraction(part.epsilon)) for part in asked.parts] == [(1, 1), (8, Fraction(7, 8))]
    assert Fraction(asked.epsilon) == 8


def test_flows_between_zones_tell_their_interval_and_sums_do_not(released):
    found, _ = released()
    opened = ReleaseStore(found.path.parent).open(found.release)
    page = find_flows(opened, Query(ZONE, ZONE, (), (), 1, 10, None, "destination"), limit=10)
    assert page.rows.columns == ["origin", "destination", "count", *SEGMENTS, "low", "high"]
    assert (page.rows["low"] <= page.rows["count"]).all()
    layer = open_layer(opened, "flows")
    read, _ = layer.read(np.arange(min(50, len(layer))), CRS84)
    assert {"low", "high", "expected_error"} <= set(layer.properties) & set(read.columns)
    assert read.select(pl.col("count").is_between(pl.col("low"), pl.col("high"))).to_series().all()
    assert (read["expected_error"] > 0).all()
    sums = find_flows(opened, Query("county", "county", (), (), 1, 10, None, "destination"), limit=10)
    assert sums.rows.columns == ["origin", "destination", "count", *SEGMENTS]
