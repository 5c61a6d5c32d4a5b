import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synthmap.privacy.tails import tail_expectation


def rising(start, steps):
    result = Fraction(1)
    for t in range(steps):
        result *= start + t
    return result


def exact(t, m, a, b, ratio=0.0, base=0.0):
    a, b, ratio, base = Fraction(a), Fraction(b), Fraction(ratio), Fraction(base)
    return sum(
        (
            math.comb(m, x) * rising(a, x) * rising(b, m - x) * (1 - (ratio * base / (base + x) if ratio else 0))
            for x in range(t + 1, m + 1)
        ),
        Fraction(0),
    ) / rising(a + b, m)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 39),
    st.floats(2.0**-20, 2.0**10),
    st.floats(2.0**-20, 2.0**10),
)
def test_tail_is_above_the_exact_value_and_near_it(m, t, a, b):
    found = tail_expectation(float(t), m, a, b, 0.0, 0.0, 1.0)
    true = exact(t, m, a, b)
    assert found >= true
    if true > Fraction(1, 10**200):
        assert found <= true * (1 + Fraction(1, 10**9)) or found == 1.0


def test_expectation_is_above_the_exact_value_and_near_it():
    dice = random.Random(3)
    for _ in range(300):
        m, v = dice.randint(1, 30), dice.randint(1, 6)
        alpha, excess = math.exp(dice.uniform(-3, 3)), math.exp(dice.uniform(-2, 3))
        t = math.floor(excess * (v - 1 + alpha))
        if t >= m or (t + 1) - excess * (v - 1 + alpha) < 1e-3:
            continue
        at = (m, v + alpha, dice.randint(0, 20) + alpha, 1.0 + excess, v - 1.0 + alpha)
        found = tail_expectation(float(t), *at, 1.0)
        true = exact(t, *at)
        assert true <= found * (1 + 1e-11)
        assert found <= true * (1 + Fraction(1, 10**8)) or found == 1.0


def test_expectation_with_a_weight_near_zero_is_above_the_exact_value():
    excess, alpha = float.fromhex("0x1.1ca71bdfc9531p+10"), float.fromhex("0x1.cc766f96dd342p-10")
    at = (2, 1 + alpha, alpha, 1.0 + excess, alpha)
    assert tail_expectation(1.0, *at, 1.0) >= exact(1, 2, 1 + alpha, alpha, 1 + excess, alpha)


def test_a_tail_that_underflows_is_not_below_the_exact_value():
    assert tail_expectation(199.0, 200, 1.0, 1133.0, 0.0, 0.0, 1.0) >= exact(199, 200, 1, 1133)


@pytest.mark.parametrize(("m", "a", "b"), [(1000, 5.5, 800.0), (10**5, 20.0, 1e5), (10**6, 2.0, 1e6)])
def test_tail_against_scipy(m, a, b):
    law = stats.betabinom(m, a, b)
    for t in (0, int(m * a / (a + b)), int(3 * m * a / (a + b))):
        found = tail_expectation(float(t), m, a, b, 0.0, 0.0, 1.0)
        # scipy sums the mass function in floats: both are right to about 1e-7
        mass = 1 - sum(law.pmf(range(t + 1)))
        assert found == pytest.approx(mass, rel=1e-5, abs=1e-9)


def test_edges():
    assert tail_expectation(5.0, 5, 1.0, 1.0, 0.0, 0.0, 1.0) == 0.0
    assert tail_expectation(-1.0, 5, 1.0, 1.0, 0.0, 0.0, 1.0) == 1.0
    assert tail_expectation(2.0, 5, 1.0, 0.0, 0.0, 0.0, 1.0) == 1.0
    assert tail_expectation(0.0, 5, 9.0, 1.0, 0.0, 0.0, 1e-3) == 1.0  # past the cap
    assert 0.0 < tail_expectation(400.0, 2000, 1e-3, 1e6, 0.0, 0.0, 1.0) < 1e-200
