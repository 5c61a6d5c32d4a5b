"""Two-sided geometric noise: its law in fractions, the sparse draw against the dense one, and running out of words."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from synthmap.kernels.noise import GEOMETRIC, NOISE_UNITS, TABLE_UNITS, add_noise, gaussian, geometric, two_sided
from synthmap.kernels.stream import seeded_stream
from synthmap.privacy.gaussian import VARIANCE_UNITS, gaussian_tails, gaussian_weights

FALSE_ALARM = 1e-9
UNITS = (2**30, 2**31 - 2**28, 2**26)


def ratio(units):
    return units / (NOISE_UNITS - units)


def agrees(counts, probabilities):
    """Whether counts of outcomes agree with their probabilities; outcomes are joined until 20 are expected."""
    expected = probabilities * counts.sum()
    groups = np.minimum(np.cumsum(expected) // 20, expected.sum() // 20 - 1).astype(int)
    seen, wanted = np.bincount(groups, counts), np.bincount(groups, expected)
    return stats.chisquare(seen[wanted > 0], wanted[wanted > 0] * seen.sum() / wanted.sum()).pvalue > FALSE_ALARM


def test_the_probability_of_a_positive_value_is_a_multiple_of_one_in_two_to_the_32():
    units = 511972652
    q = Fraction(units, NOISE_UNITS - units)
    assert q / (1 + q) == Fraction(units, NOISE_UNITS)


@pytest.mark.parametrize("units", UNITS)
def test_two_sided_noise_has_its_law(units):
    words, reader, repeats = seeded_stream(units).words(0, 2_000_000), np.zeros(1, np.int64), 40_000
    found = np.array([two_sided(words, reader, units, 10**6) for _ in range(repeats)])
    assert reader[0] > 0
    q, most = ratio(units), int(np.abs(found).max()) + 1
    z = np.arange(-most, most + 1)
    counts = np.bincount(found + most, minlength=z.size)
    assert agrees(counts, (1 - q) / (1 + q) * q ** np.abs(z))
    wrong = np.sqrt(q)  # that of half the ε
    assert not agrees(counts, (1 - wrong) / (1 + wrong) * wrong ** np.abs(z))


def dense(rng, truth, units):
    """Return noise on every cell, as numpy draws it, held likewise."""
    q = ratio(units)
    noise = rng.geometric(1 - q, truth.size) - rng.geometric(1 - q, truth.size)
    return np.clip(truth + noise, 0, truth.sum())


@pytest.mark.parametrize("units", UNITS)
def test_the_sparse_draw_has_the_law_of_noise_on_every_cell(units):
    truth = np.array([0, 3, 0, 1, 0, 0])
    homes, repeats = np.repeat(np.arange(truth.size), truth), 20_000
    words, reader = seeded_stream(units + 1).words(0, 4_000_000), np.zeros(1, np.int64)
    sparse = np.array([add_noise(homes, truth.size, units, GEOMETRIC.tails, words, reader) for _ in range(repeats)])
    assert reader[0] > 0
    rng = np.random.default_rng(units)
    other = np.array([dense(rng, truth, units) for _ in range(repeats)])
    codes = [counts @ 5 ** np.arange(truth.size) for counts in (sparse, other)]  # whole tables, not cells one by one
    _, numbered = np.unique(np.concatenate(codes), return_inverse=True)
    both = np.stack([np.bincount(part, minlength=numbered.max() + 1) for part in np.split(numbered, 2)])
    common = both.sum(axis=0) >= 20
    rare = both[:, ~common].sum(axis=1, keepdims=True)
    table = np.hstack([both[:, common], rare]) if rare.sum() else both[:, common]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_noise_only_on_occupied_cells_would_be_found():
    units = 2**30
    homes = np.array([1, 1])
    words, reader = seeded_stream(5).words(0, 10_000), np.zeros(1, np.int64)
    found = np.array([add_noise(homes, 4, units, GEOMETRIC.tails, words, reader) for _ in range(400)])
    assert (found[:, [0, 2, 3]] > 0).any(axis=0).all()


def test_counts_stay_between_none_and_the_headcount():
    words, reader = seeded_stream(6).words(0, 200_000), np.zeros(1, np.int64)
    found = np.array(
        [add_noise(np.array([2, 2, 2]), 5, 2**31 - 2**24, GEOMETRIC.tails, words, reader) for _ in range(300)]
    )
    assert found.min() == 0
    assert found.max() == 3


def test_running_out_of_words_is_told():
    reader = np.zeros(1, np.int64)
    add_noise(np.array([0, 1]), 50, 2**31 - 2**20, GEOMETRIC.tails, np.full(3, 2**63, np.uint64), reader)
    assert reader[0] < 0
    assert geometric(np.empty(0, np.uint64), reader, 2**30, 9) == 0


@pytest.mark.parametrize("variance", [0.3, 2.0, 30.0])
def test_gaussian_noise_has_the_law_of_its_table(variance):
    units = int(variance * VARIANCE_UNITS)
    tails, weights = np.array(gaussian_tails(units)), gaussian_weights(units) / TABLE_UNITS
    words, reader = seeded_stream(units).words(0, 50_000), np.zeros(1, np.int64)
    found = np.array([gaussian(words, reader, tails, 10**6) for _ in range(40_000)])
    assert reader[0] == 40_000  # one word each
    counts = np.bincount(found + tails.size, minlength=2 * tails.size + 1)
    assert agrees(counts, np.append(weights[:0:-1], weights))
    wrong = np.exp(-(np.arange(-tails.size, tails.size + 1) ** 2) / (1.4 * variance))  # 30 % less variance
    assert not agrees(counts, wrong / wrong.sum())


def test_the_sparse_draw_of_gaussian_noise_has_the_law_of_its_table_in_every_cell():
    """Empty cells and others, each against its own law, and pairs of empty cells for independence."""
    truth, repeats, units = np.array([0, 3, 0, 9, 0]), 20_000, 2 * VARIANCE_UNITS
    homes = np.repeat(np.arange(truth.size), truth)
    tails, weights = np.array(gaussian_tails(units)), gaussian_weights(units) / TABLE_UNITS
    words, reader = seeded_stream(8).words(0, 1_000_000), np.zeros(1, np.int64)
    found = np.array([add_noise(homes, truth.size, 0, tails, words, reader) for _ in range(repeats)])
    assert reader[0] > 0
    z, law = np.arange(-tails.size, tails.size + 1), np.append(weights[:0:-1], weights)
    for cell, count in enumerate(truth):
        wanted = np.bincount(np.clip(count + z, 0, 12), law, minlength=13)
        assert agrees(np.bincount(found[:, cell], minlength=13), wanted)
    positive = found[:, [0, 2, 4]] > 0
    seen = np.bincount(positive @ [1, 2, 4], minlength=8)
    p = tails[0] / TABLE_UNITS
    assert agrees(seen, np.array([p ** bin(i).count("1") * (1 - p) ** (3 - bin(i).count("1")) for i in range(8)]))
