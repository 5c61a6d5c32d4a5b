"""The made-up world in which the prior is the truth."""

import numpy as np
import pytest

from synthmap.analysis.prior_world import Setting, in_cells, prior_variances_km2, prior_world
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import pair
from synthmap.geography.prior import NO_TABLE, PriorModel


@pytest.fixture
def setting(town):
    places = np.array([3, 50, 200], np.int32)
    return Setting(town.tree, PriorModel(4.0, 2.0, 0.1, 0.0, 5.0, NO_TABLE), town.points(places), places, False, 2)


@pytest.fixture
def plan():
    def make(cells, alpha=1):
        three = np.full(3, cells)
        return PublishedPlan(
            destination=np.array([3, 50, 200], np.int32),
            headcount=np.array([4, 90, 1000]),
            size=np.array([4, 90, 1000]),
            cells_asked=three,
            cells=three,
            alpha_numerator=np.full(3, alpha),
            alpha_denominator=np.full(3, 2),
            keep_units=np.full(3, 2**16),
            predicted_km=np.full(3, np.nan),
            finest=np.full(3, -1),
        )

    return make


def totals(table, size):
    return np.bincount(table.destination, table.count, size)[[3, 50, 200]].tolist()


def test_both_tables_have_the_public_headcounts_and_are_the_same_every_time(setting, plan):
    true, drawn = prior_world(setting, plan(8))
    assert totals(true, 401) == totals(drawn, 401) == [4, 90, 1000]
    again, _ = prior_world(setting, plan(8))
    assert again.origin.tolist() == true.origin.tolist()
    assert (true.origin == 400).any()  # elsewhere has a share of the prior


def test_a_plan_of_another_geography_has_no_world(setting, plan):
    assert prior_world(setting, plan(5000)) is None


def test_cells_are_fewer_than_zones_and_keep_the_workers(setting, plan):
    paired = pair(*prior_world(setting, plan(8)), 400)
    cells = in_cells(paired, setting, plan(8))
    assert cells.origin.max() < 8
    assert cells.reference.sum() == cells.other.sum() == 1094
    assert cells.origin.size < paired.origin.size
    assert in_cells(paired, setting, plan(5000)) is None


def test_variances_are_those_of_the_prior(setting):
    assert (prior_variances_km2(setting) > 0).all()


def test_mass_counts_segments(plan):
    assert plan(8, alpha=3).mass(2).tolist() == [24.0, 24.0, 24.0]
