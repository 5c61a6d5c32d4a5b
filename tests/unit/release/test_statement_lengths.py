"""What a statement says where commute lengths were measured before the table, and that others say nothing of it."""

import json

import pyarrow.parquet as pq
import pytest

from synthmap.release import wording
from synthmap.release.manifest import read_manifest
from synthmap.release.statement import make_statement, read_statement, record, schema, text
from synthmap.release.statement_files import page
from synthmap.release.verify import verify

LENGTHS = {"epsilon": 0.08, "cap_km": 60.0, "noise_units": 2_146_000_000, "workers": [4, 5], "noisy_sums": [400, 900],
           "mean_km": [6.0, 10.8]}  # fmt: skip


def measure(lengths=LENGTHS, **privacy):
    """Return a change of a manifest: two classes of destinations, a part of the ε of 4 for them."""

    def change(manifest):
        manifest["prior"] |= {"class_edges_km": [9.0], "class_scales_km": [6.0, 12.0], "lengths": lengths}
        manifest["prior"]["formula"] = wording.formula(classes=True, source=None)
        manifest["privacy"]["steps"] |= {"resampling_epsilon": 3.92, "lengths_epsilon": lengths["epsilon"]}
        manifest["privacy"] |= privacy

    return change


@pytest.fixture
def found(small_release):
    return read_statement(small_release(change=measure()))


def fields(statement):
    parts = statement.deployment.model_dump()
    return {name: value for part in parts.values() for name, value in part.items()}


def test_the_facts_have_what_was_measured(found):
    assert found.facts.lengths.model_dump() == {"epsilon": 0.08, "classes": 2, "cap_km": 60.0}


def test_the_promise_tells_what_was_measured_what_it_took_and_where_it_is(found):
    told = found.promise[-1]
    assert "mean commute lengths of 2 classes of destinations" in told
    assert "cut off at 60 km" in told
    assert "That took ε = 0.08 of the ε above" in told
    assert "published in the manifest (prior.lengths)" in told
    assert "What shapes the table's noise comes from public data and from these published figures." in told
    assert found.promise[0].startswith("Promise: (ε, δ)-differential privacy with ε = 4, δ = 1e-06")
    for whole in (text(found), page(found).replace("&#39;", "'"), found.questions[0].answer):
        assert told in whole


def test_one_class_is_all_destinations_and_several_jobs_pay_each(small_release):
    one = LENGTHS | {"workers": [9], "noisy_sums": [1300], "mean_km": [9.0]}
    values = {"max_jobs_per_worker": 2, "dp": {"epsilon": 8.0, "delta": 2e-6}}
    told = read_statement(small_release(change=measure(one, **values))).promise[-1]
    assert "mean commute lengths of all destinations together" in told
    assert "That took ε = 0.08 of each job's ε" in told


def test_epsilon_is_never_smaller_in_words_than_it_is(small_release):
    found = read_statement(small_release(change=measure(LENGTHS | {"epsilon": 0.0800000001})))
    assert "ε = 0.0800001 of the ε above" in found.promise[-1]


def test_nothing_says_that_tuning_is_free_or_looks_at_public_data_alone(found):
    told = fields(found)
    tuning = told["preprocessing_and_hyperparameter_tuning"]
    assert "alone" not in tuning
    assert "took ε = 0.08 for one job, which is in the ε stated here; all other tuning costs nothing" in tuning
    planner, worker = (next(one for one in told["actors"] if one.startswith(who)) for who in ("Planner", "Worker"))
    assert planner.endswith("sees public data and noisy sums of commute lengths only.")
    assert "writes synthetic counts and noisy sums of commute lengths only" in worker
    assert "and for mean commute lengths measured with noise" in told["unprotected_quantities"]
    assert "In that, ε = 0.08 for commute lengths" in told["privacy_parameters_details"]
    assert "Lengths and table in sequence: their ε add up." in told["composition"]
    assert "mean commute lengths of 2 classes of destinations" in told["mechanisms"]
    assert "beliefs, lengths)" in told["justification"]
    assert "its decay with distance: that was fitted" in found.prior
    assert found.prior in told["utility"]
    record_of_all = record(found)
    for never in ("so tuning costs nothing", "sees public data only", "writes synthetic counts only"):
        assert never not in record_of_all


def test_questions_tell_of_it(found):
    answers = {one.topic: one.answer for one in found.questions}
    assert "`synthmap verify` certifies that noise again as well" in answers["Algorithms and correctness"]
    assert "sums of commute lengths are measured once, one table is drawn once" in answers["Query model"]
    assert "from public data and from what is published." in answers["Side channels"]
    assert "measured with noise" in answers["Utility"]


def test_without_lengths_a_statement_has_no_word_of_them(small_release):
    """Its record has the fields it had before lengths could be measured; its bytes are pinned beside WORDING."""
    found = read_statement(small_release())
    assert "lengths" not in json.loads(record(found))["facts"]
    for never in ("commute lengths", "sums of lengths", "prior.lengths"):
        assert never not in record(found) + page(found) + text(found)
    assert "alone, so tuning costs nothing." in fields(found)["preprocessing_and_hyperparameter_tuning"]


def test_scales_that_the_curator_gave_are_not_told_as_measured(small_release):
    def change(manifest):
        manifest["prior"] |= {"class_edges_km": [9.0], "class_scales_km": [6.0, 12.0]}

    directory = small_release(change=change)
    found = read_statement(directory)
    assert found.facts.lengths is None
    assert found.promise == read_statement(directory, read_manifest(directory)).promise
    assert "measured" not in " ".join([*found.promise, found.prior])


def test_the_schema_documents_the_field_and_the_record_is_whole(small_release):
    of = schema()["$defs"]["Facts"]
    assert "lengths" in of["properties"]
    assert "lengths" not in of["required"]
    assert of["properties"]["lengths"]["description"]
    plan = {"epsilon": [3.92, 3.92], "scale_km": [6.0, 12.0]}
    assert verify(small_release(change=measure(), plan=plan, stated=True)).files == 6


def test_a_record_read_back_is_the_same(small_release):
    directory = small_release(change=measure(), stated=True)
    found = read_statement(directory)

    assert found == make_statement(read_manifest(directory), pq.read_table(directory / "plan.parquet"))
