from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.geography.coarsening import cell_bounds, has_own_cell, split_by_distance, split_by_mass
from synthmap.geography.distance import great_circle_km
from synthmap.geography.prior import mass_below, prior_from
from synthmap.kernels.destination import coarsen


@pytest.fixture(scope="module")
def here(town):
    point = town.points(np.array([123]))[0]
    return point, prior_from(town.tree, point, 4.0, 2.0, 0.1)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.sampled_from([-1, 0, 1, 2]), st.floats(0, 0.9), st.integers(0, 399))
def test_every_domain_is_a_partition_of_all_origins(town, cells, finest, share, place):
    point = town.points(np.array([place]))[0]
    prior = prior_from(town.tree, point, 4.0, 2.0, share)
    bounds = coarsen(town.tree, point, prior, share, finest, cells)
    assert bounds[0] == 0
    assert bounds[-1] == len(town.zones) + 1
    assert (np.diff(bounds) > 0).all()
    assert bounds.size - 1 <= cells
    assert (bounds[-2] == len(town.zones)) == has_own_cell(share, cells)
    if finest < 0:
        own = has_own_cell(share, cells)
        assert bounds.size - 1 == min(cells - own, np.count_nonzero(town.zones.weight)) + own


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 500), st.sampled_from([-1, 0, 1, 2]), st.sampled_from([0.0, 0.2]), st.integers(0, 399))
def test_no_cell_is_one_where_the_prior_says_nobody_lives(town, cells, finest, share, place):
    point = town.points(np.array([place]))[0]
    prior = prior_from(town.tree, point, 4.0, 2.0, share)
    bounds = coarsen(town.tree, point, prior, share, finest, cells)
    masses = np.diff([mass_below(prior, town.tree.cumulative, int(b)) for b in bounds])
    assert (masses > 0).all()


def test_more_cells_refine_fewer(town, here):
    _, prior = here
    long, _ = split_by_mass(town.tree, prior, 300, -1.0)
    short, _ = split_by_mass(town.tree, prior, 40, -1.0)
    assert long[:39].tolist() == short.tolist()


def test_the_heaviest_cell_is_split_next(town, here):
    _, prior = here
    boundaries, _ = split_by_mass(town.tree, prior, 60, -1.0)
    for k in (10, 30, 58):
        bounds = np.concatenate([[0], np.sort(boundaries[:k]), [len(town.zones)]])
        masses = np.diff([mass_below(prior, town.tree.cumulative, int(b)) for b in bounds])
        inhabited = np.add.reduceat(town.zones.weight > 0, bounds[:-1])
        heaviest = int(np.argmax(np.where(inhabited > 1, masses, -1)))
        assert bounds[heaviest] < boundaries[k] < bounds[heaviest + 1]


def test_unresolved_falls_to_nothing(town, here):
    _, prior = here
    _, left = split_by_mass(town.tree, prior, 400, -1.0)
    assert left[-1] == pytest.approx(0, abs=1e-9)
    assert left[0] == pytest.approx(town.tree.spread[0])
    _, stopped = split_by_mass(town.tree, prior, 400, 5.0)
    assert stopped[-1] <= 5.0 < stopped[-2]


def test_distance_keeps_near_tracts_and_far_counties(town, here):
    point, prior = here
    levels = town.tree.level_start
    bounds = np.sort(np.append(split_by_distance(town.tree, prior, point, 1, 11)[0], [0, len(town.zones)]))
    whole = [
        c
        for c in range(4)
        if not set(levels[1].tolist()) & set(bounds.tolist()) & set(range(levels[0][c] + 1, levels[0][c + 1]))
    ]
    split = [c for c in range(4) if c not in whole]
    home = int(np.searchsorted(levels[0], 123, side="right") - 1)
    assert home in split
    assert whole
    assert set(bounds.tolist()) <= set(levels[1].tolist()) | {len(town.zones)}


def test_distance_coarsening_orders_by_great_circle_distance_to_weighted_points(town, here):
    point, prior = here
    starts = town.tree.level_start[0]
    points = town.points(np.arange(len(town.zones)))
    weight = town.zones.weight + 1
    km = []
    for a, b in pairwise(starts):
        mean = (points[a:b] * weight[a:b, None]).sum(axis=0)
        km.append(great_circle_km(point, mean / np.linalg.norm(mean)))
    nearest = int(np.argmin(km))
    tracts = town.tree.level_start[1]
    inside = tracts[(tracts >= starts[nearest]) & (tracts < starts[nearest + 1])]
    room = len(starts) - 1 + len(inside) - 1
    bounds = set(split_by_distance(town.tree, prior, point, 1, room)[0].tolist())
    assert set(inside[1:].tolist()) <= bounds


def test_a_domain_too_small_for_the_coarsest_level_is_one_cell(town, here):
    point, prior = here
    assert coarsen(town.tree, point, prior, 0.0, 1, 3).tolist() == [0, len(town.zones) + 1]


def test_everywhere_else_joins_the_last_cell_when_the_prior_gives_it_little():
    inner = np.array([5, 3], np.int64)
    assert cell_bounds(inner, 3, 10, 0.0).tolist() == [0, 3, 5, 11]
    assert cell_bounds(inner, 4, 10, 0.3).tolist() == [0, 3, 5, 10, 11]
    assert cell_bounds(inner, 1, 10, 0.3).tolist() == [0, 11]
