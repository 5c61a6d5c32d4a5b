import numpy as np
import pytest

from synthmap.geography.distance import great_circle_km
from synthmap.geography.prior import mass_below, prior_from, rank_at


@pytest.fixture(scope="module")
def seen(town):
    return prior_from(town.tree, town.points(np.array([200]))[0], 4.0, 2.0, 0.1)


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
    prior = prior_from(town.tree, town.points(np.array([5]))[0], 4.0, 2.0, share)
    assert 1 - prior.mass[-2] / prior.mass[-1] == pytest.approx(share, abs=1e-6)


def test_mean_and_variance_of_distance(town, seen):
    points = town.points(np.arange(len(town.zones)))
    km = np.array([great_circle_km(points[200], p) for p in points])
    mass = np.diff([mass_below(seen, town.tree.cumulative, r) for r in range(len(km) + 1)])
    mean = np.average(km, weights=mass)
    assert seen.mean_km == pytest.approx(mean, rel=0.05)
    assert seen.variance_km2 == pytest.approx(np.average((km - mean) ** 2, weights=mass), rel=0.1)
