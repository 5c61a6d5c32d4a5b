import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from synthmap.audit.attacks.odds import Odds, odds
from synthmap.audit.statistical import FALSE_ALARM


def claims(number, draws=1_000):
    """Return tables of which `number` are claimed."""
    return pl.DataFrame({"draw": np.arange(draws), "claimed": np.arange(draws) < number})


def says(tables):
    return tables.filter("claimed")["draw"]


@pytest.mark.parametrize(("right", "wrong"), [(900, 30), (30, 900), (970, 100), (1000, 0), (500, 480)])
def test_the_bound_is_the_best_of_claims_and_their_absence(right, wrong):
    found = odds(says, claims(right), claims(wrong), draws=1_000, delta=0.01)
    assert (found.right, found.wrong) == (right, wrong)

    def bound(seen, other):
        each = FALSE_ALARM / 8
        low = stats.beta.ppf(each, seen, 1_001 - seen) if seen else 0.0
        high = stats.beta.ppf(1 - each, other + 1, 1_000 - other) if other < 1_000 else 1.0
        return math.log(max(1.0, (low - 0.01) / high))

    pairs = [(right, wrong), (wrong, right), (1_000 - right, 1_000 - wrong), (1_000 - wrong, 1_000 - right)]
    assert found.epsilon_at_least == pytest.approx(max(bound(*pair) for pair in pairs))


def test_no_difference_proves_nothing():
    assert odds(says, claims(300), claims(310), draws=1_000, delta=0.0).epsilon_at_least == 0


def test_posteriors():
    assert Odds(100, 80, 20, 0.0).posterior(0.5) == pytest.approx(0.8)
    assert Odds(100, 80, 20, 0.0).posterior(0.1) == pytest.approx(8 / 26)
    assert Odds(100, 0, 0, 0.0).posterior(0.3) == 0.3
