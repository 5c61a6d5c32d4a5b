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
    """Flows made with known exponents of their own masses, and a reference that another solver fits with its own."""
    zones = town.zones
    rng = np.random.default_rng(3)
    lived_in = np.flatnonzero(zones.weight > 0).astype(np.int32)
    work = np.sort(rng.permutation(lived_in)[:40])
    o, d = (a.ravel() for a in np.meshgrid(lived_in, work, indexing="ij"))
    o, d = o[o != d], d[o != d]
    km = np.maximum(0.1, pair_km(o, d, zones))
    reach = np.bincount(d, zones.weight[o] ** 1.1 * km**-1.5, len(zones))
    factor = 3e6 / reach.max()
    mass = (factor * reach) ** 2  # what comes in if a destination draws with the square root of it
    made = np.rint(factor * zones.weight[o] ** 1.1 * np.sqrt(mass[d]) * km**-1.5).astype(np.int64)
    reference = rng.poisson(np.repeat(rng.integers(1, 20, lived_in.size), work.size)[: o.size])
    own = {"zone": np.arange(len(zones) + 1, dtype=np.int32)}
    some = reference > 0
    tables = ODTable(o[some], d[some], reference[some]), ODTable(o, d, made)
    found = gravity(pair(*tables, len(zones)), zones, own)
    other = found.other
    assert (found.level, other.pairs, other.destinations, other.workers) == ("zone", o.size, 40, made.sum())
    assert (other.origin, other.destination, other.distance) == pytest.approx((1.1, 0.5, 1.5), abs=1e-4)
    assert other.intercept == pytest.approx(np.log(factor), abs=1e-3)
    workers = np.bincount(d, reference, len(zones))[d]
    design = np.column_stack([np.ones(o.size), np.log(zones.weight[o]), np.log(workers), -np.log(km)])
    slope = lambda beta: design.T @ (np.exp(design @ beta) - reference) / o.size  # noqa: E731
    solved = root(slope, [np.log(reference.mean()), 0.0, 0.0, 0.0], tol=1e-10)
    assert solved.success
    one = found.reference
    assert [one.intercept, one.origin, one.destination, one.distance] == pytest.approx(solved.x, abs=1e-5)
    assert (one.pairs, one.destinations, one.workers) == (o.size, 40, reference.sum())
    assert abs(one.distance - other.distance) > 1


@pytest.fixture
def random_flows(town):
    """Make a table of single workers, elsewhere among the origins, at every third zone from `first` on."""

    def make(seed, first=0, size=4000):
        rng = np.random.default_rng(seed)
        work = np.arange(first, len(town.zones), 3, dtype=np.int32)
        origin = rng.integers(0, len(town.zones) + 1, size).astype(np.int32)
        return ODTable(origin, rng.choice(work, size), np.ones(size, np.int64))

    return make


def test_the_finest_parent_level_is_used_and_flows_within_a_unit_are_left_out(town, random_flows):
    zones = town.zones
    units = units_by_level(zones)
    flows = random_flows(4)
    inside = units["tract"][flows.origin] == units["tract"][flows.destination]
    away = ODTable(np.where(inside, np.int32(len(zones)), flows.origin), flows.destination, flows.count)
    found = gravity(pair(flows, away, len(zones)), zones, units)
    assert found.level == "tract"
    tracts = int(units["tract"].max())
    assert found.other.pairs == tracts * (tracts - 1)
    assert found.other.workers == 4000 - inside.sum() - (flows.origin == len(zones)).sum()
    assert found.other == found.reference


def test_a_table_has_its_own_coefficients_whatever_is_beside_it(town, random_flows):
    """The others have workers at other destinations, more of them, or none of its pairs."""
    zones, units = town.zones, units_by_level(town.zones)
    county = {level: units[level] for level in ("zone", "county")}
    own, others = random_flows(1), [random_flows(2, size=9000), random_flows(3, first=1), random_flows(4, first=2)]
    for levels in (units, county, {"zone": units["zone"]}):
        alone = gravity(pair(own, own, len(zones)), zones, levels).other
        for other in others:
            first, second = (gravity(pair(*both, len(zones)), zones, levels) for both in ((own, other), (other, own)))
            assert first.reference == second.other == alone
            assert first.other == second.reference != alone


def test_one_unit_has_no_gravity(line, table):
    one = table((0, 0, 3))
    assert gravity(pair(one, one, 4), line, units_by_level(line)) is None
