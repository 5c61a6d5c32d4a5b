"""The histogram's plan: what it spends, how it chooses, and that it knows public figures only."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from madeup import made_up
from plansettings import plan_settings

from synthmap.errors import PrivacyParameterError
from synthmap.geography.distance import great_circle_km
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.dirichlet_plan import plan_destinations as plan_dirichlet
from synthmap.mechanism.histogram import synthesize
from synthmap.mechanism.histogram_plan import HistogramPlan, plan_destinations
from synthmap.mechanism.table import Counts
from synthmap.privacy.histogram import histogram_epsilon

SETTINGS = plan_settings(mechanism="histogram", finest=1, either=True)
PLACES = np.arange(12, dtype=np.int32) * 30
HEADCOUNT = np.array([1, 1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_what_is_stated_is_what_the_noise_costs(town, epsilon):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=epsilon))
    for units, groups, cells, stated in zip(
        plan.noise_units.tolist(), plan.group_noise_units.tolist(), plan.cells, plan.epsilon, strict=True
    ):
        assert stated == (0.0 if cells == 1 else float(histogram_epsilon(units, groups)))
        assert stated <= epsilon
    assert not plan.delta.any()


def test_more_epsilon_is_predicted_to_err_less_and_to_need_the_prior_less(town):
    plans = [plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=e)) for e in (0.2, 1.0, 5.0, 25.0)]
    for coarse, fine in itertools.pairwise(plans):
        assert np.average(fine.predicted_km) < np.average(coarse.predicted_km)
        assert np.average(fine.prior_share) < np.average(coarse.prior_share)
        assert np.average(fine.common_part) > np.average(coarse.common_part)
        assert np.average(fine.share_variance) <= np.average(coarse.share_variance)


def test_one_worker_whom_noise_hides_errs_as_two_draws_of_the_prior(town):
    """What resampling predicts of one cell: reading knows nothing, and rounding puts the worker somewhere."""
    one = HEADCOUNT == 1
    noisy = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=0.02, cells=9))
    resampled = plan_dirichlet(town, PLACES, HEADCOUNT, plan_settings(cells=1))
    assert (noisy.cells[one] > 1).all()
    assert noisy.predicted_km[one] == pytest.approx(resampled.predicted_km[one], rel=0.1)


def test_the_planner_is_never_predicted_worse_than_the_prior_alone(town):
    for epsilon in (0.05, 1.0, 8.6):
        plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=epsilon))
        alone = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=epsilon, cells=1, finest=-1))
        assert (plan.predicted_km <= alone.predicted_km * 1.0001).sum() >= 11
        assert (plan.common_part >= alone.common_part - 1e-9).all()


def test_large_workplaces_get_noisy_groups_where_noise_is_heavy(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=0.3, finest=-1, cells=400))
    assert (plan.group_noise_units > 0).any()
    assert (plan.groups[plan.group_noise_units > 0] < plan.cells[plan.group_noise_units > 0]).all()


def test_every_zone_may_be_a_cell_where_cells_are_by_prior_mass_alone(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=25.0, finest=-1))
    assert plan.cells_asked.max() == len(town.zones) + 1


def test_all_units_of_a_level_may_be_cells_however_few_they_are(town):
    plan = plan_destinations(town, PLACES, np.full(len(PLACES), 1000), replace(SETTINGS, finest=1, either=False))
    assert (plan.cells > 20).all()


def test_a_plan_depends_on_its_own_headcount_only(town):
    whole = plan_destinations(town, PLACES, HEADCOUNT, SETTINGS)
    for i in (0, 5, 11):
        alone = plan_destinations(town, PLACES[i : i + 1], HEADCOUNT[i : i + 1], SETTINGS)
        assert alone.to_table().to_pylist()[0] == whole.to_table().to_pylist()[i]


def test_the_predicted_error_is_about_what_comes_out(town):
    """True origins scatter around the prior as the planner supposes; the error of average commutes is measured."""
    settings = replace(SETTINGS, epsilon=2.0, strength=1e6, strength_inside=1e6)
    places, headcount = np.full(60, 150, np.int32) + np.arange(60, dtype=np.int32), np.full(60, 40)
    plan = plan_destinations(town, places, headcount, settings)
    first = np.arange(61) * 40
    origin = made_up(town, settings, places, first, np.random.default_rng(3))
    table = synthesize(plan, Counts(first, origin, np.ones((2400, 1), np.int64)), town, settings, seeded_stream(5))
    where = town.points(np.arange(400, dtype=np.int32))
    off = []
    for i, d in enumerate(places):
        km = np.array([great_circle_km(town.points(places)[i], one) for one in where])
        drawn = table.destination == d
        off.append(
            km[origin[first[i] : first[i + 1]]].mean()
            - np.average(km[table.origin[drawn]], weights=table.workers[drawn, 0])
        )
    assert 0.5 < np.sqrt(np.mean(np.square(off))) / plan.predicted_km.mean() < 2


@pytest.mark.parametrize("cells", [32, 64])
def test_everywhere_else_adds_nothing_to_what_lies_inside_cells(town, cells):
    """It has no length: where a tenth or a third lives there, average commutes are predicted to err about as much."""
    none, tenth, third = (
        plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=2.0, cells=cells, elsewhere_share=share))
        for share in (0.0, 0.1, 0.33)
    )
    for some in (tenth, third):
        assert 0.9 < np.exp(np.mean(np.log(some.predicted_km / none.predicted_km))) < 1.02


def test_the_error_of_a_share_counts_the_noise_of_all_segments(town):
    """The workers of half of the cells, over many draws, beside √(q(1 − q)v): with three segments as with one."""
    places, headcount = np.arange(100, 160, dtype=np.int32), np.full(60, 600)
    first, off = np.arange(61) * 600, []
    for segments in (1, 3):
        settings = replace(SETTINGS, epsilon=0.5, finest=-1, cells=32, segments=segments, strength=5.0)
        origin = made_up(town, settings, places, first, np.random.default_rng(11))
        workers = np.zeros((origin.size, segments), np.int64)
        workers[np.arange(origin.size), np.arange(origin.size) % segments] = 1
        plan = plan_destinations(town, places, headcount, settings)
        table = synthesize(plan, Counts(first, origin, workers), town, settings, seeded_stream(12))
        half = origin.reshape(60, 600) < 200
        errors = []
        for i, d in enumerate(places):
            drawn = (table.destination == d) & (table.origin < 200)
            errors.append(table.workers[drawn].sum() - half[i].sum())
        share = half.mean()
        stated = 600 * np.sqrt(share * (1 - share) * plan.share_variance.mean())
        off.append((np.sqrt(np.mean(np.square(errors))), stated))
    (one, stated_one), (three, stated_three) = off
    assert stated_three > 1.4 * stated_one
    assert 0.4 < one / stated_one < 1.6
    assert 0.4 < three / stated_three < 1.6


def test_tables_of_plans_come_back(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, SETTINGS)
    again = HistogramPlan.from_table(plan.to_table())
    assert again.noise_units.tolist() == plan.noise_units.tolist()


def test_an_epsilon_too_small_is_refused(town):
    with pytest.raises(PrivacyParameterError, match="must be larger"):
        plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=1.5e-9))
