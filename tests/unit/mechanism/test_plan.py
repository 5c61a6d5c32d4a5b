from dataclasses import replace

import numpy as np
import pytest

from synthmap.errors import ConfigurationError, PrivacyParameterError
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.mechanism.dirichlet import loss
from synthmap.mechanism.plan import LADDER, Plan, PlanSettings, plan_destinations, predicted_errors, settings_of
from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec

SETTINGS = PlanSettings(
    epsilon=4.0,
    delta=1e-5,
    rule=Rule.PDP,
    cells=0,
    finest=-1,
    keep=1.0,
    keep_by_prior=False,
    segments=1,
    scale_km=4.0,
    power=2.0,
    elsewhere_share=0.0,
    strength=20.0,
)
PLACES = np.arange(12, dtype=np.int32) * 30
HEADCOUNT = np.array([1, 1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000])


def test_each_destination_has_the_noise_that_was_certified_for_it(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, cells=24, segments=3))
    for i, n in enumerate(HEADCOUNT):
        found = minimum_alpha(epsilon=4.0, delta=1e-5, headcount=int(n), cells=72)
        assert plan.alpha()[i] == float(found.alpha)
        assert plan.delta[i] == found.certified_delta
    assert plan.synthetic_size.tolist() == HEADCOUNT.tolist()


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.6])
def test_the_planner_never_predicts_worse_than_the_prior_alone(town, epsilon):
    settings = replace(SETTINGS, epsilon=epsilon)
    plan = plan_destinations(town, PLACES, HEADCOUNT, settings)
    ones = np.ones((PLACES.size, 1), np.int64)
    alone = predicted_errors(town.tree, town.points(PLACES), HEADCOUNT, ones, ones * 1.0, None, settings)[:, 0]
    assert (plan.predicted_km <= alone + 1e-12).all()
    assert set(plan.cells.tolist()) <= {*LADDER, np.count_nonzero(town.zones.weight)}


def test_the_prior_alone_costs_nothing(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, cells=1))
    assert (plan.epsilon == 0).all()
    assert (plan.delta == 0).all()
    assert (plan.prior_share(1) == 1).all()
    assert loss(plan, SETTINGS).epsilon == 0


def test_more_budget_or_workers_never_leave_more_to_the_prior_much(town):
    shares = [
        plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=e)).prior_share(1) for e in (1.0, 4.0, 8.6)
    ]
    means = [share.mean() for share in shares]
    assert means[0] > means[1] > means[2]


def test_dropping_that_costs_too_much_moves_towards_keeping(town):
    settings = replace(SETTINGS, cells=100, keep=0.5)
    plan = plan_destinations(town, PLACES, HEADCOUNT, settings)
    assert plan.keep_units[0] == KEEP_UNITS // 2
    assert KEEP_UNITS // 2 < plan.keep_units[-1] <= KEEP_UNITS
    assert (plan.epsilon <= 4.0).all()
    assert (plan.epsilon_dropping[plan.keep_units < KEEP_UNITS] > 0).all()


@pytest.mark.parametrize("asked", [1, 3, 23, 100, 600])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3])
@pytest.mark.parametrize("finest", [-1, 0, 1, 2])
def test_cells_are_those_that_coarsening_makes(town, finest, share, asked):
    from synthmap.geography.prior import prior_from
    from synthmap.kernels.destination import coarsen

    settings = replace(SETTINGS, cells=asked, finest=finest, elsewhere_share=share)
    plan = plan_destinations(town, PLACES, HEADCOUNT, settings)
    for place, cells in zip(PLACES, plan.cells, strict=True):
        point = town.points(np.array([place]))[0]
        prior = prior_from(town.tree, point, 4.0, 2.0, share)
        assert coarsen(town.tree, point, prior, share, finest, asked).size - 1 == cells


def test_a_plan_survives_its_table(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, SETTINGS)
    back = Plan.from_table(plan.to_table())
    assert all(np.array_equal(getattr(plan, f), getattr(back, f)) for f in vars(plan))


def test_noise_that_fits_no_urn_is_refused():
    with pytest.raises(PrivacyParameterError, match=r"epsilon \(1e-08\) must be larger"):
        minimum_alpha(epsilon=1e-8, delta=0, headcount=10**6, cells=8 * 10**6, rule=Rule.PURE)


def test_settings_come_from_the_spec(town):
    def spec(**plan):
        return Spec.model_validate(
            {
                "name": "x",
                "zones": {"path": "z", "vintage": "v"},
                "tables": [{"path": "t", "vintage": "v"}],
                "privacy": {"epsilon": 2, "delta": 1e-6},
                "segments": "SA",
                "outside": "elsewhere",
                "plan": plan,
            }
        )

    settings = settings_of(spec(coarsening="distance", cells=20), town)
    assert (settings.finest, settings.cells, settings.segments) == (1, 20, 3)
    assert settings.elsewhere_share == 0.1
    assert settings_of(spec(coarsening="distance", finest="zone"), town).finest == 2
    assert settings_of(spec(keep="prior", keep_floor=0.25), town).keep_by_prior
    with pytest.raises(ConfigurationError, match=r"plan\.finest \(block\) must be one of county, tract, zone"):
        settings_of(spec(coarsening="distance", finest="block"), town)
    with pytest.raises(ConfigurationError, match="must be left out"):
        settings_of(spec(finest="tract"), town)


@pytest.mark.parametrize("finest", [0, 1, 2])
def test_the_planner_works_with_distance_coarsening(town, finest):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, finest=finest))
    assert np.isfinite(plan.predicted_km).all()
    assert plan.cells.max() > 1
    coarse = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, finest=finest, cells=4))
    assert (coarse.cells == 4).all()
