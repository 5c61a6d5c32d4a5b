"""Expected errors of sums of flows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from handmade import World, Zone

from synthmap.errors import ReleaseCorruptError
from synthmap.published.expected import share_variance
from synthmap.published.figure_errors import figure_errors, trust
from synthmap.published.figure_variance import Shapes, unresolved
from synthmap.published.places import ZONE
from synthmap.published.table import units_of

ZONES = [Zone(name) for name in ("a", "b", "c", "d")]
FLOWS = [("a", "a", (60,)), ("b", "a", (40,)), ("a", "b", (1,)), ("b", "c", (1,)), ("c", "c", (2,))]
WORLD = World(ZONES, FLOWS, elsewhere=False)


def variance(headcount, share=0.2):
    (found,) = share_variance(np.array([headcount]), np.array([headcount]), np.array([share]), 20.0)
    return found


def off(some, every, share=0.2):
    """What a prior that is wrong for the whole figure takes away: of those drawn from it, by its strength."""
    return share * some * (1 - some / every) / math.sqrt(21)


def of(errors, names, key=None):
    """Sums of some destinations as one figure needs them."""
    chosen = np.isin(["a", "b", "c", "d"], names)
    return errors.grouped(np.where(chosen, 0, -1), 1)


def figure(errors, **workers):
    """One figure: workers by destination, in the classes of the destinations."""
    out = np.zeros((1, 1, errors.groups))
    for name, count in workers.items():
        out[0, 0, errors.group["abcd".index(name)]] += count
    return out


def fine(world=WORLD):
    """The same with next to endless cells: no figure is a part of one."""
    return replace(world, cells=10**9)


def test_one_destination_has_the_error_that_its_metrics_tell_and_that_of_the_whole_prior(opened):
    errors = figure_errors(opened(fine()))
    found = errors.expected(figure(errors, a=30), of(errors, ["a"]))
    assert found.error.item() == pytest.approx(math.hypot(math.sqrt(30 * 70 * variance(100)), off(30, 100)))
    assert found.prior.item() == pytest.approx(0.2)


def test_by_distance_the_prior_is_off_at_all_destinations_alike(opened):
    """As at a single destination, however many there are; a band is off by as much as all others together."""
    errors = figure_errors(opened(fine()))
    found = errors.expected(figure(errors, a=30), of(errors, ["a"]), alike=np.array([100]))
    common = 0.2 * math.sqrt(30 * 70 / 21)
    assert found.error.item() == pytest.approx(math.hypot(math.sqrt(30 * 70 * variance(100)), common))
    rest = errors.expected(figure(errors, a=70), of(errors, ["a"]), alike=np.array([100]))
    assert rest.error.item() == pytest.approx(found.error.item())
    every = errors.expected(figure(errors, a=100), of(errors, ["a"]), alike=np.array([100])).error.item()
    assert every == pytest.approx(errors.expected(figure(errors, a=100), of(errors, ["a"])).error.item())


def test_squares_of_destinations_add_up(opened):
    errors = figure_errors(opened(fine()))
    found = errors.expected(figure(errors, a=30, c=1), of(errors, ["a", "c"])).error.item()
    apart = math.sqrt(30 * 70 * variance(100) + 1 * 2 * variance(3))
    assert found == pytest.approx(math.hypot(apart, off(31, 103)))


def test_small_destinations_of_one_class_share_their_figure(opened):
    world = World(ZONES, [("a", name, (1,)) for name in "abc"], elsewhere=False)
    errors = figure_errors(opened(fine(world)))
    found = errors.expected(figure(errors, a=1), of(errors, ["a", "b", "c"])).error.item()
    assert found == pytest.approx(math.hypot(math.sqrt(3 * (1 / 3) * (2 / 3) * variance(1)), off(1, 3)))


def test_what_lies_inside_a_cell_is_the_priors(opened):
    """A hundredth of the workers of one cell: as if nothing but the prior were known of it."""
    errors = figure_errors(opened(replace(WORLD, cells=1, prior_share=0.0)))
    found = errors.expected(figure(errors, a=1), of(errors, ["a"]))
    drawn = 1 * 99 * (1 / 21 + 1 / 100 + 1 / 100)
    common = math.sqrt(0.01 * 0.99 / 21) * 100  # what is known of a hundredth of a cell
    assert found.error.item() == pytest.approx(math.hypot(math.sqrt(drawn), common), rel=0.02)
    assert found.prior.item() == 1.0
    better = errors.expected(figure(errors, a=1), of(errors, ["a"]), Shapes(np.ones(1), np.ones(1)))
    assert better.error.item() == found.error.item()  # no level's units are cells


@pytest.mark.parametrize("part", [0.02, 0.1, 0.3])
def test_a_prior_that_is_wrong_inside_a_cell_is_wrong_there_for_all_destinations(opened, part):
    """A hundred workplaces that all share one cell and its real shares, which scatter around the prior's as it says."""
    names = [f"{n:03}" for n in range(100)]
    world = World([Zone(name) for name in names], [(name, name, (10,)) for name in names], elsewhere=False)
    errors = figure_errors(opened(replace(world, cells=1, prior_share=0.0)))
    workers = np.zeros((1, 1, errors.groups))
    workers[0, 0, errors.group[0]] = 1000 * part
    told = errors.expected(workers, errors.grouped(np.zeros(100, int), 1)).error.item()
    random = np.random.default_rng(1)
    real = random.binomial(1000, random.beta(20 * part, 20 * (1 - part), 20_000))
    off = np.sqrt(np.mean((random.binomial(1000, part, real.size) - real) ** 2))
    assert 0.8 < off / told < 1.25


