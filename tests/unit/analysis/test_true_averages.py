"""Errors by true average commute, which is not public, against worlds in which the prior is as wrong as believed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plansettings import plan_settings
from publishedplan import published_plan
from scipy.stats import gamma

from synthmap.analysis.classes import by_true_length
from synthmap.analysis.expectation import expectation
from synthmap.analysis.lengths import mean_lengths
from synthmap.analysis.prior_distances import prior_commutes
from synthmap.analysis.prior_world import Setting, domain_planned
from synthmap.analysis.table import ODTable, pair, pair_km
from synthmap.analysis.true_averages import TrueAverages, errors_by_true_average, true_averages
from synthmap.geography.prior import NO_TABLE, mass_below, prior_from, worth
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism import dirichlet, dirichlet_plan, histogram, histogram_plan
from synthmap.mechanism.plan import model_of
from synthmap.mechanism.table import Counts
from synthmap.published.expected import LENGTH_EDGES_KM

PLACES = np.arange(12, dtype=np.int32) * 30 + 3
WORKERS = np.array([1, 60, 2, 900, 5, 10, 1, 300, 30, 3, 700, 100])
MANIFEST = SimpleNamespace(plan=SimpleNamespace(finest="tract"), zones=SimpleNamespace(levels=["county", "tract"]))
WORLDS = 2000
MECHANISMS = {"dirichlet": (dirichlet, dirichlet_plan), "histogram": (histogram, histogram_plan)}


class World:
    """A plan, and worlds of the truth that it allows for: Dirichlet between cells and inside them."""

    def __init__(self, town, mechanism, **settings):
        self.town, (self.mechanism, planner) = town, MECHANISMS[mechanism]
        self.settings = plan_settings(strength=15.0, epsilon=2.0, **settings)
        self.made = planner.plan_destinations(town, PLACES, WORKERS, self.settings)
        model = model_of(self.settings, NO_TABLE)
        self.at = Setting(town.tree, model, town.points(PLACES), PLACES, keep_by_prior=False, segments=1,
                          strength_inside=self.settings.strength_inside, agreement=False)  # fmt: skip
        names = set(vars(published_plan(PLACES, WORKERS))) & set(vars(self.made)) - {"destination", "headcount"}
        self.plan = published_plan(PLACES, WORKERS, **{name: getattr(self.made, name) for name in names})
        self.shares = [self._shares(d) for d in range(PLACES.size)]

    def _shares(self, d):
        """Return the prior share of each zone, the cells' bounds, and the strengths between and inside cells."""
        tree, at, plan = self.town.tree, self.at, self.plan
        prior = prior_from(tree, at.model, at.points[d], PLACES[d])
        asked = plan.cells_asked[d], plan.groups_asked[d]
        bounds = domain_planned(tree, at.points[d], prior, plan.finest[d], asked, plan.resampled).bounds
        mass = np.array([mass_below(prior, tree.cumulative, rank) for rank in range(bounds[-1] + 1)])
        strength, cells = worth(at.model, PLACES[d], WORKERS[d]), bounds.size - 1
        return np.diff(mass) / mass[-1], bounds, strength, (cells + strength) ** 2 / (cells * (1.0 + strength)) - 1.0

    def truth(self, rng):
        """Return true counts: what is inside cells varies by h_k of `predicted_errors`, where these are alike."""
        rows = []
        for d, (share, bounds, between, inside) in enumerate(self.shares):
            cells = np.add.reduceat(share, bounds[:-1])
            within = np.repeat(cells, np.diff(bounds))
            drawn = rng.standard_gamma(inside * np.divide(share, within, out=np.zeros_like(share), where=within > 0))
            of_cells = np.add.reduceat(drawn, bounds[:-1])
            p = drawn * np.repeat(rng.dirichlet(between * cells) / np.maximum(of_cells, 1e-300), np.diff(bounds))
            rows.append(rng.multinomial(WORKERS[d], p / p.sum()))
        destination, origin = np.nonzero(rows)
        workers = np.array(rows)[destination, origin][:, None]
        return Counts(np.searchsorted(destination, np.arange(PLACES.size + 1)), origin.astype(np.int32), workers)

    def by_length(self, seed):
        """Return measured errors of one world by the low end of the class."""
        zones = self.town.zones
        truth = self.truth(np.random.default_rng(seed))
        drawn = self.mechanism.synthesize(self.made, truth, self.town, self.settings, seeded_stream(seed))
        place = np.repeat(PLACES, np.diff(truth.first_row))
        paired = pair(
            ODTable(truth.origin, place, truth.workers[:, 0]),
            ODTable(drawn.origin, drawn.destination, drawn.workers[:, 0]),
            len(zones),
        )
        found = by_true_length(mean_lengths(paired, pair_km(paired.origin, paired.destination, zones)))
        return {one.low: one.error for one in found}


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("dirichlet", {"cells": 1}),
        ("dirichlet", {"cells": 12}),
        ("dirichlet", {"cells": 12, "finest": 1}),
        ("dirichlet", {}),
        ("histogram", {}),
        ("histogram", {"finest": 1}),
    ],
)
def test_errors_by_true_average_are_means_over_worlds_as_wrong_as_is_believed(town, mechanism, settings):
    """Short commutes look overstated and long ones understated; how many destinations are of a class is by chance."""
    world = World(town, mechanism, **settings)
    told = {one.low: one for one in expectation(MANIFEST, world.plan, world.at, town.zones).by_length}
    worlds = [world.by_length(seed) for seed in range(WORLDS)]
    near, share = ({"abs": 0.22, "rel": 0.15}, 0.2) if mechanism == "dirichlet" else ({"abs": 0.3}, 0.45)
    biases = []
    for low in (5.0, 10.0, 20.0):  # nearly nobody is in the others
        one, errors = told[low], [found[low] for found in worlds if low in found]
        weights = [error.workers for error in errors]
        assert one.workers == pytest.approx(sum(weights) / WORLDS, rel=0.06, abs=16)
        assert one.destinations == pytest.approx(sum(error.destinations for error in errors) / WORLDS, abs=0.6)
        mae, bias, square = (np.average([getattr(e, name) ** power for e in errors], weights=weights)
                             for name, power in (("mae_km", 1), ("bias_km", 1), ("rmse_km", 2)))  # fmt: skip
        assert one.mae_km == pytest.approx(mae, rel=share)
        assert one.rmse_km == pytest.approx(np.sqrt(square), rel=share)
        assert one.bias_km == pytest.approx(bias, **near)
        biases.append(one.bias_km)
    assert biases[0] > biases[1] + 0.5 > biases[2] + 0.75
    assert told[40.0].bias_km < -5.0


