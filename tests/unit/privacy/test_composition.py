import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.composition import jobs, round_up, table_dp, table_pdp_delta

probabilities = st.floats(0, 1) | st.floats(0, 1e-12) | st.floats(0, 1e-300)


@given(st.lists(probabilities, max_size=12))
@example([5e-324])
@example([1 - 2.0**-53] * 3)
@example([1e-17] * 10)
def test_table_pdp_delta_is_above_the_exact_value_and_near_it(deltas):
    found = table_pdp_delta(np.array(deltas))
    true = 1 - math.prod((1 - Fraction(d) for d in deltas), start=Fraction(1))
    assert 0 <= found <= 1
    assert found >= true
    assert found <= float(true) * (1 + 1e-14) + 1e-323


def test_table_pdp_delta_of_many_destinations():
    assert table_pdp_delta(np.full(10**5, 1e-15)) == pytest.approx(1e-10, rel=1e-9)
    assert table_pdp_delta(np.full(10**5, 1e-3)) == 1.0
    assert table_pdp_delta([]) == 0.0
    assert table_pdp_delta([0.2, 1.0]) == 1.0


@pytest.mark.parametrize("wrong", [[-1e-9], [1.1], [math.nan], [[0.1]]])
def test_table_pdp_delta_out_of_range(wrong):
    with pytest.raises(PrivacyParameterError, match=r"deltas \(.*\) must be"):
        table_pdp_delta(np.array(wrong))


def test_table_dp_is_the_maximum():
    assert table_dp(np.array([0.0, 3.0, 2.0]), np.array([1e-3, 0.0, 1e-9])) == (3.0, 1e-3)
    assert table_dp([], []) == (0.0, 0.0)


@pytest.mark.parametrize(("epsilons", "deltas"), [([1.0], []), ([math.inf], [0.0]), ([-1.0], [0.0]), ([1.0], [2.0])])
def test_table_dp_out_of_range(epsilons, deltas):
    with pytest.raises(PrivacyParameterError, match=r"must be"):
        table_dp(epsilons, deltas)


@given(st.floats(0, 700), st.floats(0, 1), st.integers(1, 1000))
def test_jobs_are_rounded_up(epsilon, delta, most):
    total, failure = jobs(epsilon, delta, most)
    assert Fraction(total) >= most * Fraction(epsilon)
    assert math.nextafter(total, -1.0) < most * Fraction(epsilon)
    assert Fraction(failure) >= min(1, most * Fraction(delta))
    assert failure <= 1


@pytest.mark.parametrize("wrong", [(-1, 0, 1), (1, 2, 1), (1, 0, 0), (1, 0, 1.5), (math.nan, 0, 1)])
def test_jobs_out_of_range(wrong):
    with pytest.raises(PrivacyParameterError, match=r"must be"):
        jobs(*wrong)


@given(st.fractions(0, 10**6))
def test_round_up(value):
    found = round_up(value)
    assert Fraction(found) >= value
    assert math.nextafter(found, -1.0) < value or found == 0