def test_a_figure_larger_than_cells_follows_the_prior_at_its_ends_alone(opened):
    shares = []
    for cells in (1, 4, 40, 4_000):
        errors = figure_errors(opened(replace(WORLD, cells=cells, prior_share=0.0)))
        shares.append(errors.expected(figure(errors, a=30), of(errors, ["a"])).prior.item())
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[-1] < 0.001


@pytest.mark.parametrize(("q", "cells"), [(0.01, 8), (0.05, 8), (0.3, 8), (0.002, 200), (0.4, 2)])
def test_how_much_lies_inside_cells_agrees_with_ranges_put_anywhere(q, cells):
    start = np.random.default_rng(1).uniform(0, 1 - q, 200_000)[:, None]
    edges = np.arange(cells + 1) / cells
    overlap = np.clip(np.minimum(start + q, edges[1:]) - np.maximum(start, edges[:-1]), 0, None) * cells
    inside = (overlap * (1 - overlap)).sum(axis=1).mean() / cells
    found = unresolved(np.array(q), np.array(float(cells))) * q * (1 - q)
    assert found == pytest.approx(inside, rel=0.1)


@pytest.mark.parametrize("count", [0, 100])
def test_nothing_and_all_are_not_known_to_be(opened, count):
    errors = figure_errors(opened(fine()))
    found = errors.expected(figure(errors, a=count), of(errors, ["a"])).error.item()
    assert found == pytest.approx(math.sqrt(0.5 * 99.5 * variance(100)))


def test_residents_of_units_as_if_they_went_evenly_to_all_destinations(opened):
    """Known as those of one destination where there is but one; the same for units of as many residents."""
    errors = figure_errors(opened(fine(World(ZONES, FLOWS[:2], elsewhere=False))))
    found = errors.of_residents(np.array([60, 40, 60, 0]), np.array([0, 1, 2, -1]))
    known = [errors.expected(figure(errors, a=n), of(errors, ["a"])).error.item() for n in (60, 40, 60, 0)]
    assert found.tolist() == pytest.approx(known)
    assert errors.of_residents(np.array([], int), np.array([-1] * 4)).tolist() == []


def test_a_figure_about_no_destination_has_no_error(opened):
    errors = figure_errors(opened(WORLD))
    assert errors.expected(figure(errors), of(errors, ["d"])).error.ravel().tolist() == [0.0]
    assert errors.of_total(np.array([True, True, True, True])) == 0.0
    assert errors.prior_share(np.array([False, False, False, True])) is None
    assert errors.prior_share(np.array([True, True, False, False])) == pytest.approx(0.2)


def test_more_prior_is_more_error(opened):
    less, more = (figure_errors(opened(replace(WORLD, prior_share=share))) for share in (0.1, 0.9))
    low, high = (e.expected(figure(e, a=30), of(e, ["a"])).error.item() for e in (less, more))
    assert low < high


def test_where_m_is_not_n_the_total_is_off_by_a_known_number(opened):
    errors = figure_errors(opened(WORLD))
    twice = replace(errors, parts=errors.parts._replace(size=errors.parts.size * 2))
    assert twice.of_total(np.array([True, False, True, False])) == 103.0


def test_words_for_trust():
    workers, error = np.array([0, 0, 10, 10, 10, 10, -10]), np.array([0.0, 0.7, 0.0, 5.0, 5.1, 10.0, 3.0])
    assert trust(workers, error) == ["exact", "noise", "exact", "signal", "weak", "noise", "signal"]


def test_a_plan_that_names_no_zone_is_damage(opened):
    release = opened(World(ZONES, [("a", "a", (1,)), ("a", "b", (1,))], elsewhere=False))
    places = release.places
    hidden = replace(places, table=places.table.filter(places.table["id"] != "b"))
    release.__dict__["places"] = hidden
    assert len(units_of(release, ZONE)) == 3
    with pytest.raises(ReleaseCorruptError, match=r"plan\.parquet"):
        figure_errors(release)
