from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synthmap.geography.canonical import canonical
from synthmap.geography.decay import _fill, _room, inverse_powers, rough_mean_km
from synthmap.geography.distance import arcs_km, great_circle_km
from synthmap.geography.prior import (
    NO_TABLE,
    PriorModel,
    PriorTable,
    elsewhere_share_of,
    mass_below,
    prior_from,
    rank_at,
)
from synthmap.geography.region import make_region

MODEL = PriorModel(4.0, 2.0, 0.1, 0.0, 5.0, NO_TABLE)


def prior_of(town, place, model=MODEL):
    return prior_from(town.tree, model, town.points(np.array([place]))[0], place)


def masses(town, prior):
    """Return the mass of every rank, everywhere else last."""
    return np.diff([mass_below(prior, town.tree.cumulative, r) for r in range(len(town.zones) + 2)])


@pytest.fixture(scope="module")
def seen(town):
    return prior_of(town, 200)


def test_pieces_cover_all_ranks_in_order(town, seen):
    zones = len(town.zones)
    assert seen.start[0] == 0
    assert seen.start[-2:].tolist() == [zones, zones + 1]
    assert (np.diff(seen.start) > 0).all()
    assert (np.diff(seen.mass) >= 0).all()


def test_mass_is_weight_times_decay_of_the_piece(town, seen):
    below = [mass_below(seen, town.tree.cumulative, r) for r in range(len(town.zones) + 2)]
    piece = np.searchsorted(seen.start, np.arange(len(town.zones)), side="right") - 1
    assert np.diff(below)[:-1].tolist() == (town.zones.weight * seen.decay[piece]).tolist()
    assert below[-1] == seen.mass[-1]


def test_a_piece_s_decay_is_near_each_zone_s_own(town, seen):
    points = town.points(np.arange(len(town.zones)))
    km = np.array([great_circle_km(points[200], p) for p in points])
    piece = np.searchsorted(seen.start, np.arange(len(town.zones)), side="right") - 1
    ratio = seen.decay[piece] / (2**20 * (1 + km / 4.0) ** -2.0)
    assert 0.4 < ratio.min() < ratio.max() < 2.0


def grid(side):
    """Return a square of 60 km, cut into side × side equal zones that stand in Morton order."""
    bits = side.bit_length() - 1
    rank = np.arange(side * side)
    x, y = (sum(((rank >> (2 * bit + axis)) & 1) << bit for bit in range(bits)) for axis in (0, 1))
    degrees = 60 / 111.195 / side
    return make_region(
        canonical(
            ids=pa.array([f"{i:06}" for i in rank]),
            longitude=(x + 0.5) * degrees,
            latitude=(y + 0.5) * degrees,
            weight=np.ones(rank.size, np.int64),
            levels=(),
            parents=(),
            vintage="v",
        )
    )


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5, 4.0, 20.0])
@pytest.mark.parametrize("scale", [3.0, 10.0])
def test_pieces_misplace_a_small_share_of_the_mass(make_town, power, scale):
    """Against the decay at each zone's own distance; in a town whose zones are in no order, too."""
    model = PriorModel(scale, power, 0.0, 0.0, 5.0, NO_TABLE)
    for town, most in ((make_town(zones=4_000), 600), (grid(64), 550)):
        zones = len(town.zones)
        points = town.points(np.arange(zones))
        for place in range(5, zones, zones // 7):
            prior = prior_of(town, place, model)
            km = arcs_km(((points - points[place]) ** 2).sum(axis=1))
            exact = town.zones.weight * (1 + km / scale) ** -power
            found = np.repeat(prior.decay, np.diff(prior.start[:-1])) * town.zones.weight
            assert prior.decay.size < most
            if power < 20.0:  # too steep to be told apart by any number of pieces that one would want
                assert np.abs(found / found.sum() - exact / exact.sum()).sum() / 2 < (0.065 if power < 4.0 else 0.085)
                assert prior.mean_km == pytest.approx(np.average(km, weights=exact), rel=0.025)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1.0, 1e6, 1e300])
