"""True and synthetic workers of whole cells, against enumeration of every outcome."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import binom, multinomial

from synthmap.analysis.urns import between, dropped, nobody, some, urn_of

N, ALPHA = 4, 0.7
PRIOR = np.array([0.2, 0.5, 0.3])


def outcomes(keep=1.0, n=N, alpha=ALPHA, prior=PRIOR):
    """Return true and synthetic workers of three unequal cells, which are kept, and the chance of each outcome."""
    counts = [np.array(one) for one in product(range(n + 1), repeat=3) if sum(one) == n]
    found = []
    for x, y, kept in product(counts, counts, map(np.array, product((0, 1), repeat=3))):
        if (kept[x > 0] == 0).any() or (y[kept == 0] > 0).any():
            continue
        a = x + alpha * kept
        urn = gammaln(a.sum()) + gammaln(n + 1) - gammaln(a.sum() + n)
        urn += sum(
            gammaln(drawn + own) - gammaln(own) - gammaln(drawn + 1) for drawn, own in zip(y, a, strict=True) if own > 0
        )
        chance = np.prod(np.where(kept == 1, keep, 1 - keep)[x == 0])
        found.append((*x, *y, *kept, multinomial.pmf(x, n, prior) * np.exp(urn) * chance))
    found = np.array(found)
    return found[:, :3], found[:, 3:6], found[:, 6:9], found[:, 9]


def urn_and_weights(keep=1.0, n=N, alpha=ALPHA, prior=PRIOR):
    gone, varies, together = np.array([dropped(n, q, keep) for q in prior]).T
    urn = urn_of(n, alpha, keep, 3 - gone.sum(), varies.sum(), together.sum())
    return urn, np.array([prior, (n * prior + urn.alpha * (1 - gone)) / urn.total, varies, together])


def linear(weights, a, b):
    return np.array([(row @ a, row @ b, row @ (a * b)) for row in weights])


PAIRS = [
    ([1, 0, 0], [1, 0, 0]),
    ([0.3, 1, 0], [0.3, 1, 0]),
    ([0.9, 0.1, 0.4], [0.9, 0.1, 0.4]),
    ([1, 0.2, 0], [0, 0.5, 1]),
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_between_cells_it_is_exact_for_any_masses(a, b):
    a, b = np.array(a, float), np.array(b, float)
    x, y, _, chance = outcomes()
    assert chance.sum() == pytest.approx(1)
    urn, weights = urn_and_weights()
    first, second = (y - x) @ a, (y - x) @ b
    assert chance @ first == pytest.approx(N * (weights[1] - PRIOR) @ a)
    covariance = chance @ (first * second) - (chance @ first) * (chance @ second)
    assert between(urn, linear(weights, a, b)) == pytest.approx(covariance, rel=1e-9)


@pytest.mark.parametrize(("alpha", "near"), [(0.2, 0.02), (2.0, 0.06)])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_where_empty_cells_are_dropped_it_is_right_to_first_order(a, b, alpha, near):
    a, b = np.array(a, float), np.array(b, float)
    x, y, kept, chance = outcomes(0.3, alpha=alpha)
    assert chance.sum() == pytest.approx(1)
    urn, weights = urn_and_weights(0.3, alpha=alpha)
    assert 1 - chance @ kept == pytest.approx([dropped(N, q, 0.3)[0] for q in PRIOR])
    assert (chance @ y) / N == pytest.approx(weights[1], abs=near / 4)
    first, second = (y - x) @ a, (y - x) @ b
    covariance = chance @ (first * second) - (chance @ first) * (chance @ second)
    assert between(urn, linear(weights, a, b)) == pytest.approx(covariance, rel=near)
    urn, weights = urn_and_weights(alpha=alpha)
    if alpha > 1:  # there is something to find
        assert abs(between(urn, linear(weights, a, b)) / covariance - 1) > 2 * near


def test_the_chance_of_anybody():
    for n, share in ((1, 0.3), (1, 1e-9), (50, 1e-4), (50, 1.9e-4), (50, 2.1e-4), (3, 1.0), (900, 0.01)):
        assert some(n, share) == pytest.approx(-np.expm1(n * np.log1p(-share)) if share < 1 else 1, rel=1e-6)


@pytest.mark.parametrize("cells", [[0], [1], [0, 2], [0, 1, 2]])
def test_the_chance_of_nobody_in_a_union_of_cells_is_exact_for_any_masses(cells):
    x, y, _, chance = outcomes()
    no_true, none_drawn = (of[:, cells].sum(axis=1) == 0 for of in (x, y))
    expected = chance @ no_true, chance @ none_drawn, chance @ (no_true & none_drawn)
    urn, _ = urn_and_weights()
    assert nobody(urn, PRIOR[cells].sum(), float(len(cells))) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("cell", [0, 1, 2])
def test_the_chance_of_nobody_in_a_cell_that_may_be_dropped(cell):
    x, y, _, chance = outcomes(0.3)
    no_true, none_drawn = x[:, cell] == 0, y[:, cell] == 0
    expected = chance @ no_true, chance @ none_drawn, chance @ (no_true & none_drawn)
    assert nobody(urn_and_weights(0.3)[0], PRIOR[cell], 1.0) == pytest.approx(expected, abs=0.01)
    assert abs(nobody(urn_and_weights()[0], PRIOR[cell], 1.0)[2] - expected[2]) > 0.005


def test_the_chance_of_nobody_is_that_of_summing_over_all_true_workers():
    n, total, share, mass = 300, 300 + 40 * 0.5, 0.02, 1.5
    x = np.arange(n + 1)
    rest = total - mass - x
    none = np.exp(gammaln(rest + n) - gammaln(rest) + gammaln(total) - gammaln(total + n))
    urn = urn_of(n, 0.5, 1.0, 40.0, 0.0, 0.0)
    assert urn.total == total
    assert nobody(urn, share, 3.0)[1] == pytest.approx(binom.pmf(x, n, share) @ none, rel=1e-9)
