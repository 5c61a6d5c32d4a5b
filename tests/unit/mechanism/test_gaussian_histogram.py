"""The histogram with Gaussian noise: totals, loss, one noise for all destinations, and intervals that hold."""

from dataclasses import replace

import numpy as np
import pytest
from madeup import made_up
from plansettings import plan_settings

from synthmap.errors import PrivacyParameterError
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.histogram import loss, synthesize
from synthmap.mechanism.histogram_plan import plan_destinations
from synthmap.mechanism.table import Counts
from synthmap.privacy.gaussian import gaussian_delta, minimum_gaussian
from synthmap.privacy.rule import Rule

SETTINGS = plan_settings(mechanism="histogram", gaussian=True, rule=Rule.ADP, segments=2, cells=16, jobs=8, epsilon=0.5)


@pytest.mark.parametrize("changes", [{}, {"agreement": True}, {"cells": 0, "finest": 1, "either": True}, {"cells": 1}])
def test_totals_are_exact_and_the_loss_is_that_of_one_job(town, world, changes):
    places, headcount, counts = world
    settings = replace(SETTINGS, **changes)
    plan = plan_destinations(town, places, headcount, settings)
    table = synthesize(plan, counts, town, settings, seeded_stream(1))
    assert np.bincount(table.destination, table.workers.sum(axis=1), 401)[places].tolist() == headcount.tolist()
    count = table.workers.sum(axis=1)
    assert ((table.interval[:, 0] <= count) & (count <= table.interval[:, 1])).all()
    least, found = minimum_gaussian(0.5, 1e-5, 8), loss(plan, settings)
    assert set(plan.gaussian_units.tolist()) == {least.units}
    assert not plan.group_noise_units.any()
    assert (found.epsilon, found.delta, found.rule) == (least.epsilon, least.delta, Rule.ADP)
    assert gaussian_delta(least.units, 4.0, 8) <= 8e-5


def test_one_cell_costs_nothing(town):
    settings = replace(SETTINGS, cells=1, segments=1)
    plan = plan_destinations(town, np.array([3], np.int32), np.array([50]), settings)
    assert (plan.epsilon.tolist(), plan.delta.tolist()) == ([0.0], [0.0])


def test_more_jobs_are_predicted_to_err_less_than_as_many_alone(town):
    """The promise for all jobs together is shared, so the planner is to see less noise."""
    places, headcount = np.arange(5, dtype=np.int32) * 60, np.full(5, 300)
    plans = [plan_destinations(town, places, headcount, replace(SETTINGS, jobs=jobs)) for jobs in (1, 4, 16)]
    assert plans[0].predicted_km.mean() > plans[1].predicted_km.mean() > plans[2].predicted_km.mean()


def test_different_noise_at_two_destinations_is_refused(town, world):
    places, headcount, counts = world
    plan = plan_destinations(town, places, headcount, SETTINGS)
    units = plan.gaussian_units.copy()
    units[0] += 1
    with pytest.raises(PrivacyParameterError, match="must be the same at every destination"):
        synthesize(replace(plan, gaussian_units=units), counts, town, SETTINGS, seeded_stream(1))


def test_intervals_hold_where_the_prior_does(town):
    places, first = np.arange(100, 160, dtype=np.int32), np.arange(61) * 300
    settings = replace(SETTINGS, segments=1, cells=64, strength=20.0)
    origin = made_up(town, settings, places, first, np.random.default_rng(4))
    plan = plan_destinations(town, places, np.full(60, 300), settings)
    counts = Counts(first, origin, np.ones((origin.size, 1), np.int64))
    table = synthesize(plan, counts, town, settings, seeded_stream(6))
    true = np.zeros((60, 401))
    np.add.at(true, (np.repeat(np.arange(60), 300), origin), 1)
    seen = true[table.destination - 100, table.origin]
    inside = (table.interval[:, 0] <= seen) & (seen <= table.interval[:, 1])
    assert 0.8 < inside.mean() < 1
