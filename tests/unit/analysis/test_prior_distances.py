"""What closed forms need of commute lengths under the prior, and the signed error that follows from it."""

from dataclasses import replace

import numpy as np
import pytest
from publishedplan import published_plan

from synthmap.analysis.lengths import mean_lengths
from synthmap.analysis.prior_distances import prior_cdf_width_km, prior_commutes
from synthmap.analysis.prior_world import Setting, domain_planned, prior_variances_km2, prior_world
from synthmap.analysis.table import pair, pair_km
from synthmap.geography.prior import NO_TABLE, PriorModel, prior_from

PLACES = [3, 50, 200]


@pytest.fixture
def setting(town):
    def make(elsewhere=0.0, segments=2, keep_by_prior=False):
        places = np.array(PLACES, np.int32)
        model = PriorModel(4.0, 2.0, elsewhere, 0.0, 5.0, NO_TABLE)
        return Setting(town.tree, model, town.points(places), places, keep_by_prior=keep_by_prior, segments=segments,
                       strength_inside=160.0, agreement=False)  # fmt: skip

    return make


def plan(cells, **changes):
    return published_plan(PLACES, [40, 90, 300], cells_asked=cells, cells=cells, alpha_denominator=2, **changes)


def cells_made(at, d, made):
    """Return how many cells coarsening makes of those asked for."""
    prior = prior_from(at.tree, at.model, at.points[d], at.destination[d])
    asked = made.cells_asked[d], 1
    return domain_planned(at.tree, at.points[d], prior, made.finest[d], asked, made.resampled).bounds.size - 1


def test_width_is_that_of_many_lengths_drawn_from_the_prior(setting, town):
    true, _ = prior_world(setting(), published_plan(PLACES, [60_000] * 3))
    km = pair_km(true.origin, true.destination, town.zones)
    found = prior_cdf_width_km(setting())
    assert (found >= np.sqrt(prior_variances_km2(setting()))).all()
    for width, place in zip(found, PLACES, strict=True):
        lengths = np.sort(km[true.destination == place])
        below = np.arange(1, lengths.size) / lengths.size
        assert width == pytest.approx(np.sqrt(below * (1 - below)) @ np.diff(lengths), rel=0.1)  # pieces have a width


@pytest.mark.parametrize(("elsewhere", "keep"), [(0.0, 1.0), (0.2, 1.0), (0.0, 0.25)])
def test_signed_error_is_the_mean_over_many_worlds(setting, town, elsewhere, keep):
    """Distance cells: their masses differ, so equal pseudo-counts pull averages away from the prior's."""
    at = setting(elsewhere, segments=2 if keep == 1 else 1)
    made = plan(12, finest=1, keep_units=round(2**16 * keep), alpha_numerator=1 if keep == 1 else 20)
    made = replace(made, cells=np.array([cells_made(at, d, made) for d in range(3)]))
    assert (made.cells > 4).all()
    found = prior_commutes(at, made).bias_km
    errors = []
    for seed in range(400):
        paired = pair(*prior_world(at, made, seed), len(town.zones))
        errors.append(mean_lengths(paired, pair_km(paired.origin, paired.destination, town.zones)).error)
    mean, deviation = np.mean(errors, axis=0), np.std(errors, axis=0) / 20
    assert (np.abs(found) > 4 * deviation).any()  # there is something to find
    assert (np.abs(mean - found) < 4 * deviation + 0.02 * np.abs(found)).all()


def test_one_cell_has_none_and_some_ways_of_dropping_are_not_modelled(setting):
    assert prior_commutes(setting(), plan(1)).bias_km.tolist() == [0.0] * 3
    some_dropped = plan(8, keep_units=2**15)
    assert np.isnan(prior_commutes(setting(), some_dropped).bias_km).all()
    assert np.isnan(prior_commutes(setting(segments=1, keep_by_prior=True), some_dropped).bias_km).all()
    assert np.isfinite(prior_commutes(setting(segments=1), some_dropped).bias_km).all()
    assert np.isnan(prior_commutes(setting(), plan(5000)).bias_km).all()