@pytest.mark.parametrize("power", [0.0, 2.5, 20.0])
def test_any_decay_makes_pieces_of_all_zones(make_town, power, scale):
    """Also where more of them are needed than room is made for at first."""
    town = make_town(zones=4_000)
    prior = prior_of(town, 7, PriorModel(scale, power, 0.1, 0.0, 5.0, NO_TABLE))
    pieces = prior.decay.size
    assert prior.start[0] == 0
    assert prior.start[pieces] == 4_000
    assert (np.diff(prior.start) > 0).all()
    assert (prior.decay >= 1).all()
    assert (
        np.diff(prior.mass)[:pieces].tolist()
        == (prior.decay * np.diff(town.tree.cumulative[prior.start[: pieces + 1]])).tolist()
    )
    assert (prior.by_decay.right < 0).sum() == pieces


def test_the_rough_mean_is_near_enough_to_sort_by(make_town):
    for town in (make_town(zones=4_000), grid(64)):
        points = town.points(np.arange(len(town.zones)))
        off = []
        for place in range(5, len(points), len(points) // 40):
            km = arcs_km(((points - points[place]) ** 2).sum(axis=1))
            mean = np.average(km, weights=town.zones.weight * (1 + km / 10.0) ** -2.5)
            off.append(rough_mean_km(town.tree, 10.0, 2.5, points[place]) / mean - 1)
        assert np.std(off) < 0.03


def test_pieces_that_do_not_fit_spoil_nothing(town):
    """Run by Python, which checks every index."""
    point = town.points(np.array([9]))[0]
    needed = [
        size
        for capacity in range(1, 200)
        if (size := _fill.py_func(_room.py_func(capacity), town.tree, point, 0.5, 0.3, np.inf)) >= 0
    ]
    assert 1 < len(needed) < 190
    assert len(set(needed)) == 1


def test_zones_cut_finer_make_hardly_more_pieces():
    model = PriorModel(6.0, 2.5, 0.0, 0.0, 5.0, NO_TABLE)
    coarse, fine = (
        np.mean([prior_of(region, place, model).decay.size for place in range(0, side**2, side**2 // 50)])
        for side, region in ((64, grid(64)), (256, grid(256)))
    )
    assert fine < 1.15 * coarse


def test_rank_at_inverts_mass_below(town, seen):
    cumulative = town.tree.cumulative
    for unit in np.random.default_rng(0).integers(0, seen.mass[-1], 3000):
        rank = rank_at(seen, cumulative, int(unit))
        assert mass_below(seen, cumulative, rank) <= unit < mass_below(seen, cumulative, rank + 1)


def test_zones_without_weight_get_no_mass(town, seen):
    empty = np.flatnonzero(town.zones.weight == 0)
    assert empty.size
    units = np.random.default_rng(1).integers(0, seen.mass[-1], 20_000)
    ranks = {rank_at(seen, town.tree.cumulative, int(u)) for u in units}
    assert not ranks & set(empty.tolist())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_everywhere_else_has_its_share(town, share):
    prior = prior_of(town, 5, MODEL._replace(elsewhere_share=share))
    assert elsewhere_share_of(prior) == pytest.approx(share, abs=1e-6)


def test_mean_and_variance_of_distance(town, seen):
    points = town.points(np.arange(len(town.zones)))
    km = np.array([great_circle_km(points[200], p) for p in points])
    mass = np.diff([mass_below(seen, town.tree.cumulative, r) for r in range(len(km) + 1)])
    mean = np.average(km, weights=mass)
    assert seen.mean_km == pytest.approx(mean, rel=0.05)
    assert seen.variance_km2 == pytest.approx(np.average((km - mean) ** 2, weights=mass), rel=0.1)


def table_of(town, rows):
    """Return a table from (destination, origin, count)."""
    destination, origin, count = np.array(sorted(rows)).T
    first = np.searchsorted(destination, np.arange(len(town.zones) + 1))
    return PriorTable(first.astype(np.int64), origin.astype(np.int32), count.astype(np.int64))


@pytest.fixture(scope="module")
def known(town):
    """A table of destination 200: near, far, unweighted and elsewhere origins; and others, of destination 7."""
    empty = int(np.flatnonzero(town.zones.weight == 0)[0])
    rows = [(200, 200, 30), (200, 201, 1), (200, 3, 9), (200, empty, 5), (200, 400, 15), (7, 8, 2)]
    return MODEL._replace(mixing=0.75, strength=20.0, table=table_of(town, rows)), empty


def test_a_table_takes_its_share_and_leaves_the_rest_to_the_decay(town, known):
    model, empty = known
    alone, mixed = masses(town, prior_of(town, 200)), masses(town, prior_of(town, 200, model))
    share = 0.75 * 60 / (60 + 20)
    expected = (1 - share) * alone / alone.sum()
    for place, workers in ((200, 30), (201, 1), (3, 9), (empty, 5), (400, 15)):
        expected[place] += share * workers / 60
    assert mixed / mixed.sum() == pytest.approx(expected, rel=1e-4, abs=1e-12)
    assert (mixed[:-1] > 0).sum() == np.count_nonzero(town.zones.weight) + 1  # nobody's home is without mass
    assert mixed[empty] > 0


def test_other_destinations_do_not_see_it(town, known):
    model, _ = known
    assert masses(town, prior_of(town, 199, model)).tolist() == masses(town, prior_of(town, 199)).tolist()
    share = 0.75 * 2 / (2 + 20)
    mixed = masses(town, prior_of(town, 7, model))
    assert mixed[8] / mixed.sum() > share  # few workers, little trust
    assert mixed[8] / mixed.sum() < share + 0.2


def test_rank_at_inverts_mass_below_with_a_table(town, known):
    model, _ = known
    prior, cumulative = prior_of(town, 200, model), town.tree.cumulative
    edges = [mass_below(prior, cumulative, r) for r in range(len(town.zones) + 2)]
    units = np.random.default_rng(0).integers(0, prior.mass[-1], 2000).tolist()
    for unit in [*units, *edges[:-1], *(e - 1 for e in edges[1:] if e)]:
        rank = rank_at(prior, cumulative, int(unit))
        assert mass_below(prior, cumulative, rank) <= unit < mass_below(prior, cumulative, rank + 1)


def test_mean_and_variance_with_a_table(town, known):
    model, _ = known
    prior = prior_of(town, 200, model)
    points = town.points(np.arange(len(town.zones)))
    km = np.array([great_circle_km(points[200], p) for p in points])
    mass = masses(town, prior)[:-1]
    mean = np.average(km, weights=mass)
    assert prior.mean_km == pytest.approx(mean, rel=0.05)
    assert prior.variance_km2 == pytest.approx(np.average((km - mean) ** 2, weights=mass), rel=0.1)


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_masses_stay_below_what_the_urn_of_integers_holds(make_town, share):
    town = make_town()
    heavy = town.zones.weight.copy()
    heavy[np.argmax(heavy)] = 2**38 - 1 - (heavy.sum() - heavy.max())
    from synthmap.geography.region import make_region

    town = make_region(replace(town.zones, weight=heavy))
    table = table_of(town, [(5, o, 10**9) for o in range(0, 401, 5)])
    model = PriorModel(1e9, 0.1, share, 0.95, 1e-3, table)
    prior = prior_of(town, 5, model)
    assert (np.diff(prior.mass) >= 0).all()
    assert 0 < prior.mass[-1] < 2**62
    assert (masses(town, prior)[np.append(heavy > 0, True)] > 0).all() or share == 0.0


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.7, 2.0, 2.5, 3.0, 19.5, 20.0])
def test_powers_by_products_are_those_of_the_general_rule(power):
    bases = np.array([1.0, 1.0 + 1e-9, 1.5, 17.3, 4_001.0])
    assert inverse_powers(bases, power) == pytest.approx(bases**-power, rel=1e-14)
    assert inverse_powers(np.array([1e300]), 20.0) == 0.0
