"""What is shown of a loss is not below it, what is shown of a budget not above it, and neither is far off."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthmap.privacy.shown import shown_budget, shown_loss, shown_losses

ROOM = Fraction(1, 2**40)  # as the ledger has
FIGURES = st.floats(min_value=1e-300, max_value=1e300)


@given(value=FIGURES, digits=st.sampled_from([1, 3, 6]))
def test_a_loss_is_rounded_up_and_a_budget_down(value, digits):
    most, least = Fraction(shown_loss(value, digits)), Fraction(shown_budget(value, digits))
    exact, step = Fraction(value), Fraction(10, 10**digits)
    assert exact * (1 - ROOM) <= most <= exact * (1 + step)
    assert exact * (1 - step) <= least <= exact * (1 + ROOM)


@pytest.mark.parametrize(
    ("value", "loss", "budget"),
    [(0.0, "0", "0"), (4.004, "4.004", "4.004"), (8.6, "8.6", "8.6"), (3 * 0.1, "0.3", "0.3"), (1e-5, "1e-05", "1e-05"),
     (4.0000001, "4.00001", "4"), (3.9999999, "4", "3.99999"), (999999.5, "1e+06", "999999")],
)  # fmt: skip
def test_what_is_typed_reads_as_it_was_typed(value, loss, budget):
    assert (shown_loss(value), shown_budget(value)) == (loss, budget)


def test_a_delta_has_three_digits():
    assert shown_losses(4.0, 9.996e-7) == "ε = 4, δ = 1e-06"
    assert shown_losses(4.0, 1.2301e-6) == "ε = 4, δ = 1.24e-06"
