"""Expected errors by class of destination, against many worlds in which the prior is the truth."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plansettings import plan_settings
from publishedplan import published_plan

from synthmap.analysis.comparison import measure
from synthmap.analysis.expectation import expectation
from synthmap.analysis.measures import common_part, count_pairs
from synthmap.analysis.prior_world import Setting, in_cells, prior_world
from synthmap.analysis.table import pair
from synthmap.geography.prior import NO_TABLE, PriorModel
from synthmap.mechanism.dirichlet_plan import plan_destinations

PLACES = np.arange(12, dtype=np.int32) * 30 + 3
WORKERS = np.array([1, 60, 2, 900, 5, 10, 1, 300, 30, 3, 700, 100])
MANIFEST = SimpleNamespace(plan=SimpleNamespace(finest="tract"), zones=SimpleNamespace(levels=["county", "tract"]))
WORLDS = 200
NAMES = ("mae_km", "mae_km_unweighted", "bias_km", "bias_km_unweighted", "rmse_km")


@pytest.fixture
def planned(town):
    """Return a setting and a plan by distance that takes the prior to be nearly the truth."""
    settings = plan_settings(cells=12, finest=1, strength=1e9, epsilon=2.0)
    made = plan_destinations(town, PLACES, WORKERS, settings)
    model = PriorModel(settings.scale_km, settings.power, settings.elsewhere_share, 0.0, settings.strength, NO_TABLE)
    at = Setting(town.tree, model, town.points(PLACES), PLACES, keep_by_prior=False, segments=1,
                 strength_inside=160.0, agreement=False)  # fmt: skip
    names = ("cells_asked", "cells", "finest", "predicted_km", "alpha_numerator", "alpha_denominator")
    return at, published_plan(PLACES, WORKERS, **{name: getattr(made, name) for name in names})


def mean_over_worlds(worlds, name):
    """Return the mean of a field of errors and its standard error; of rmse, the root of the mean square."""
    each = np.array([getattr(one, name) for one in worlds])
    if name == "rmse_km":
        each = each**2
        return np.sqrt(each.mean()), each.std() / np.sqrt(each.size) / (2 * np.sqrt(each.mean()))
    return each.mean(), each.std() / np.sqrt(each.size)


def test_errors_by_class_are_the_means_over_many_worlds(town, planned):
    at, plan = planned
    found = expectation(MANIFEST, plan, at, town.zones)
    worlds = [measure(pair(*prior_world(at, plan, seed), len(town.zones)), town.zones)[0] for seed in range(WORLDS)]
    pulled = 0
    for by in ("by_headcount", "by_density"):
        for place, told in enumerate(getattr(found, by)):
            errors = [getattr(world, by)[place].error for world in worlds]
            assert {(error.destinations, error.workers) for error in errors} == {(told.destinations, told.workers)}
            for name in NAMES:
                value, (mean, error) = getattr(told, name), mean_over_worlds(errors, name)
                off = 0.02 if name.startswith("bias") else 0.25  # what a plan predicts is rough for few workers
                assert abs(value - mean) < 4 * error + off * abs(mean), (by, told.low, name, value, mean, error)
                pulled += name == "bias_km" and abs(value) > 4 * error
            assert told.mae_km >= abs(told.bias_km)
            assert told.mae_km_unweighted >= abs(told.bias_km_unweighted)
    assert pulled >= 6  # there is something to find


def test_classes_add_up_to_the_whole_table(town, planned):
    at, plan = planned
    found = expectation(MANIFEST, plan, at, town.zones)
    for classes in (found.by_headcount, found.by_density):
        assert len(classes) >= 3
        workers, destinations = ([getattr(one, name) for one in classes] for name in ("workers", "destinations"))
        for name in NAMES:
            weight = destinations if name.endswith("unweighted") else workers
            power = 2 if name == "rmse_km" else 1
            whole = np.average([getattr(one, name) ** power for one in classes], weights=weight) ** (1 / power)
            assert whole == pytest.approx(getattr(found, f"distance_{name}"))


def test_what_is_unknown_at_one_destination_is_of_its_class_alone(town, planned):
    at, plan = planned
    at = replace(at, keep_by_prior=True)
    keep, predicted = plan.keep_units.copy(), plan.predicted_km.copy()
    keep[3], predicted[1] = 2**15, np.nan  # of 900 and of 60 workers
    found = expectation(MANIFEST, replace(plan, keep_units=keep, predicted_km=predicted), at, town.zones)
    assert [one.bias_km is None for one in found.by_headcount] == [False, False, False, False, True]
    assert [one.mae_km_unweighted is None for one in found.by_headcount] == [False, False, False, True, False]
    assert found.distance_bias_km is found.distance_mae_km is found.distance_rmse_km is None


def test_where_empty_cells_are_dropped_cells_agree_with_many_worlds(town, planned):
    at, _ = planned
    plan = published_plan(PLACES, WORKERS, cells_asked=16, cells=16, alpha_numerator=8, keep_units=2**14)
    found = expectation(MANIFEST, plan, at, town.zones)
    assert found.if_prior_were_true is not None  # cells are those asked for
    worlds = [in_cells(pair(*prior_world(at, plan, seed), len(town.zones)), at, plan) for seed in range(WORLDS)]
    assert found.cpc_cells == pytest.approx(np.mean([common_part(one) for one in worlds]), abs=0.01)
    pairs = [count_pairs(one) for one in worlds]
    true, drawn, both = (sum(getattr(one, name) for one in pairs) for name in ("reference", "other", "common"))
    assert found.spurious_cells == pytest.approx(1 - both / drawn, abs=0.02)
    assert found.missing_cells == pytest.approx(1 - both / true, abs=0.01)
    all_kept = expectation(MANIFEST, replace(plan, keep_units=plan.keep_units * 4), at, town.zones)
    assert all_kept.spurious_cells > found.spurious_cells + 0.05
    by_mass = expectation(MANIFEST, plan, replace(at, keep_by_prior=True), town.zones)
    assert by_mass.cpc_cells is by_mass.spurious_cells is by_mass.missing_cells is None
