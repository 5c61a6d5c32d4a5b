"""What the statement says about odds is true for the rules it is said for, and only for those."""

from fractions import Fraction

import pytest

from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.rule import Rule
from synthmap.release.statement import odds


@pytest.mark.parametrize(("n", "k", "epsilon", "delta"), [(4, 4, 1.0, 0.05), (4, 4, 2.0, 0.01), (3, 4, 2.0, 0.01)])
@pytest.mark.parametrize("rule", list(Rule))
def test_beliefs_move_more_only_where_the_statement_is_silent(small_worlds, rule, n, k, epsilon, delta):
    found = minimum_alpha(epsilon=epsilon, delta=delta, headcount=n, cells=k, rule=rule)
    world = small_worlds.World(n, k, n, found.alpha)
    often = world.failure(1 + Fraction(ratio_minus_one(epsilon)))
    assert (often <= Fraction(delta)) == (rule is not Rule.ADP)
    words = odds(epsilon, probabilistic=rule is not Rule.ADP)
    assert ("odds" in words) == (rule is not Rule.ADP)


def test_odds_are_those_of_bayes():
    """A belief of 1 % times a ratio of e⁴ = 54.598 has the odds 54.598 : 99."""
    assert "at most 54.6; a guess that is 1 % likely beforehand is at most 35.5 %" in odds(4.0, probabilistic=True)
