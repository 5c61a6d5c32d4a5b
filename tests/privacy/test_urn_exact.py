"""The urn's law, by running its own code through every choice, is the Dirichlet-multinomial exactly."""

from fractions import Fraction

import numpy as np
import pytest

from synthmap.audit.choices import draw
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.privacy.calibration import minimum_alpha

ALPHAS = [Fraction(3, 2), Fraction(1, 1), minimum_alpha(epsilon=2.0, delta=1e-3, headcount=3, cells=3).alpha]


def law(choices, counts, m, alpha, order, start, keeps):
    """Return the exact law of the histogram of what the urn draws."""
    k, drawn = len(counts), draw(choices)
    homes = np.repeat(np.arange(k), counts)
    arrays = [np.array(a, dtype=np.int64) for a in (order, start, keeps)]

    def run():
        cells = drawn(homes, m, k, alpha.numerator, alpha.denominator, *arrays, None, np.zeros(1, np.int64))
        return tuple(np.bincount(cells, minlength=k).tolist())

    return choices.law(run)


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize(("n", "k", "m"), [(1, 2, 3), (2, 3, 2), (3, 3, 3), (2, 4, 3)])
def test_without_dropping(small_worlds, choices, n, k, m, alpha):
    world = small_worlds.World(n, k, m, alpha)
    for counts in world.every:
        found = law(choices, counts, m, alpha, [], [0, k], [KEEP_UNITS])
        assert all(found.get(x, 0) == world.probability(counts, x) for x in world.outputs)


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize(("n", "k", "m"), [(1, 2, 3), (2, 3, 2), (3, 4, 2), (2, 3, 3)])
@pytest.mark.parametrize("keep", [KEEP_UNITS // 2, KEEP_UNITS * 3 // 4, 1])
def test_with_uniform_dropping(small_worlds, choices, n, k, m, keep, alpha):
    world = small_worlds.World(n, k, m, alpha, Fraction(keep, KEEP_UNITS))
    for counts in world.every:
        found = law(choices, counts, m, alpha, [], [0, k], [keep])
        assert all(found.get(x, 0) == world.probability(counts, x) for x in world.outputs)


def test_with_a_keep_probability_for_each_class(small_worlds, choices):
    order, start, keeps = [2, 0, 3, 1], [0, 1, 3, 4], [KEEP_UNITS // 4, KEEP_UNITS // 2, KEEP_UNITS]
    by_cell = {cell: keeps[c] for c in range(3) for cell in order[start[c] : start[c + 1]]}
    keep = tuple(Fraction(by_cell[cell], KEEP_UNITS) for cell in range(4))
    world = small_worlds.World(2, 4, 2, Fraction(3, 4), keep)
    for counts in world.every:
        found = law(choices, counts, 2, Fraction(3, 4), order, start, keeps)
        assert all(found.get(x, 0) == world.probability(counts, x) for x in world.outputs)


def test_a_wrong_alpha_is_noticed(small_worlds, choices):
    world = small_worlds.World(2, 3, 2, Fraction(3, 2))
    found = law(choices, (2, 0, 0), 2, Fraction(3, 2) * Fraction(7, 10), [], [0, 3], [KEEP_UNITS])
    assert any(found.get(x, 0) != world.probability((2, 0, 0), x) for x in world.outputs)
