import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from synthmap.published.expected import (
    _exact_minimum,
    _normal_minimum,
    expected_common_part,
    expected_mae_km,
    expected_pairs,
    expected_prior_share,
    expected_wasserstein_km,
    noise_floor,
    sampling_sd_km,
    share_variance,
)


def test_absolute_error_of_a_normal_error():
    draws = np.random.default_rng(0).normal(0, 3, 400_000)
    assert expected_mae_km(np.array([3.0]))[0] == pytest.approx(np.abs(draws).mean(), rel=0.01)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 2.0), (3.0, 2.0), (-3.0, 1.0), (0.5, 0.0), (-9.0, 0.1)])
def test_absolute_error_of_a_normal_error_with_a_mean(mean, sd):
    errors = mean + sd * np.random.default_rng(1).standard_normal(200_000)
    rmse = np.array([np.hypot(mean, sd)])
    assert expected_mae_km(rmse, np.array([mean]))[0] == pytest.approx(np.abs(errors).mean(), rel=0.01)
    assert expected_mae_km(rmse, np.array([2.0 * rmse[0]])) == pytest.approx(rmse)  # no more than all of it


def test_prior_share():
    found = expected_prior_share(np.array([10, 10]), np.array([30.0, 1.0]), np.array([4, 1]))
    assert found.tolist() == [0.75, 1]


def test_common_part_by_hand():
    # one worker, two cells: the same cell with probability (1 + α)/(1 + 2α)
    found = expected_common_part(np.array([1]), np.array([1]), np.array([2]), np.array([0.5]))
    assert found[0] == pytest.approx(1.5 / 2)


def test_common_part_of_one_cell_is_1():
    assert expected_common_part(np.array([7]), np.array([7]), np.array([1]), np.array([0.0]))[0] == 1


@pytest.mark.parametrize(("n", "k", "alpha"), [(5, 3, 0.7), (60, 16, 2.0), (600, 8, 5.0), (3000, 64, 3.0)])
def test_common_part_agrees_with_simulation(n, k, alpha):
    rng = np.random.default_rng(1)
    true = rng.multinomial(n, np.full(k, 1 / k), 4000)
    shares = rng.gamma(true + alpha)
    drawn = rng.multinomial(n, shares / shares.sum(axis=1, keepdims=True))
    overlap = np.minimum(true, drawn).sum(axis=1) / n
    found = expected_common_part(np.array([n]), np.array([n]), np.array([k]), np.array([alpha]))[0]
    assert found == pytest.approx(overlap.mean(), abs=5 * overlap.std() / math.sqrt(4000) + 0.002)


@pytest.mark.parametrize(("n", "k", "alpha"), [(1, 2, 0.5), (5, 3, 0.7), (60, 100, 0.3), (600, 64, 0.1)])
def test_spurious_and_missing_cells_agree_with_simulation(n, k, alpha):
    rng = np.random.default_rng(3)
    draws = 6000
    true = rng.multinomial(n, np.full(k, 1 / k), draws)
    shares = rng.gamma(true + alpha)
    drawn = rng.multinomial(n, shares / shares.sum(axis=1, keepdims=True))
    both = ((true > 0) & (drawn > 0)).sum()
    found = expected_pairs(np.array([n]), np.array([n]), np.array([k]), np.array([alpha]))
    slack = 5 / math.sqrt(draws)
    assert found == pytest.approx((1 - both / (drawn > 0).sum(), 1 - both / (true > 0).sum()), abs=slack)


