"""A destination's origins and the variance of errors, against enumeration of every outcome."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import binom, multinomial

from synthmap.analysis.cell_tables import STEPS, cell_tables
from synthmap.analysis.prior_cells import Resampled, between, domain_of, inside, nobody, some
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable, mass_below, prior_from

N, ALPHA = 4, 0.7
PRIOR = np.array([0.2, 0.5, 0.3])
TOTAL = N + 3 * ALPHA
DRAWN = (N * PRIOR + ALPHA) / TOTAL


def outcomes():
    """Return true and synthetic workers of three unequal cells, and the chance of each outcome."""
    counts = [one for one in product(range(N + 1), repeat=3) if sum(one) == N]
    found = []
    for x, y in product(map(np.array, counts), repeat=2):
        a = x + ALPHA
        urn = gammaln(TOTAL) + gammaln(N + 1) - gammaln(TOTAL + N)
        urn += (gammaln(y + a) - gammaln(a) - gammaln(y + 1)).sum()
        found.append((*x, *y, multinomial.pmf(x, N, PRIOR) * np.exp(urn)))
    found = np.array(found)
    return found[:, :3], found[:, 3:6], found[:, 6]


def linear(a, b):
    sums = [(a @ p, b @ p, (a * b) @ p) for p in (PRIOR, DRAWN)]
    return np.array(sums).ravel()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 0, 0], [1, 0, 0]),
        ([0.3, 1, 0], [0.3, 1, 0]),
        ([0.9, 0.1, 0.4], [0.9, 0.1, 0.4]),
        ([1, 0.2, 0], [0, 0.5, 1]),
    ],
)
def test_between_cells_it_is_exact_for_any_masses(a, b):
    a, b = np.array(a, float), np.array(b, float)
    x, y, chance = outcomes()
    assert chance.sum() == pytest.approx(1)
    first, second = (y - x) @ a, (y - x) @ b
    assert chance @ first == pytest.approx(N * (DRAWN - PRIOR) @ a)
    covariance = chance @ (first * second) - (chance @ first) * (chance @ second)
    assert between(N, TOTAL, linear(a, b)) == pytest.approx(covariance, rel=1e-9)


def test_inside_a_cell_true_workers_are_binomial_and_synthetic_ones_are_spread():
    n, k, alpha, point = 7, 2, 0.3, 12
    tables = cell_tables(np.array([n]), np.array([k]), np.array([alpha]))
    t = (point / STEPS) ** 2
    part = t * k / n
    assert 0 < part < 0.5
    spread = t * tables.value[0, point, 1]
    binomial = n / k * part * (1 - part)
    assert inside(n, 1 / k, 1 / k, part, 1.0, tables, 0) == pytest.approx(binomial + spread)
    assert inside(n, 1 / k, 1 / k, 1 - part, 1.0, tables, 0) == pytest.approx(binomial + spread)
    assert inside(n, 1 / k, 1 / k, part, 1000.0, tables, 0) == pytest.approx(2 * binomial)  # as if each were drawn
    assert inside(n, 1 / k, 1 / k, 1.0, 1.0, tables, 0) == 0


def test_the_chance_of_anybody():
    for n, share in ((1, 0.3), (1, 1e-9), (50, 1e-4), (50, 1.9e-4), (50, 2.1e-4), (3, 1.0), (900, 0.01)):
        assert some(n, share) == pytest.approx(-np.expm1(n * np.log1p(-share)) if share < 1 else 1, rel=1e-6)


@pytest.mark.parametrize("cells", [[0], [1], [0, 2], [0, 1, 2]])
def test_the_chance_of_nobody_in_a_union_of_cells_is_exact_for_any_masses(cells):
    x, y, chance = outcomes()
    no_true, none_drawn = (of[:, cells].sum(axis=1) == 0 for of in (x, y))
    expected = chance @ no_true, chance @ none_drawn, chance @ (no_true & none_drawn)
    assert nobody(N, TOTAL, PRIOR[cells].sum(), ALPHA * len(cells)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_chance_of_nobody_is_that_of_summing_over_all_true_workers():
    n, total, share, mass = 300, 300 + 40 * 0.5, 0.02, 1.5
    x = np.arange(n + 1)
    rest = total - mass - x
    none = np.exp(gammaln(rest + n) - gammaln(rest) + gammaln(total) - gammaln(total + n))
    assert nobody(n, total, share, mass)[1] == pytest.approx(binom.pmf(x, n, share) @ none, rel=1e-9)


@pytest.mark.parametrize("with_table", [False, True])
def test_shares_of_zones_are_those_of_the_prior(town, with_table):
    first = np.zeros(401, np.int64)
    first[51:] = 3
    table = PriorTable(first, np.array([7, 80, 400], np.int32), np.array([4, 1, 2])) if with_table else NO_TABLE
    model = PriorModel(4.0, 2.0, 0.1, 0.5 if with_table else 0.0, 5.0, table)
    places = np.array([50], np.int32)
    points = town.points(places)
    prior = prior_from(town.tree, model, points[0], 50)
    below = np.array([mass_below(prior, town.tree.cumulative, rank) for rank in range(402)])
    plan, alpha = np.array([[12, 1, 12, -1, 30]]), np.array([0.5])
    tables = cell_tables(np.array([30]), np.array([12]), alpha)
    found = domain_of(Resampled(town.tree, model, points, places, plan, alpha, tables), 0)
    assert found.share == pytest.approx(np.diff(below) / below[-1], abs=1e-15)
    assert (found.bounds[0], found.bounds[-1], found.prior.size) == (0, 401, 12)
    assert np.add.reduceat(found.share, found.bounds[:-1]) == pytest.approx(found.prior)
    assert found.drawn == pytest.approx((30 * found.prior + 0.5) / 36)
