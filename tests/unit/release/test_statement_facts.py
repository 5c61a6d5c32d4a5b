"""The figures of a statement: copied from the manifest, or bounds rounded to the safe side."""

import math

import numpy as np
import pyarrow as pa
import pytest

from synthmap.release.manifest import read_manifest
from synthmap.release.statement_facts import bound_beliefs, form_of, make_facts, mostly_prior_below, posterior_at_most


def facts(directory, **plan):
    return make_facts(read_manifest(directory), pa.table(plan or {"headcount": [4, 5], "prior_share": [0.2, 0.1]}))


def set_privacy(**values):
    return lambda manifest: manifest["privacy"].update(values)


def test_they_are_those_of_the_manifest(small_release):
    directory = small_release()
    manifest, found = read_manifest(directory), facts(directory)
    for name in ("unit", "adjacency", "dp", "pdp_cells", "certified_per_job", "assumptions", "rule"):
        assert getattr(found, name) == getattr(manifest.privacy, name)
    assert (found.release, found.workers, found.destinations) == (manifest.release, 9, 2)


@pytest.mark.parametrize(
    ("values", "form"),
    [
        ({}, "probabilistic"),
        ({"rule": "adp", "pdp_cells": None}, "approximate"),
        ({"pdp_cells": None}, "approximate"),
        ({"rule": "pure", "dp": {"epsilon": 4.0, "delta": 0.0}, "pdp_cells": None}, "pure"),
        ({"rule": "pure", "dp": {"epsilon": 4.0, "delta": 0.0}}, "pure"),
        ({"rule": "adp"}, "approximate"),
    ],
)
def test_the_form_is_the_strongest_that_was_promised(small_release, values, form):
    assert form_of(read_manifest(small_release(change=set_privacy(**values))).privacy) == form


def test_a_bound_is_that_of_bayes():
    """A belief of 1 % times a ratio of e⁴ = 54.598 has the odds 54.598 : 99."""
    found = bound_beliefs("probabilistic", 4.0, 1e-6)
    assert (found.factor, found.chance) == (54.5982, 1e-6)
    assert [belief.prior for belief in found.beliefs] == [0.001, 0.01, 0.1, 0.5]
    assert found.beliefs[1].posterior == pytest.approx(54.5982 / (54.5982 + 99), abs=1e-6)


def test_a_posterior_has_the_odds_of_the_prior_times_the_factor():
    assert posterior_at_most(0.01, 99.0) == pytest.approx(0.5)
    assert posterior_at_most(0.2, 1.0) == pytest.approx(0.2)
    assert posterior_at_most(0.01, 1e300) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["pure", "probabilistic", "approximate"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 4.0, 8.6, 30.0, 699.0, 701.0, 1e6])
def test_no_bound_is_below_the_truth(form, epsilon):
    found = bound_beliefs(form, epsilon, 1e-6)
    times = 2 if form == "approximate" else 1
    assert found.chance == times * 1e-6
    if epsilon > 700:
        assert found.factor is None
    else:
        assert times * math.exp(epsilon) <= found.factor <= times * math.exp(epsilon) * 1.00002
    for belief in found.beliefs:
        odds = math.inf if found.factor is None else times * math.exp(epsilon) * belief.prior / (1 - belief.prior)
        assert belief.posterior >= (1.0 if math.isinf(odds) else odds / (1 + odds)) * (1 - 1e-15)
        assert belief.posterior <= 1


def test_several_jobs_are_bounded_together_and_one_by_one(small_release):
    values = {"max_jobs_per_worker": 2, "dp": {"epsilon": 8.0, "delta": 2e-6}}
    together, one = facts(small_release(change=set_privacy(**values))).odds
    assert (together.jobs, together.epsilon, together.delta) == (2, 8.0, 2e-6)
    assert (one.jobs, one.epsilon, one.delta) == (1, 4.0, 1e-6)


@pytest.mark.parametrize(
    ("headcount", "share", "below"),
    [([1, 10, 100], [0.9, 0.4, 0.1], 2), ([1, 10, 100], [0.9, 0.6, 0.1], 11), ([1, 10], [0.5, 0.2], None),
     ([1, 10], [0.2, 1.0], 11), ([], [], None)],
)  # fmt: skip
def test_below_which_size_figures_are_mostly_prior(headcount, share, below):
    assert mostly_prior_below(np.array(headcount, int), np.array(share, float)) == below


def test_shares_are_told_only_where_the_plan_has_them(small_release):
    directory = small_release()
    found = facts(directory, headcount=[1, 4, 5], prior_share=[0.9, 0.2, 0.1]).mostly_prior
    assert (found.below, found.destinations, found.workers_share, found.largest) == (2, 1, 0.1, 0.9)
    assert facts(directory, headcount=[4, 5]).mostly_prior is None
    assert facts(directory, headcount=[4, 5], prior_share=[float("nan")] * 2).mostly_prior is None
