import dataclasses
import math
from fractions import Fraction

import pytest

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.loss import PrivacyLoss, ReplaceOrigin


def loss(epsilon=1.0, delta=1e-5, *, segments=False):
    return PrivacyLoss(epsilon, delta, ReplaceOrigin(segments=segments))


def test_statements():
    assert "another origin;" in ReplaceOrigin().statement
    assert "segment" not in ReplaceOrigin().statement
    assert "another segment" in ReplaceOrigin(segments=True).statement
    for adjacency in (ReplaceOrigin(), ReplaceOrigin(segments=True)):
        assert "destination and headcount fixed" in adjacency.statement


def test_addition_is_sequential_composition_rounded_up():
    total = loss(0.1, 0.1) + loss(0.2, 0.7)
    assert Fraction(total.epsilon) >= Fraction(0.1) + Fraction(0.2)
    assert Fraction(total.delta) >= Fraction(0.1) + Fraction(0.7)
    assert (loss(1.0, 0.6) + loss(1.0, 0.6)).delta == 1.0
    assert (loss() + loss(0.0, 0.0)) == loss()


def test_different_adjacencies_do_not_add():
    with pytest.raises(PrivacyParameterError, match=r"adjacency \(.*\) must be the same"):
        loss() + loss(segments=True)
    with pytest.raises(TypeError):
        loss() + 1


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-0.1, 0), (math.inf, 0), (math.nan, 0), (1, -1e-9), (1, 1.1), (1, math.nan)]
)
def test_out_of_range(epsilon, delta):
    with pytest.raises(PrivacyParameterError, match=r"(epsilon|delta) \(.*\) must be"):
        loss(epsilon, delta)


def test_the_adjacency_is_a_type():
    with pytest.raises(PrivacyParameterError, match=r"adjacency \(str\) must be"):
        PrivacyLoss(1.0, 0.0, "replace one origin")


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss().epsilon = 2.0
