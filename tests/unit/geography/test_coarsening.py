from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.geography.coarsening import (
    cell_bounds,
    cells_for,
    heaviest_first,
    own_beside,
    own_cells,
    split_by_mass,
    survey_by_mass,
)
from synthmap.geography.distance import great_circle_km
from synthmap.geography.distance_cells import distance_units, split_by_distance, survey_by_distance
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable, elsewhere_share_of, mass_below, prior_from
from synthmap.kernels.destination import cell_masses as masses_below
from synthmap.kernels.destination import cells_of, coarsen, spread
from synthmap.kernels.stream import seeded_stream


@pytest.fixture(scope="module")
def here(town):
    point = town.points(np.array([123]))[0]
    return point, prior_from(town.tree, model(0.1), point, 123)


def model(share):
    return PriorModel(4.0, 2.0, share, 0.0, 5.0, NO_TABLE)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500), st.sampled_from([-1, 0, 1, 2]), st.floats(0, 0.9), st.integers(0, 399), st.integers(0, 500))
def test_every_domain_is_a_partition_of_all_origins(town, cells, finest, share, place, most):
    point = town.points(np.array([place]))[0]
    prior = prior_from(town.tree, model(share), point, place)
    bounds = coarsen(town.tree, point, prior, finest, cells, most)
    zones, share = len(town.zones), elsewhere_share_of(prior)
    assert bounds[0] == 0
    assert bounds[-1] == zones + 1
    assert (np.diff(bounds[bounds != zones]) > 0).all()
    assert bounds.size - 1 <= cells
    own, may = np.count_nonzero(bounds == zones), min(most, own_cells(share, cells))
    parts = bounds.size - 1 - own
    assert own == own_beside(share, may, parts)
    if finest < 0:
        assert parts == min(cells - may, np.count_nonzero(town.zones.weight))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 500), st.sampled_from([-1, 0, 1, 2]), st.sampled_from([0.0, 0.2]), st.integers(0, 399))
def test_no_cell_is_one_where_the_prior_says_nobody_lives(town, cells, finest, share, place):
    point = town.points(np.array([place]))[0]
    prior = prior_from(town.tree, model(share), point, place)
    bounds = coarsen(town.tree, point, prior, finest, cells, cells)
    assert (np.diff(masses_below(prior, town.tree.cumulative, bounds)) > 0).all()


