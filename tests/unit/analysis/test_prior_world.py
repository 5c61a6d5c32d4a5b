"""The made-up world in which the prior is the truth."""

from dataclasses import replace

import numpy as np
import pytest
from publishedplan import published_plan

from synthmap.analysis.prior_world import Setting, in_cells, prior_variances_km2, prior_world
from synthmap.analysis.table import pair
from synthmap.geography.prior import NO_TABLE, PriorModel


@pytest.fixture
def setting(town):
    places = np.array([3, 50, 200], np.int32)
    return Setting(
        town.tree,
        PriorModel(4.0, 2.0, 0.1, 0.0, 5.0, NO_TABLE),
        town.points(places),
        places,
        keep_by_prior=False,
        segments=2,
        strength_inside=160.0,
        agreement=False,
    )


@pytest.fixture
def plan():
    def make(cells, alpha=1, units=0):
        groups = 4 if units else 1
        return published_plan(
            [3, 50, 200], [4, 90, 1000], cells_asked=cells, cells=cells, alpha_numerator=alpha, alpha_denominator=2,
            groups_asked=groups, groups=groups, noise_units=units,
        )  # fmt: skip

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
    assert prior_world(setting, plan(5000, units=2**30)) is None


def test_noisy_counts_are_read_in_that_world_too(setting, plan):
    true, drawn = prior_world(setting, plan(8, units=2**10))
    assert totals(true, 401) == totals(drawn, 401) == [4, 90, 1000]
    little_noise = in_cells(pair(true, drawn, 400), setting, plan(8, units=2**10))
    assert np.abs(little_noise.reference - little_noise.other).sum() < 40


def test_cells_are_fewer_than_zones_and_keep_the_workers(setting, plan):
    paired = pair(*prior_world(setting, plan(8)), 400)
    cells = in_cells(paired, setting, plan(8))
    assert cells.origin.max() < 8
    assert cells.reference.sum() == cells.other.sum() == 1094
    assert cells.origin.size < paired.origin.size
    assert in_cells(paired, setting, plan(5000)) is None


@pytest.mark.parametrize(("share", "cells"), [(0.1, 8), (0.3, 20), (0.6, 20)])
def test_noise_pulls_everywhere_else_neither_down_nor_up(town, setting, plan, share, cells):
    """However heavy it is: α = 10 for each cell. One cell for everywhere else would get 1/20 instead of 0.6."""
    at = replace(setting, model=setting.model._replace(elsewhere_share=share))
    drawn = [prior_world(at, plan(cells, alpha=20), seed)[1] for seed in range(100)]
    away = np.array([[table.count[(table.origin == 400) & (table.destination == d)].sum() for d in (50, 200)]
                     for table in drawn]).mean(axis=0) / [90, 1000]  # fmt: skip
    assert away == pytest.approx([share] * 2, abs=0.5 / cells + 0.03)


def test_variances_are_those_of_the_prior(setting):
    assert (prior_variances_km2(setting) > 0).all()


def test_mass_counts_segments(plan):
    assert plan(8, alpha=3).mass(2).tolist() == [24.0, 24.0, 24.0]