@pytest.mark.parametrize("settings", [{}, {"finest": 1}])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_classes_of_true_averages_add_up_to_all_destinations(town, mechanism, settings):
    world = World(town, mechanism, **settings)
    commutes = prior_commutes(world.at, world.plan)
    averages = true_averages(world.at, world.plan, commutes)
    rmse, bias = world.plan.predicted_km, np.nan_to_num(commutes.bias_km)
    chance, whole, square = np.zeros(12), np.zeros(12), np.zeros(12)
    for one in errors_by_true_average(averages, rmse, bias, LENGTH_EDGES_KM):
        chance += one.chance
        whole += one.chance * one.bias_km
        square += one.chance * one.rmse_km**2
    np.testing.assert_allclose(chance, 1.0)
    np.testing.assert_allclose(whole, bias, atol=1e-9)
    np.testing.assert_allclose(square, rmse**2)  # what is left besides the slope is at least 0


def test_errors_in_a_class_are_integrals_over_the_true_average():
    mean, variance, slope = (
        np.array([12.0, 12.0, 3.0, 9.0]),
        np.array([30.0, 0.01, 16.0, 1e-9]),
        np.array([0.4, 1, 0.7, 0]),
    )
    bias, rmse = np.array([1.0, -0.5, 0.0, 2.0]), np.array([4.0, 1.0, 3.0, 2.5])
    length = gamma.ppf((np.arange(200_000) + 0.5) / 200_000, (mean**2 / variance)[:, None]) * (variance / mean)[:, None]
    error = bias[:, None] - slope[:, None] * (length - mean[:, None])
    square = error**2 + (rmse**2 - bias**2 - slope**2 * variance)[:, None]
    for one in errors_by_true_average(TrueAverages(mean, variance, slope), rmse, bias, LENGTH_EDGES_KM):
        inside = (length >= one.low) & (length < one.high)
        np.testing.assert_allclose(one.chance, inside.mean(axis=1), atol=1e-5)
        for d in np.flatnonzero(inside.mean(axis=1) > 1e-3):
            assert one.bias_km[d] == pytest.approx(error[d, inside[d]].mean(), abs=0.01)
            assert one.rmse_km[d] ** 2 == pytest.approx(square[d, inside[d]].mean(), rel=0.01)


def test_what_is_unknown_of_one_destination_is_of_classes_that_it_may_be_in(town):
    averages = TrueAverages(np.array([12.0, 50.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5]))
    found = errors_by_true_average(averages, np.array([3.0, np.nan]), np.array([np.nan, 0.0]), LENGTH_EDGES_KM)
    one = next(one for one in found if one.low == 10.0)
    assert one.rmse_km[0] == pytest.approx(3.0, abs=0.01)
    assert np.isnan([one.bias_km[0], one.rmse_km[1]]).all()
    world = World(town, "histogram")
    assert expectation(MANIFEST, world.plan, replace(world.at, agreement=True), town.zones).by_length == []
    other = replace(world.plan, cells_asked=world.plan.cells_asked + 1)
    assert expectation(MANIFEST, other, world.at, town.zones).by_length == []
