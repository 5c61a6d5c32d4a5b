from dataclasses import replace

import numpy as np
import pytest
from plansettings import plan_settings

from synthmap.errors import ConfigurationError, PrivacyParameterError
from synthmap.geography.distance import great_circle_km
from synthmap.geography.prior import NO_TABLE, PriorTable, mass_below, prior_from
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism import dirichlet_plan
from synthmap.mechanism.dirichlet import loss, synthesize
from synthmap.mechanism.dirichlet_plan import LADDER, DirichletPlan, plan_destinations
from synthmap.mechanism.plan import model_of, settings_of
from synthmap.mechanism.predict import survey
from synthmap.mechanism.table import Counts
from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec

SETTINGS = plan_settings()
PLACES = np.arange(12, dtype=np.int32) * 30
HEADCOUNT = np.array([1, 1, 2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000])


def test_each_destination_has_the_noise_that_was_certified_for_it(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, cells=24, segments=3))
    for i, n in enumerate(HEADCOUNT):
        found = minimum_alpha(epsilon=4.0, delta=1e-5, headcount=int(n), cells=72)
        assert plan.alpha()[i] == float(found.alpha)
        assert plan.delta[i] == found.certified_delta
    assert plan.synthetic_size.tolist() == HEADCOUNT.tolist()


def error_with(town, settings, **changes):
    """Return the predicted errors of a fixed plan."""
    return plan_destinations(town, PLACES, HEADCOUNT, replace(settings, **changes)).predicted_km


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.6])
def test_the_planner_never_predicts_worse_than_the_prior_alone_or_any_fixed_number_of_cells(town, epsilon):
    settings = replace(SETTINGS, epsilon=epsilon)
    plan = plan_destinations(town, PLACES, HEADCOUNT, settings)
    assert (plan.predicted_km <= error_with(town, settings, cells=1)).all()
    for cells in LADDER[1:12]:
        assert (plan.predicted_km <= error_with(town, settings, cells=cells) * 1.01).all()  # hopeless ones are skipped
    assert set(plan.cells.tolist()) <= {*LADDER, np.count_nonzero(town.zones.weight)}


@pytest.mark.parametrize("epsilon", [1.0, 8.6])
def test_either_coarsening_is_never_predicted_worse_than_one_of_them(town, epsilon):
    settings = replace(SETTINGS, epsilon=epsilon, finest=2)
    either = plan_destinations(town, PLACES, HEADCOUNT, replace(settings, either=True))
    assert (either.predicted_km <= error_with(town, settings, finest=-1)).all()
    for cells in (16, 64, 256):
        assert (either.predicted_km <= error_with(town, settings, cells=cells) * 1.01).all()
    assert set(either.finest.tolist()) <= {-1, 2}


def test_a_plan_depends_on_public_figures_only(town):
    """The planner is given no origins; the same headcounts give the same plan, whatever its neighbours are."""
    whole = plan_destinations(town, PLACES, HEADCOUNT, SETTINGS)
    for i in range(PLACES.size):
        alone = plan_destinations(town, PLACES[i : i + 1], HEADCOUNT[i : i + 1], SETTINGS)
        assert all(getattr(alone, name)[0] == getattr(whole, name)[i] for name in vars(whole))


def test_a_better_prior_is_followed_more_and_predicted_to_err_less(town):
    weak, strong = replace(SETTINGS, epsilon=1.0, strength=2.0), replace(SETTINGS, epsilon=1.0, strength=200.0)
    found = [plan_destinations(town, PLACES, HEADCOUNT, s) for s in (weak, strong)]
    one = HEADCOUNT == 1  # drawn from a Dirichlet around the prior, one worker is a draw of the prior
    assert found[1].predicted_km[one] == pytest.approx(found[0].predicted_km[one])
    assert (found[1].predicted_km < found[0].predicted_km)[~one].all()
    assert found[1].prior_share.mean() >= found[0].prior_share.mean()


def test_cells_without_data_pull_towards_where_they_lie(town):
    """One cell a zone makes noise uniform over zones, far ones too: with little ε that is predicted to be bad."""
    every = int(np.count_nonzero(town.zones.weight))
    settings = replace(SETTINGS, epsilon=0.5, power=4.0)
    large = HEADCOUNT >= 100
    assert (error_with(town, settings, cells=every)[large] > 1.2 * error_with(town, settings, cells=1)[large]).all()


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_predicted_errors_are_those_measured_where_the_model_of_the_prior_holds(town, epsilon):
    """Origins are drawn as the prediction says: each destination's shares from a Dirichlet worth `strength` workers."""
    rng = np.random.default_rng(7)
    settings = replace(SETTINGS, epsilon=epsilon)
    places = np.sort(rng.choice(400, 300, replace=False)).astype(np.int32)
    headcount = rng.choice([1, 2, 5, 20, 80, 300], places.size)
    cumulative, points = town.tree.cumulative, town.points(np.arange(400))
    rows, origin, km = [0], [], []
    for place, n in zip(places, headcount, strict=True):
        prior = prior_from(town.tree, model_of(settings, NO_TABLE), points[place], int(place))
        mass = np.diff([mass_below(prior, cumulative, r) for r in range(401)]).astype(float)
        shares = rng.gamma(settings.strength * n / (n + 10) * mass / mass.sum())
        origin.append(np.sort(rng.choice(400, n, p=shares / shares.sum())))
        rows.append(rows[-1] + n)
        km.append(np.array([great_circle_km(points[place], p) for p in points]))
    counts = Counts(np.array(rows), np.concatenate(origin).astype(np.int32), np.ones((rows[-1], 1), np.int64))
    plan = plan_destinations(town, places, headcount, settings)
    true = np.array([lengths[o].mean() for lengths, o in zip(km, origin, strict=True)])
    squared = np.zeros(places.size)
    for seed in range(20):
        table = synthesize(plan, counts, town, settings, seeded_stream(seed))
        at = np.searchsorted(places, table.destination)
        total = np.bincount(at, np.array(km)[at, table.origin] * table.workers[:, 0], places.size)
        squared += (total / headcount - true) ** 2 / 20
    for n in (1, 2, 5, 20, 80, 300):
        here = headcount == n
        measured = np.sqrt(squared[here].mean())
        predicted = np.sqrt((plan.predicted_km[here] ** 2).mean())
        # where many cells hold many workers, what is told of the inside of cells is less than the model has
        assert measured == pytest.approx(predicted, rel=0.25 if n < 300 else 0.45)


