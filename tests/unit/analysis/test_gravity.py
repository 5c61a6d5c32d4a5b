import numpy as np
import pytest
from scipy.optimize import root

from synthmap.analysis.gravity import gravity, poisson_regression
from synthmap.analysis.table import ODTable, pair, pair_km, units_by_level


def test_poisson_regression_of_two_groups_gives_their_means():
    design = np.column_stack([np.ones(5), [0.0, 0.0, 1.0, 1.0, 1.0]])
    found = poisson_regression(design, np.array([0.0, 4.0, 1.0, 2.0, 6.0]))
    assert found.tolist() == pytest.approx([np.log(2), np.log(3 / 2)])


def test_poisson_regression_solves_the_likelihood_equations():
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(500), rng.normal(3, 2, (500, 3))])
    count = rng.poisson(np.exp(design @ [0.5, 0.3, -0.2, 0.1])).astype(float)
    found = poisson_regression(design, count)
    assert np.abs(design.T @ (count - np.exp(design @ found))).max() < 1e-4


def test_not_identified_is_none():
    ones = np.ones((5, 2))
    assert poisson_regression(ones, np.arange(5.0)) is None
    assert poisson_regression(np.column_stack([ones[:, :1], np.arange(5.0)]), np.zeros(5)) is None
    x = np.arange(5.0)
    assert poisson_regression(np.column_stack([np.ones(5), x, 2 * x]), x) is None


def test_coefficients_that_made_the_flows_come_back(town):
    """Flows made with known exponents of the masses that both fits use, and a reference that another solver fits."""
    zones = town.zones
    rng = np.random.default_rng(3)
    lived_in = np.flatnonzero(zones.weight > 0).astype(np.int32)
    work = np.sort(rng.permutation(lived_in)[:40])
    o, d = (a.ravel() for a in np.meshgrid(lived_in, work, indexing="ij"))
    o, d = o[o != d], d[o != d]
    reference = rng.poisson(np.repeat(rng.integers(1, 20, lived_in.size), work.size)[: o.size])
    workers = np.bincount(d, reference, len(zones))[d]
    km = np.maximum(0.1, pair_km(o, d, zones))
    made = np.rint(3e4 * zones.weight[o] ** 1.1 * workers**0.7 * km**-1.5).astype(np.int64)
    own = {"zone": np.arange(len(zones) + 1, dtype=np.int32)}
    some = reference > 0
    tables = ODTable(o[some], d[some], reference[some]), ODTable(o, d, made)
    found = gravity(pair(*tables, len(zones)), zones, own)
    assert (found.level, found.pairs) == ("zone", o.size)
    other = found.other
    assert (other.origin, other.destination, other.distance) == pytest.approx((1.1, 0.7, 1.5), abs=1e-4)
    assert other.intercept == pytest.approx(np.log(3e4), abs=1e-3)
    design = np.column_stack([np.ones(o.size), np.log(zones.weight[o]), np.log(workers), -np.log(km)])
    slope = lambda beta: design.T @ (np.exp(design @ beta) - reference) / o.size  # noqa: E731
    solved = root(slope, [np.log(reference.mean()), 0.0, 0.0, 0.0], tol=1e-10)
    assert solved.success
    one = found.reference
    assert [one.intercept, one.origin, one.destination, one.distance] == pytest.approx(solved.x, abs=1e-5)
    assert abs(one.distance - other.distance) > 1


def test_the_finest_parent_level_is_used_and_flows_within_a_unit_are_left_out(town):
    zones = town.zones
    rng = np.random.default_rng(4)
    o = rng.integers(0, len(zones) + 1, 4000).astype(np.int32)
    d = rng.integers(0, len(zones), 4000).astype(np.int32)
    units = units_by_level(zones)
    flows = ODTable(o, d, np.ones(4000, np.int64))
    inside = units["tract"][o] == units["tract"][d]
    without = ODTable(o[~inside], d[~inside], np.ones(int((~inside).sum()), np.int64))
    found = gravity(pair(flows, flows, len(zones)), zones, units)
    assert found.level == "tract"
    tracts = int(units["tract"].max())
    assert found.pairs == tracts * (tracts - 1)
    again = gravity(pair(flows, without, len(zones)), zones, units)
    assert again.other == again.reference


def test_one_unit_has_no_gravity(line, table):
    one = table((0, 0, 3))
    assert gravity(pair(one, one, 4), line, units_by_level(line)) is None
