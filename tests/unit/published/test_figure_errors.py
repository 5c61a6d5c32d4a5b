"""Expected errors of sums of flows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from handmade import World, Zone

from synthmap.errors import ReleaseCorruptError
from synthmap.published.expected import share_variance
from synthmap.published.figure_errors import figure_errors, trust
from synthmap.published.places import ZONE
from synthmap.published.table import units_of

ZONES = [Zone(name) for name in ("a", "b", "c", "d")]
FLOWS = [("a", "a", (60,)), ("b", "a", (40,)), ("a", "b", (1,)), ("b", "c", (1,)), ("c", "c", (2,))]
WORLD = World(ZONES, FLOWS, elsewhere=False)


def variance(headcount, share=0.2):
    (found,) = share_variance(np.array([headcount]), np.array([headcount]), np.array([share]), 20.0)
    return found


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


def test_one_destination_has_the_error_that_its_metrics_tell_and_that_of_the_whole_prior(opened):
    errors = figure_errors(opened(WORLD))
    (found,) = errors.expected(figure(errors, a=30), of(errors, ["a"])).ravel()
    assert found == pytest.approx(math.hypot(math.sqrt(30 * 70 * variance(100)), 0.2 * 30 * 70 / 100))


def test_squares_of_destinations_add_up(opened):
    errors = figure_errors(opened(WORLD))
    (found,) = errors.expected(figure(errors, a=30, c=1), of(errors, ["a", "c"])).ravel()
    apart = math.sqrt(30 * 70 * variance(100) + 1 * 2 * variance(3))
    assert found == pytest.approx(math.hypot(apart, 0.2 * 31 * 72 / 103))


def test_small_destinations_of_one_class_share_their_figure(opened):
    world = World(ZONES, [("a", name, (1,)) for name in "abc"], elsewhere=False)
    errors = figure_errors(opened(world))
    (found,) = errors.expected(figure(errors, a=1), of(errors, ["a", "b", "c"])).ravel()
    assert found == pytest.approx(math.hypot(math.sqrt(3 * (1 / 3) * (2 / 3) * variance(1)), 0.2 * 1 * 2 / 3))


@pytest.mark.parametrize("count", [0, 100])
def test_nothing_and_all_are_not_known_to_be(opened, count):
    errors = figure_errors(opened(WORLD))
    (found,) = errors.expected(figure(errors, a=count), of(errors, ["a"])).ravel()
    assert found == pytest.approx(math.sqrt(0.5 * 99.5 * variance(100)))


def test_a_figure_about_no_destination_has_no_error(opened):
    errors = figure_errors(opened(WORLD))
    assert errors.expected(figure(errors), of(errors, ["d"])).ravel().tolist() == [0.0]
    assert errors.of_total(np.array([True, True, True, True])) == 0.0
    assert errors.prior_share(np.array([False, False, False, True])) is None
    assert errors.prior_share(np.array([True, True, False, False])) == pytest.approx(0.2)


def test_more_prior_is_more_error(opened):
    less, more = (figure_errors(opened(replace(WORLD, prior_share=share))) for share in (0.1, 0.9))
    low, high = (e.expected(figure(e, a=30), of(e, ["a"])).item() for e in (less, more))
    assert low < high


def test_where_m_is_not_n_the_total_is_off_by_a_known_number(opened):
    errors = figure_errors(opened(WORLD))
    twice = replace(errors, size=errors.size * 2)
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