def law_with_dropping(n, k, alpha, keep):
    """Return common part, and shares of spurious and missing cells, of n workers in k cells, by enumeration."""
    common, true, found, both = 0.0, 0.0, 0.0, 0.0
    for v in range(n + 1):  # workers in one cell, which is kept; how many others are: the occupied ones and some empty
        others = np.zeros(k)
        others[0] = 1.0
        for _ in range(n - v):
            others = others * np.arange(k) / (k - 1) + np.append(0, others[:-1] * np.arange(k - 1, 0, -1) / (k - 1))
        weight = k * binom.pmf(v, n, 1 / k)
        true += weight * (v > 0)
        for occupied, few in product(range(k), repeat=2):
            if occupied + few < k and others[occupied]:
                chance = weight * others[occupied] * binom.pmf(few, k - 1 - occupied, keep) * (1 if v else keep)
                rest = n - v + alpha * (occupied + few)
                drawn = betabinom.pmf(np.arange(n + 1), n, v + alpha, rest) if rest else np.arange(n + 1) == n
                common += chance * (drawn @ np.minimum(np.arange(n + 1), v)) / n
                found += chance * (1 - drawn[0])
                both += chance * (1 - drawn[0]) * (v > 0)
    return common, 1 - both / found, 1 - both / true


@pytest.mark.parametrize(
    ("n", "k", "alpha", "keep", "off"),
    [(3, 10, 0.5, 0.3, 2e-3), (5, 8, 3.0, 0.2, 5e-3), (10, 50, 2.0, 0.1, 2e-3), (30, 30, 1.0, 0.5, 5e-4),
     (1, 50, 1.0, 0.1, 0.01), (1, 4, 2.0, 0.1, 0.02), (2, 2, 1.0, 0.3, 0.01), (4, 5, 1.0, 1.0, 1e-9)],
)  # fmt: skip
def test_dropping_of_empty_cells_agrees_with_enumeration(n, k, alpha, keep, off):
    expected = law_with_dropping(n, k, alpha, keep)
    case = [np.array([one]) for one in (n, n, k, alpha, keep)]
    assert (expected_common_part(*case)[0], *expected_pairs(*case)) == pytest.approx(expected, abs=off)
    if keep < 1:  # taking all cells for kept is not within that
        assert abs(expected_pairs(*case[:4])[0] - expected[1]) > 2 * off


def test_shares_of_cells_are_of_all_destinations_and_one_cell_is_always_right():
    found = expected_pairs(np.array([7, 7]), np.array([7, 7]), np.array([1, 1]), np.array([0.0, 2.0]))
    assert found == (0.0, 0.0)
    # one worker, two cells: another cell with probability α/(1 + 2α); beside a destination that is right
    found = expected_pairs(np.array([1, 7]), np.array([1, 7]), np.array([2, 1]), np.array([0.5, 0.0]))
    assert found == pytest.approx((0.125, 0.125))


@pytest.mark.parametrize(("n", "mass", "strength"), [(40, 15.0, 20.0), (400, 60.0, 20.0), (3000, 800.0, 5.0)])
def test_wasserstein_distance_agrees_with_simulation(n, mass, strength):
    """True shares scatter around the prior; in the mean over draws."""
    rng = np.random.default_rng(6)
    km = np.array([0.5, 1.0, 2.0, 4.0, 7.0, 12.0, 30.0])
    q = np.array([0.2, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05])
    draws = 4000
    true = rng.multinomial(n, rng.dirichlet(strength * q, draws))
    shares = rng.gamma(true + mass * q)
    drawn = rng.multinomial(n, shares / shares.sum(axis=1, keepdims=True))
    distance = np.abs(np.cumsum(drawn - true, axis=1))[:, :-1] @ np.diff(km) / n
    size = np.array([n])
    v = share_variance(size, size, np.array([mass / (n + mass)]), np.array([strength]))
    variance = np.array([q @ km**2 - (q @ km) ** 2])
    below = np.cumsum(q)[:-1]
    width = np.array([np.sqrt(below * (1 - below)) @ np.diff(km)])
    found = expected_wasserstein_km(np.sqrt(variance * v), variance, width)[0]
    assert 0.85 * found < distance.mean() < 1.02 * found


def test_normal_approximation_is_close_where_it_takes_over():
    v = np.arange(1, 40)
    ours, rest = v + 2.0, 200 - v + 2.0 * 20
    exact, normal = _exact_minimum(v, 200, ours, rest), _normal_minimum(v, 200, ours, rest)
    assert np.abs(exact - normal).max() < 0.15