@pytest.mark.parametrize("share", [0.001, 0.04, 0.1, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize("cells", [2, 3, 7, 32, 100, 500])
def test_everywhere_else_is_as_many_cells_as_its_share_asks_for(town, cells, share):
    """So that equal noise in all cells pulls it towards its share; all of its true workers are in one of them."""
    point, zones = town.points(np.array([7]))[0], len(town.zones)
    prior = prior_from(town.tree, model(share), point, 7)
    bounds = coarsen(town.tree, point, prior, -1, cells, cells)
    own, whole = np.count_nonzero(bounds == zones), bounds.size - 1
    if own == 0:
        assert share * cells < 0.5
    elif own == 1 or own == whole - 1:
        assert abs(own - share * whole) <= 1.0
    else:
        assert abs(own - share * whole) <= 0.5 / (1 - share)
    homes = cells_of(np.array([0, zones], np.int32), np.array([[1], [2]]), bounds)
    assert homes.tolist() == [0, whole - 1, whole - 1]
    if own:
        below = masses_below(prior, town.tree.cumulative, bounds)
        assert below[-1 - own] == prior.mass[-2]
        assert below[-1] == prior.mass[-1]
        assert np.ptp(np.diff(below[-1 - own :])) <= 1


@given(st.integers(1, 2000), st.floats(0, 0.9))
def test_so_many_cells_on_the_map_take_the_fewest_cells_in_all(parts, share):
    cells = cells_for(parts, share)
    assert cells - own_cells(share, cells) == parts
    assert cells == 1 or cells - 1 - own_cells(share, cells - 1) < parts


def test_workers_drawn_from_any_cell_of_everywhere_else_come_from_there(town):
    point, zones = town.points(np.array([7]))[0], len(town.zones)
    prior = prior_from(town.tree, model(0.5), point, 7)
    bounds = coarsen(town.tree, point, prior, -1, 20, 20)
    below = masses_below(prior, town.tree.cumulative, bounds)
    keys, reader = np.sort(np.repeat(np.arange(10, 20), 3)), np.zeros(1, np.int64)
    for masses in (below, np.minimum(below, prior.mass[-2])):  # with prior mass, and as if it had none
        drawn = keys.copy()
        spread(drawn, 1, bounds, masses, prior, town.tree.cumulative, seeded_stream(3).words(0, 100), reader)
        assert drawn.tolist() == [zones] * 30


def cell_masses(town, prior, boundaries):
    bounds = [0, *boundaries.tolist(), len(town.zones)]
    return bounds, np.diff([mass_below(prior, town.tree.cumulative, b) for b in bounds])


def test_more_cells_refine_fewer(town, here):
    _, prior = here
    long, short = split_by_mass(town.tree, prior, 300), split_by_mass(town.tree, prior, 40)
    assert short.size == 39
    assert set(short.tolist()) <= set(long.tolist())
    assert (np.diff(long) > 0).all()


def test_the_heaviest_cell_is_split_next(town, here):
    _, prior = here
    for k in (2, 3, 10, 30, 58):
        before, after = split_by_mass(town.tree, prior, k), split_by_mass(town.tree, prior, k + 1)
        (new,) = set(after.tolist()) - set(before.tolist())
        bounds, masses = cell_masses(town, prior, before)
        inhabited = np.add.reduceat(town.zones.weight > 0, bounds[:-1])
        heaviest = int(np.argmax(np.where(inhabited > 1, masses, -1)))
        assert bounds[heaviest] < new < bounds[heaviest + 1]


def split_again_and_again(town, prior, most):
    """Return the boundaries `split_by_mass` is to find, from the tree alone: the heaviest node is split next."""
    nodes, below = town.tree.nodes, [mass_below(prior, town.tree.cumulative, r) for r in range(len(town.zones) + 1)]

    def halved(at, low):
        """Return the boundary and the two halves of the node, or of the part of it where somebody lives."""
        while (right := nodes["right"][at]) >= 0:
            middle, high = int(nodes["stop"][at + 1]), int(nodes["stop"][at])
            if below[low] < below[middle] < below[high]:
                return middle, (at + 1, low), (int(right), middle)
            at, low = (int(right), middle) if below[middle] == below[low] else (at + 1, low)
        return None

    cells, boundaries = [(0, 0)], []
    while len(boundaries) < most - 1:
        able = [(at, low, found) for at, low in cells if (found := halved(at, low))]
        if not able:
            break
        at, low, (middle, left, right) = max(able, key=lambda one: below[nodes["stop"][one[0]]] - below[one[1]])
        place = cells.index((at, low))
        cells[place : place + 1] = [left, right]
        boundaries.append(middle)
    return sorted(boundaries)


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_cells_are_those_of_the_tree_whether_above_pieces_below_them_or_cut_by_a_table(town, rows):
    rng = np.random.default_rng(rows)
    for place in (3, 200, 399):
        origin = np.sort(rng.choice(400, rows, replace=False)).astype(np.int32)
        first = np.where(np.arange(401) > place, rows, 0)
        table = PriorTable(first, origin, rng.integers(1, 50, rows)) if rows else NO_TABLE
        known = PriorModel(4.0, 2.0, 0.1, 0.75, 20.0, table)
        prior = prior_from(town.tree, known, town.points(np.array([place]))[0], place)
        assert (prior.decay.size > prior.by_decay.node.size) == (rows > 0)
        assert prior.first[-1] == prior.decay.size
        for most in (1, 2, 7, 40, 150, 390, 500):
            assert split_by_mass(town.tree, prior, most).tolist() == split_again_and_again(town, prior, most)


@given(
    st.lists(st.integers(1, 3) | st.integers(2**60, 2**60 + 3) | st.integers(1, 2**62), max_size=60),
    st.integers(0, 61),
)
def test_the_heaviest_are_first_and_of_equal_ones_the_first(masses, shift):
    """Masses of one float, of one step and of all sizes; 2^60 and 2^60 + 3 are one float."""
    some = np.maximum(1, np.array(masses, np.int64) >> shift)
    expected = sorted(range(some.size), key=lambda place: (-some[place], place))
    assert heaviest_first(some).tolist() == expected


def test_equally_heavy_cells_are_split_in_order():
    from synthmap.geography.canonical import canonical
    from synthmap.geography.region import make_region

    square = make_region(
        canonical(
            ids=pa.array([f"{i:02}" for i in range(16)]),
            longitude=1e-6 * (np.arange(16) % 4),
            latitude=1e-6 * (np.arange(16) // 4),
            weight=np.ones(16, np.int64),
            levels=(),
            parents=(),
            vintage="v",
        )
    )
    flat = prior_from(square.tree, PriorModel(1.0, 0.0, 0.0, 0.0, 5.0, NO_TABLE), square.points(np.array([0]))[0], 0)
    for most in range(1, 20):
        boundaries = split_by_mass(square.tree, flat, most)
        assert boundaries.size == min(most, 16) - 1
        assert (np.diff(boundaries) > 0).all()


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_survey_tells_what_cells_do_to_distances(town, share):
    """Variance inside cells and the pull of equal cells, against sums over all zones with their own distances."""
    places = town.points(np.arange(len(town.zones)))
    for place in (123, 7, 350):
        prior = prior_from(town.tree, model(share), places[place], place)
        wanted = np.array([1, 2, 5, 20, 80, 300])
        inside, pull = survey_by_mass(town.tree, prior, places[place], wanted)
        assert inside[0] == prior.variance_km2
        assert pull[0] == 0
        assert (np.diff(inside) < 0).all()
        km = np.array([great_circle_km(places[place], p) for p in places])
        mass = np.diff([mass_below(prior, town.tree.cumulative, r) for r in range(len(km) + 1)]).astype(float)
        for k, left, moved in zip(wanted, inside, pull, strict=True):
            cell = np.searchsorted(split_by_mass(town.tree, prior, k), np.arange(len(km)), side="right")
            mean = np.bincount(cell, mass * km) / np.bincount(cell, mass)
            exact = np.average((km - mean[cell]) ** 2, weights=mass)
            assert left == pytest.approx(exact, rel=0.15, abs=0.02 * prior.variance_km2)
            assert moved == pytest.approx(mean.mean() - np.average(km, weights=mass), abs=0.1 * prior.variance_km2**0.5)


def test_distance_cells_are_surveyed_alike(town, here):
    point, prior = here
    places = town.points(np.arange(len(town.zones)))
    km = np.array([great_circle_km(point, p) for p in places])
    mass = np.diff([mass_below(prior, town.tree.cumulative, r) for r in range(len(km) + 1)]).astype(float)
    for finest, most in ((0, 4), (1, 11), (2, 60), (2, 500)):
        boundaries = split_by_distance(town.tree, prior, point, finest, most)
        cells, left, moved = survey_by_distance(town.tree, prior, point, distance_units(town.tree, point, finest), most)
        assert cells == boundaries.size + 1
        cell = np.searchsorted(boundaries, np.arange(len(km)), side="right")
        mean = np.bincount(cell, mass * km) / np.bincount(cell, mass)
        exact = np.average((km - mean[cell]) ** 2, weights=mass)
        assert left == pytest.approx(exact, rel=0.15, abs=0.02 * prior.variance_km2)
        assert moved == pytest.approx(mean.mean() - np.average(km, weights=mass), abs=0.1 * prior.variance_km2**0.5)


def test_distance_keeps_near_tracts_and_far_counties(town, here):
    point, prior = here
    levels = town.tree.level_start
    bounds = np.sort(np.append(split_by_distance(town.tree, prior, point, 1, 11), [0, len(town.zones)]))
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
    bounds = set(split_by_distance(town.tree, prior, point, 1, room).tolist())
    assert set(inside[1:].tolist()) <= bounds


def test_a_domain_too_small_for_the_coarsest_level_is_one_cell(town, here):
    point, prior = here
    assert coarsen(town.tree, point, prior, 1, 3, 3).tolist() == [0, len(town.zones) + 1]


def test_everywhere_else_joins_the_last_cell_when_the_prior_gives_it_little():
    inner = np.array([3, 5], np.int64)
    assert cell_bounds(inner, 10, 0).tolist() == [0, 3, 5, 11]
    assert cell_bounds(inner, 10, 1).tolist() == [0, 3, 5, 10, 11]
    assert cell_bounds(inner, 10, 3).tolist() == [0, 3, 5, 10, 10, 10, 11]
    assert cell_bounds(inner[:0], 10, 0).tolist() == [0, 11]
