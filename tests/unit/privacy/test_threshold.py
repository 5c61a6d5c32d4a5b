import math
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from synthmap.privacy.tails import threshold


def exact(excess, workers, alpha):
    return math.floor(Fraction(excess) * (Fraction(workers) + Fraction(alpha)))


@settings(max_examples=2000, deadline=None)
@given(st.floats(1e-6, 1e8), st.integers(0, 10**6), st.floats(2.0**-40, 1e6))
@example(1.0 / 3.0, 0, 3.0)
@example(0.1, 0, 10.0)
def test_never_above_and_exact_unless_the_sum_rounds(excess, workers, alpha):
    found, true = threshold(excess, float(workers), alpha), exact(excess, workers, alpha)
    assert found <= true
    if Fraction(workers + alpha) == Fraction(workers) + Fraction(alpha) and true < 1e15:
        assert found == true


@settings(max_examples=2000, deadline=None)
@given(st.integers(1, 10**6), st.floats(1e-3, 1e4), st.integers(-2, 2))
def test_at_the_lattice(j, excess, nudge):
    """α within two units in the last place of j/(R − 1), where a product in floats goes wrong."""
    alpha = j / excess
    for _ in range(abs(nudge)):
        alpha = math.nextafter(alpha, math.inf if nudge > 0 else 0.0)
    assert threshold(excess, 0.0, alpha) == exact(excess, 0, alpha)


def test_a_float_product_alone_would_be_wrong():
    wrong = [j for j in range(1, 2000) if math.floor((1 / 3) * (3.0 * j)) > exact(1 / 3, 0, 3.0 * j)]
    assert wrong
    assert all(threshold(1 / 3, 0.0, 3.0 * j) == j - 1 for j in wrong)


def test_large_products():
    assert threshold(math.exp(45), 99.0, 1.0) > 1e20
