"""A certificate is never below the truth of an enumerated world."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from synthmap.privacy.certificate import _cell, _knapsack, certified, kept_cells
from synthmap.privacy.dropping import dropping_factors

ALPHAS = [Fraction(a) for a in ("1/16", "1/3", "1", "5/2", "12", "50")]
KEEPS = [Fraction(f) for f in ("1", "9/10", "1/2", "1/8")]


def bound(world, excess, *, adp, delta=0.999999):
    least, most = float(min(world.keeps)), float(max(world.keeps))
    number, probability = kept_cells(world.k, least)
    at = (world.n, world.m, world.k, float(world.alpha), excess, least, number, probability)
    return certified(*at, adp, delta, most)


def cheapest_ratio(world):
    factor = dropping_factors(world.n, world.m, world.k, float(world.alpha), float(min(world.keeps)))
    return max(factor[2], factor[0] if world.n > 1 else 1.0)


def never_below(world, excess):
    ratio = 1 + Fraction(excess)
    assert bound(world, excess, adp=False) >= world.failure(ratio), (world, excess)
    assert bound(world, excess, adp=True) >= world.adp(ratio), (world, excess)


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_small_worlds(small_worlds, n, keep):
    for k in (2, 3, 4):
        for m in (1, 2, 3, 4):
            for alpha in ALPHAS:
                world = small_worlds.World(n, k, m, Fraction(float(alpha)), Fraction(float(keep)))
                least = cheapest_ratio(world)
                for share in (0.05, 0.5, 0.95):
                    top = least * float(1 + m / world.alpha)
                    never_below(world, least + share * (top - least) - 1 + 1e-9)


def test_random_worlds(small_worlds):
    dice = random.Random(20081)
    for _ in range(400):
        n, k, m = dice.randint(1, 6), dice.randint(2, 3), dice.randint(1, 7)
        alpha = Fraction(dice.choice([dice.randint(1, 64), dice.randint(64, 4096)]), 64)
        keeps = tuple(Fraction(dice.randint(1, 16), 16) for _ in range(k))
        keep = dice.choice([Fraction(1), keeps[0], keeps, keeps])
        world = small_worlds.World(n, k, m, alpha, keep)
        never_below(world, cheapest_ratio(world) * math.exp(dice.expovariate(1.5)) - 1 + 1e-9)


def test_empty_cells_are_charged_at_the_largest_keep_probability(small_worlds):
    """n = 1 keeps all but one cell empty, so the term of the empty cells shows."""
    for least in (Fraction(1, 4), Fraction(3, 4)):
        for alpha in (Fraction(1, 8), Fraction(2)):
            for keeps in ((least, 1, 1, 1), (1, least, least, least), (1, 1, 1, least)):
                world = small_worlds.World(1, 4, 3, alpha, tuple(Fraction(f) for f in keeps))
                excess = cheapest_ratio(world) * float(1 + Fraction(3, 2) / alpha) - 1
                never_below(world, excess)
                number, probability = kept_cells(4, float(least))
                at = (1, 3, 4, float(alpha), excess, float(least), number, probability)
                assert certified(*at, False, 0.999999) <= bound(world, excess, adp=False)


def test_tight_when_only_one_output_in_each_cell_is_bad(small_worlds):
    """j = m − 1: an output is bad only if every synthetic worker sits in one cell; nothing is lost."""
    for n, k, m in [(1, 3, 2), (2, 3, 2), (3, 3, 3), (4, 3, 4), (3, 4, 2), (4, 4, 3), (2, 5, 3)]:
        for alpha in (Fraction(1, 2), Fraction(2), Fraction(9)):
            excess = float((m - Fraction(1, 2)) / alpha)
            world = small_worlds.World(n, k, m, alpha)
            true = world.failure(1 + Fraction(excess))
            assert 0 < true <= bound(world, excess, adp=False) <= true * (1 + Fraction(1, 10**9))


def test_not_always_tight_with_three_cells(small_worlds):
    """Where two cells can be bad at once, or no cell is left to compare with, the bound is above."""
    for n, k, m, alpha, excess in [
        (6, 3, 6, Fraction(19, 8), 1.597872186036028),
        (1, 3, 7, Fraction(19), 0.29520005305640806),
        (6, 2, 6, Fraction(2), math.expm1(1.0) / 2),
    ]:
        world = small_worlds.World(n, k, m, alpha)
        true = world.failure(1 + Fraction(excess))
        assert true * Fraction(101, 100) < bound(world, excess, adp=False)


def reference_bound(world, excess, delta=0.999999):
    """The certificate of the proof, cell by cell, without blocks."""
    n, m, k, alpha, keep = world.n, world.m, world.k, float(world.alpha), float(world.keeps[0])
    number, probability = kept_cells(k, keep)
    factor = dropping_factors(n, m, k, alpha, keep)
    gains = tuple((1 + excess) / f * (1 - 1e-14) - 1 for f in factor)
    at = (n, m, alpha, gains, number, probability, False, delta)
    each = np.array([0.0] + [_cell(float(v), float(v), *at) for v in range(1, n + 1)])
    return min(1.0, _knapsack(n, k, keep * _cell(0.0, 0.0, *at), each))


def test_blocks_lose_no_cell_without_dropping(small_worlds):
    dice = random.Random(5)
    for _ in range(300):
        n, k = dice.randint(1, 40), dice.randint(2, 8)
        world = small_worlds.World(n, k, dice.randint(1, 40), Fraction(dice.randint(1, 400), 64))
        excess = math.exp(dice.uniform(-1, 3))
        assert bound(world, excess, adp=False) >= reference_bound(world, excess) * (1 - 1e-9)


def test_blocks_lose_no_cell_with_dropping(small_worlds):
    """The cell of n − 1 workers, seen from the neighbour in which all n share it, has the factor of n."""
    dice = random.Random(6)
    for _ in range(3000):
        n, k, m = dice.randint(4, 14), dice.choice([2, 2, 3]), dice.randint(2, 12)
        alpha = Fraction(max(1, round(16 * math.exp(dice.uniform(-2, 6)))), 16)
        world = small_worlds.World(n, k, m, alpha, Fraction(dice.randint(50, 99), 100))
        excess = cheapest_ratio(world) * math.exp(dice.expovariate(5)) - 1
        assert bound(world, excess, adp=False) >= reference_bound(world, excess) * (1 - 1e-9), world


def test_dual_covers_the_knapsack():
    """Just above EXACT_KNAPSACK the dual is used: never below the exact maximum, and near it."""
    dice = random.Random(7)
    for _ in range(60):
        n, k, m = dice.randint(65, 90), dice.choice([2, 3, 20, 64, 80, 300]), dice.randint(5, 200)
        alpha, excess = math.exp(dice.uniform(-2, 4)), math.exp(dice.uniform(-1, 2))
        number, probability = kept_cells(k, 1.0)
        at = (n, m, alpha, (excess,) * 3, number, probability, False, 0.9)
        each = np.array([0.0] + [_cell(float(v), float(v), *at) for v in range(1, n + 1)])
        exact = _knapsack(n, k, _cell(0.0, 0.0, *at), each)
        found = certified(n, m, k, alpha, excess, 1.0, number, probability, False, 0.9)
        assert found >= min(exact, 1.0) * (1 - 1e-11)


@pytest.mark.parametrize(("cells", "keep"), [(2, 0.3), (10, 0.9), (24, 0.5), (25, 0.5), (60, 0.1)])
def test_kept_cells_is_below_the_binomial(cells, keep):
    number, probability = kept_cells(cells, keep)
    others, f = cells - 1, Fraction(keep)
    law = [math.comb(others, i) * f**i * (1 - f) ** (others - i) for i in range(cells)]
    for at in range(cells):
        claimed = sum(Fraction(p) for v, p in zip(number, probability, strict=True) if v <= at)
        assert claimed >= sum(law[: at + 1])
    assert sum(probability) == pytest.approx(1, abs=1e-7)