def test_more_noise_means_less_in_common_once_it_outweighs_the_smoothing():
    alpha = np.array([1.0, 3.0, 10.0, 100.0])
    same = np.full(4, 50)
    found = expected_common_part(same, same, np.full(4, 16), alpha)
    assert (np.diff(found) < 0).all()


def test_sampling_error_agrees_with_simulation():
    rng = np.random.default_rng(2)
    km, true, alpha = np.array([1.0, 5.0, 20.0]), np.array([10, 20, 5]), 1.5
    shares = rng.dirichlet(true + alpha, 20_000)
    means = rng.multinomial(35, shares) @ km / 35
    p = (true + alpha) / (35 + 3 * alpha)
    variance = p @ km**2 - (p @ km) ** 2
    found = sampling_sd_km(np.array([variance]), np.array([35]), np.array([35]), np.array([3 * alpha]))
    assert found[0] == pytest.approx(means.std(), rel=0.02)


@pytest.mark.parametrize(
    ("n", "mass", "q"),
    [
        (30, 10.0, 0.3),
        (400, 60.0, 0.05),
        (400, 800.0, 0.5),
        (8, 40.0, 0.2),
        (2, 0.5, 0.3),
        (1, 0.1, 0.3),
        (1, 9.0, 0.1),
    ],
)
def test_error_of_a_share_agrees_with_simulation(n, mass, q):
    rng = np.random.default_rng(4)
    strength, draws = 20.0, 200_000
    true = rng.binomial(n, rng.beta(strength * q, strength * (1 - q), draws))
    drawn = rng.binomial(n, rng.beta(true + mass * q, n - true + mass * (1 - q)))
    found = (
        share_variance(np.array([n]), np.array([n]), np.array([mass / (n + mass)]), np.array([strength]))[0]
        * q
        * (1 - q)
    )
    simulated = ((drawn - true) ** 2).mean() / n**2
    assert simulated == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize(("c", "mixing"), [(200, 0.9), (200, 0.5), (10, 0.9)])
def test_a_prior_that_follows_a_public_table_errs_less(c, mixing):
    """Two guesses at the true share: of decay, worth S workers, and of the table, a draw of c workers of a draw."""
    n, mass, q, strength, draws = 60, 90.0, 0.3, 5.0, 200_000
    rng = np.random.default_rng(5)
    decay = rng.beta(strength * q, strength * (1 - q), draws)
    table = rng.binomial(c, rng.binomial(c, q, draws) / c) / c
    weight = mixing * c / (c + strength)
    prior = (1 - weight) * decay + weight * table
    worth = 1 / ((1 - weight) ** 2 / (1 + strength) + weight**2 / (1 + 0.5 * c)) - 1
    true = rng.binomial(n, q, draws)
    drawn = rng.binomial(n, rng.beta(true + mass * prior, n - true + mass * (1 - prior)))
    simulated = ((drawn - true) ** 2).mean() / n**2 / (q * (1 - q))
    size, share = np.array([n]), np.array([mass / (n + mass)])
    found = share_variance(size, size, share, np.array([worth]))[0]
    assert 0.9 * found < simulated < 1.06 * found
    assert share_variance(size, size, share, np.array([strength]))[0] > 1.2 * found  # as if there were no table


def test_where_all_is_prior_the_error_is_that_of_the_prior_and_of_independent_draws():
    found = share_variance(np.array([10]), np.array([10]), np.array([1.0]), np.array([19.0]))
    assert found[0] == pytest.approx(29 / 200 + 1 / 10)


def test_noise_floor_is_where_the_error_becomes_half_of_the_figure():
    size = np.array([40, 300, 20_000])
    variance = np.array([0.08, 0.02, 0.001])
    floor = noise_floor(variance, size)
    for figure, half in ((floor, True), (floor - 1, False)):
        q = figure / size
        assert ((np.sqrt(q * (1 - q) * variance) <= q / 2) == half).all()


def test_there_is_no_noise_floor_where_no_part_of_the_total_holds():
    assert noise_floor(np.array([0.26, 3.0]), np.array([5, 1])).tolist() == [math.inf, math.inf]
