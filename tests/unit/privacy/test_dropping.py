import importlib.util
import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.dropping import dropping_factors, vanishing_gain

_NAME = "synthmap_small_worlds"
_PATH = Path(__file__).parents[2] / "privacy" / "small_worlds.py"


@pytest.fixture(scope="module")
def small_worlds():
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, _PATH)
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[_NAME]


def gain(n, m, alpha, cells):
    result = Fraction(1)
    for t in range(m):
        result *= (n + cells * alpha + t) / (n + (cells - 1) * alpha + t)
    return result


def test_gain_is_rounded_up():
    dice = random.Random(2)
    for _ in range(300):
        n, m, cells = dice.randint(1, 500), dice.randint(1, 60), dice.randint(2, 3)
        alpha = Fraction(dice.randint(1, 10**6), 2 ** dice.randint(0, 30))
        found, true = vanishing_gain(n, m, float(alpha), cells), gain(n, m, alpha, cells)
        assert true <= Fraction(found) <= true * (1 + Fraction(1, 10**5))


def test_no_violation_of_the_ratio_bound(small_worlds):
    """For every pair of neighbours and every output: ratio ≤ (1 + x/(v − 1 + α)) · factor(v)."""
    dice, worlds = random.Random(11), 0
    for _ in range(260):
        n, k, m = dice.randint(1, 5), dice.randint(2, 4), dice.randint(1, 4)
        alpha = Fraction(dice.choice([dice.randint(1, 64), dice.randint(64, 6400)]), 32)
        keeps = tuple(Fraction(dice.randint(1, 16), 16) for _ in range(k))
        if dice.random() < 0.4:
            keeps = keeps[:1] * k
        world = small_worlds.World(n, k, m, alpha, keeps)
        factor = [Fraction(f) for f in dropping_factors(n, m, k, float(alpha), float(min(keeps)))]
        laws, _ = world._laws
        for counts in world.every:
            for left, _, other in small_worlds.neighbours(counts):
                v = counts[left]
                cost = factor[2] if v == n else factor[0] if v == 1 else factor[1]
                for x, p in laws[counts].items():
                    base = v - 1 + alpha
                    assert p * base <= (base + x[left]) * cost * laws[other][x], (world, counts, x)
        worlds += 1
    assert worlds >= 200


def test_without_dropping_nothing_is_charged():
    assert dropping_factors(5, 5, 4, 2.0, 1.0) == (1.0, 1.0, 1.0)
    assert dropping_factors(5, 5, 1, 2.0, 0.5) == (1.0, 1.0, 1.0)


def test_two_cells_leave_no_room_for_an_empty_one_to_enter():
    first, middle, last = dropping_factors(5, 5, 2, 2.0, 0.5)
    assert first == pytest.approx(2.0)
    assert middle == 1.0
    assert last > 1.0


@pytest.mark.parametrize("epsilon", [3.0, 4.0, 8.6])
@pytest.mark.parametrize(("headcount", "cells"), [(3, 8), (10, 32), (50, 64), (300, 128)])
@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1])
def test_dropping_never_leaves_less_noise_even_in_empty_cells(epsilon, headcount, cells, keep):
    """Why `plan.keep = "auto"` keeps all; noise is rounded up by at most 2^-15 of itself, and searched in steps."""
    asked = {"epsilon": epsilon, "delta": 1e-5, "headcount": headcount, "cells": cells}
    whole = float(minimum_alpha(**asked).alpha)
    try:
        dropped = float(minimum_alpha(**asked, keep=keep).alpha)
    except PrivacyParameterError:
        return  # dropping alone costs more than ε
    assert keep * dropped > whole * 0.995
