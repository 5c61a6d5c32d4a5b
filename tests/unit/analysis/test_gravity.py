import numpy as np
import pytest

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
    """Flows of a known model between zones, added up to tracts of one zone each, are found again."""
    zones = town.zones
    rng = np.random.default_rng(3)
    places = rng.permutation(np.flatnonzero(zones.weight > 0))[:60].astype(np.int32)
    o, d = (a.ravel() for a in np.meshgrid(places, places, indexing="ij"))
    km = pair_km(o, d, zones)
    o, d, km = o[o != d], d[o != d], km[o != d]
    own = {"zone": np.arange(len(zones) + 1, dtype=np.int32)}
    made = zones.weight[o] ** 1.1 * np.maximum(0.1, km) ** -1.5 * 1e4
    flows = ODTable(o, d, np.rint(made).astype(np.int64))
    found = gravity(pair(flows, flows, len(zones)), zones, own)
    assert found.level == "zone"
    assert found.reference == found.other
    assert found.reference.origin == pytest.approx(found.other.origin)
    assert found.reference.distance > 1


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
