"""Reading noisy counts: posteriors against sums written out, totals, rounding, and the table that agrees most."""

import itertools

import numpy as np
import pytest
from scipy import stats

from synthmap.kernels.noise import law_of
from synthmap.kernels.reading import (
    Levels,
    _tails,
    fades_at,
    interval,
    likely_counts,
    noise_variance,
    posterior,
    read_counts,
    whole_counts,
)
from synthmap.privacy.gaussian import VARIANCE_UNITS, gaussian_tails, gaussian_weights


def frame(share, group, ratio, group_ratio=1.0, between=5.0, within=160.0):
    share, group = np.asarray(share, float), np.asarray(group, np.int64)
    return Levels(share, group, np.bincount(group, share), np.full((3, 1), ratio), group_ratio, between, within)


@pytest.mark.parametrize("noisy", [1, 2, 40, 300])
@pytest.mark.parametrize("shape", [1e-4, 0.3, 12.0, 216.0])
@pytest.mark.parametrize("odds", [0.05, 0.6, 0.99])
@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.95])
def test_the_posterior_is_that_of_bayes(noisy, shape, odds, ratio):
    n = np.arange(60_000)
    logs = stats.nbinom.logpmf(n, shape, 1 - odds) + np.abs(noisy - n) * np.log(ratio)
    weight = np.exp(logs - logs.max())
    mean = (weight * n).sum() / weight.sum()
    variance = (weight * (n - mean) ** 2).sum() / weight.sum()
    found = posterior(noisy, shape, odds, *[np.array([ratio])] * 2)
    assert found == pytest.approx((mean, variance), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("within", [20.0, 5_000.0])
def test_a_quiet_cell_beside_a_loud_one_is_negative_binomial_again(within):
    """y = 0 has the weight q^n: against the sum written out, before and after the headcount is held."""
    ratio, levels = 0.4, frame([0.25, 0.75], [0, 1], 0.4, within=within)
    found = read_counts(np.array([0, 9]), np.empty(0, np.int64), 10, levels)
    means = []
    for y, share, theta in zip((0, 9), levels.share, found.theta, strict=True):
        n = np.arange(4_000)
        odds = theta / (within * share + theta)
        weight = stats.nbinom.pmf(n, within * share, 1 - odds) * ratio ** np.abs(y - n)
        mean = (weight * n).sum() / weight.sum()
        means.append((mean, (weight * (n - mean) ** 2).sum() / weight.sum()))
    assert found.variance == pytest.approx([v for _, v in means], rel=0.02)
    left = 10 - sum(m for m, _ in means)
    held = [m + left * v / sum(v for _, v in means) for m, v in means]
    assert found.mean == pytest.approx(held, rel=0.05)


def test_a_prior_that_is_far_off_gives_numbers():
    """Noisy counts far below what the prior expects: no overflow on the way up."""
    for noisy, shape, odds, ratio in ((5, 216.0, 1e5 / (1e5 + 240), 0.975), (3, 2500.0, 1e5 / 1.05e5, 0.6)):
        mean, variance = posterior(noisy, shape, odds, *[np.array([ratio])] * 2)
        exact = np.arange(200_000)
        logs = stats.nbinom.logpmf(exact, shape, 1 - odds) + np.abs(noisy - exact) * np.log(ratio)
        weight = np.exp(logs - logs.max())
        assert mean == pytest.approx((weight * exact).sum() / weight.sum(), rel=1e-6)
        assert variance > 0
    levels = frame([0.9, 0.1], [0, 0], 0.975, within=1e5)
    found = read_counts(np.array([5, 20_000]), np.empty(0, np.int64), 20_000, levels)
    assert np.isfinite(found.mean).all()
    assert likely_counts(np.array([5, 20_000]), 20_000, levels, found).sum() == 20_000


def test_where_nothing_was_seen_the_prior_is_read():
    share, ratio = np.array([0.25, 0.75]), 0.4
    found = read_counts(np.zeros(2, np.int64), np.empty(0, np.int64), 10, frame(share, [0, 0], ratio))
    assert found.mean == pytest.approx(10 * share)  # nothing was seen: the prior
    assert found.mean.sum() == pytest.approx(10)


@pytest.mark.parametrize("group_ratio", [1.0, 0.3])
def test_means_add_up_and_follow_what_was_seen(group_ratio):
    levels = frame([0.1, 0.1, 0.4, 0.4], [0, 0, 1, 1], 0.2, group_ratio)
    groups = np.empty(0, np.int64) if group_ratio == 1.0 else np.array([60, 40])
    found = read_counts(np.array([55, 4, 20, 22]), groups, 100, levels)
    assert found.mean.sum() == pytest.approx(100)
    assert found.mean[0] > 45
    assert (found.variance >= 0).all()


def test_noisy_counts_of_groups_move_their_cells():
    """Cells say nothing; the groups' own counts say that most live in the second."""
    levels = frame([0.25] * 4, [0, 0, 1, 1], 0.9, 0.1)
    found = read_counts(np.zeros(4, np.int64), np.array([5, 35]), 40, levels)
    assert found.mean[2:].sum() > 25
    assert read_counts(np.zeros(4, np.int64), np.empty(0, np.int64), 40, frame([0.25] * 4, [0, 0, 1, 1], 0.9)).mean[
        2:
    ].sum() == pytest.approx(20)


def test_posterior_means_beat_noisy_counts_and_prior_where_the_prior_is_true():
    rng = np.random.default_rng(1)
    share, q, n = np.full(40, 1 / 40), 0.6, 60
    levels = frame(share, np.arange(40) // 10, q, between=20.0, within=20.0)
    errors, stated = np.zeros(3), 0.0
    for _ in range(200):
        truth = rng.multinomial(n, rng.dirichlet(20 * share))
        noisy = np.clip(truth + rng.geometric(1 - q, 40) - rng.geometric(1 - q, 40), 0, n)
        found = read_counts(noisy, np.empty(0, np.int64), n, levels)
        stated += found.variance.mean()
        for i, guess in enumerate((found.mean, noisy, n * share)):
            errors[i] += ((guess - truth) ** 2).mean()
    assert errors[0] < 0.65 * errors[1:].min()
    assert stated == pytest.approx(errors[0], rel=0.15)


def test_whole_counts_keep_every_mean_exactly():
    mean = np.array([0.25, 0.5, 0.0, 2.75, 0.5])
    found = np.array([whole_counts(mean, 4, offset, 64) for offset in range(64)])
    assert (found.sum(axis=1) == 4).all()
    assert found.mean(axis=0) == pytest.approx(mean)
    for low, high in itertools.combinations(range(6), 2):  # any run of neighbours is within one of its mean
        assert (np.abs(found[:, low:high].sum(axis=1) - mean[low:high].sum()) < 1).all()


def test_likely_counts_agree_most_of_all_tables():
    """Against every table of a small world, by the expected common part under the independent posteriors."""
    levels, noisy, n = frame([0.5, 0.3, 0.2], [0, 0, 0], 0.3), np.array([0, 2, 1]), 4
    found = read_counts(noisy, np.empty(0, np.int64), n, levels)
    chosen = likely_counts(noisy, n, levels, found)
    odds = found.theta[0] / (levels.within * 1.0 + found.theta[0])
    tails = []
    for y, share in zip(noisy, levels.share, strict=True):
        k = np.arange(200)
        weight = stats.nbinom.pmf(k, levels.within * share, 1 - odds) * (0.3 ** np.abs(y - k) if y else 0.3**k)
        tails.append(1 - np.cumsum(weight / weight.sum()))

    def agreement(table):
        return sum(tails[i][:x].sum() for i, x in enumerate(table))

    tables = [t for t in itertools.product(range(n + 1), repeat=3) if sum(t) == n]
    assert chosen.sum() == n
    assert agreement(chosen) == pytest.approx(max(map(agreement, tables)), abs=1e-3)


def test_intervals_hold_about_nine_tenths():
    rng = np.random.default_rng(2)
    for mean, worth in ((0.3, 0.5), (3.0, 2.0), (40.0, 10.0), (800.0, 50.0)):
        counts = stats.nbinom.rvs(worth, worth / (worth + mean), size=20_000, random_state=rng)
        low, high = interval(mean, mean * (1 + mean / worth))
        assert 0 <= low <= mean <= high
        assert 0.86 < ((counts >= low) & (counts <= high)).mean() < 0.995
    assert interval(0.0, 0.0) == (0, 0)


def test_noise_variance_is_that_of_its_law():
    z = np.arange(-400, 401)
    weight = 0.7 ** np.abs(z)
    assert noise_variance(0.7) == pytest.approx((weight * z**2).sum() / weight.sum())


@pytest.mark.parametrize("variance", [0.4, 6.0])
@pytest.mark.parametrize("noisy", [0, 1, 7, 30])
def test_gaussian_counts_are_read_by_the_law_of_the_table(noisy, variance):
    """Against Bayes' rule written out, where counts were held at 0 and at the headcount of 30 too."""
    units = int(variance * VARIANCE_UNITS)
    levels = frame([0.2, 0.8], [0, 1], 0.5)._replace(fades=law_of(gaussian_tails(units)).fades)
    weights = gaussian_weights(units) / 2**62
    law = np.zeros(81)
    law[40 - weights.size + 1 : 40 + weights.size] = np.append(weights[:0:-1], weights)  # of Z = −40, …, 40
    shape, odds = 3.0, 0.7
    true = np.arange(31 if noisy == 30 else 60)
    likely = {0: [law[: 41 - min(n, 40)].sum() for n in true], 30: [law[min(40 + 30 - n, 80) :].sum() for n in true]}
    exact = [law[np.clip(noisy - n, -40, 40) + 40] for n in true]
    weight = stats.nbinom.pmf(true, shape, 1 - odds) * likely.get(noisy, exact)
    mean = (weight * true).sum() / weight.sum()
    up, down = fades_at(noisy, 30)
    found = posterior(noisy, shape, odds, levels.fades[up], levels.fades[down])
    assert found == pytest.approx((mean, (weight * (true - mean) ** 2).sum() / weight.sum()), rel=1e-6, abs=1e-9)
    tails = np.array([weight[n:].sum() for n in range(1, true.size)]) / weight.sum()
    told = _tails(noisy, shape, odds, levels.fades[up], levels.fades[down], 30)
    assert told == pytest.approx(tails[: told.size], rel=1e-3)