def test_the_prior_alone_costs_nothing(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, cells=1))
    assert (plan.epsilon == 0).all()
    assert (plan.delta == 0).all()
    assert (plan.prior_share == 1).all()
    assert loss(plan, SETTINGS).epsilon == 0


def test_more_budget_or_workers_never_leave_more_to_the_prior_much(town):
    shares = [
        plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, epsilon=e)).prior_share for e in (1.0, 4.0, 8.6)
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
    from synthmap.kernels.destination import coarsen

    settings = replace(SETTINGS, cells=asked, finest=finest, elsewhere_share=share)
    plan = plan_destinations(town, PLACES, HEADCOUNT, settings)
    for place, cells in zip(PLACES, plan.cells, strict=True):
        point = town.points(np.array([place]))[0]
        prior = prior_from(town.tree, model_of(settings, NO_TABLE), point, int(place))
        assert coarsen(town.tree, point, prior, finest, asked, asked).size - 1 == cells


def test_a_plan_survives_its_table(town):
    plan = plan_destinations(town, PLACES, HEADCOUNT, SETTINGS)
    back = DirichletPlan.from_table(plan.to_table())
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
    allowed = [k for k in range(2, 30) if more_than_one(spec(coarsening="distance", cells=k), town)]
    assert 2 < allowed[0] < 20
    assert allowed == list(range(allowed[0], 30))


def more_than_one(spec, town):
    """Return whether a number of distance cells is allowed: where it is not, all would be one, and else never."""
    try:
        settings = settings_of(spec, town)
    except ConfigurationError as fault:
        assert "there are cells for all of them or none" in str(fault)
        settings = replace(settings_of(with_cells(spec, "auto"), town), cells=spec.plan.cells)
        assert set(plan_destinations(town, PLACES, HEADCOUNT, settings).cells.tolist()) <= {1, 2}
        return False
    assert plan_destinations(town, PLACES, HEADCOUNT, settings).cells.min() > 2
    return True


def with_cells(spec, cells):
    return spec.model_copy(update={"plan": spec.plan.model_copy(update={"cells": cells})})


@pytest.mark.parametrize("finest", [0, 1, 2])
def test_the_planner_works_with_distance_coarsening(town, finest):
    plan = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, finest=finest))
    assert np.isfinite(plan.predicted_km).all()
    assert plan.cells.max() > 1
    coarse = plan_destinations(town, PLACES, HEADCOUNT, replace(SETTINGS, finest=finest, cells=4))
    assert (coarse.cells == 4).all()


def test_a_public_table_makes_the_prior_worth_more_workers(town):
    origins = np.arange(100, 140, dtype=np.int32)
    first = np.zeros(len(town.zones) + 1, np.int64)
    first[201:] = origins.size  # all of destination 200
    known = PriorTable(first, origins, np.full(origins.size, 25))
    places = np.array([199, 200], np.int32)
    one, headcount = np.array([1], np.int64), np.array([30, 90])
    for mixing in (0.9, 0.5):
        model = model_of(replace(SETTINGS, mixing=mixing), known)
        points, scale_km = town.points(places), np.full(2, model.scale_km)
        found = survey(town.tree, model, points, scale_km, places, headcount, one, one - 2, np.ones(2, np.int64))
        share = mixing * 1000 / 1005
        misfit = (1 - share) ** 2 / (1 + 5 * 0.9) + share**2 / 501
        assert found.strength == pytest.approx([5 * 0.75, 1 / misfit - 1])
        plan = plan_destinations(town, places, headcount, replace(SETTINGS, mixing=mixing), known)
        assert plan.prior_strength == pytest.approx(found.strength)
        assert DirichletPlan.from_table(plan.to_table()).prior_strength.tolist() == plan.prior_strength.tolist()


def test_another_prior_needs_no_noise_to_be_found_anew(town, monkeypatch):
    """Every release that measures lengths has scales of its own; another ε, though, needs other noise."""
    found, places, headcount = [], np.arange(3, dtype=np.int32), np.array([5, 70, 911])

    def counted(**asked):
        found.append(asked["headcount"])
        return minimum_alpha(**asked)

    monkeypatch.setattr(dirichlet_plan, "minimum_alpha", counted)
    settings = plan_settings(cells=7, epsilon=1.2345)
    made = [
        plan_destinations(town, places, headcount, one)
        for one in (settings, replace(settings, edges_km=(5.0,), scales_km=(3.0, 6.0), strength=15.0))
    ]
    assert sorted(found) == headcount.tolist()
    assert made[0].alpha_numerator.tolist() == made[1].alpha_numerator.tolist()
    assert made[0].scale_km.tolist() != made[1].scale_km.tolist()
    plan_destinations(town, places, headcount, replace(settings, epsilon=1.2346))
    assert len(found) == 6
