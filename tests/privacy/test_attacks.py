"""The statistical audit: attacks by many draws with the real stream.

A bound on ε is wrong with a probability of at most 1e-6 for each attack; seeds are fixed, so a right mechanism passes
always.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from synthmap.audit import chosen
from synthmap.audit.exact import audit_exactly
from synthmap.audit.mechanism import AS_IT_IS
from synthmap.audit.statistical import FALSE_ALARM, attack, epsilon_at_least
from synthmap.kernels.stream import seeded_stream

ATTACKS = chosen.attacks()
CONTROLS = chosen.attack_controls()


def run(one, *, mechanism=None, seed=1, draws=None):
    return attack(
        one.world,
        one.pair,
        seeded_stream(seed),
        draws=draws or one.draws,
        mechanism=mechanism or one.mechanism,
    )


@pytest.mark.parametrize("one", ATTACKS, ids=[one.world.name for one in ATTACKS])
def test_no_attack_beats_the_promise(one):
    assert run(one).holds


@pytest.mark.parametrize("one", CONTROLS, ids=[one.mechanism.name for one in CONTROLS])
def test_attacks_find_what_is_broken_on_purpose(one):
    found = run(one)
    assert not found.holds
    assert found.epsilon_at_least > found.promised_epsilon + 0.1
    assert (
        found.epsilon_at_least <= audit_exactly(one.world, one.mechanism).worst_epsilon or "stream" in found.mechanism
    )


@pytest.mark.parametrize("place", [0, 1, 4, 5, 6])
def test_in_the_same_worlds_the_mechanism_withstands(place):
    assert run(CONTROLS[place], mechanism=AS_IT_IS).holds


def test_attacks_come_near_the_truth():
    """A lone worker's promise is used up, so an attack with some thousand draws must show most of it."""
    found, exact = run(ATTACKS[0]), audit_exactly(ATTACKS[0].world)
    assert 0.9 * exact.worst_epsilon < found.epsilon_at_least <= exact.worst_epsilon


@pytest.mark.parametrize("place", [4, 8], ids=["resampling", "dropping"])
def test_nothing_is_found_where_there_is_nothing(place):
    """One table against itself: what is learnt from some draws must not be tested on the same."""
    one = ATTACKS[place]
    same = replace(one, pair=(one.pair[0], one.pair[0]))
    assert [run(same, seed=seed, draws=400).epsilon_at_least for seed in range(20)] == [0.0] * 20


def test_the_bounds_are_those_of_clopper_and_pearson():
    size = 1000
    for seen, other in ((900, 30), (1000, 0), (400, 200)):
        found = math.exp(epsilon_at_least(np.array([seen]), np.array([other]), size, 0.0)[0])
        high = stats.beta.ppf(1 - FALSE_ALARM / 2, other + 1, size - other)
        assert stats.binom.sf(seen - 1, size, found * high) == pytest.approx(FALSE_ALARM / 2)
        assert stats.binom.cdf(other, size, high) == pytest.approx(FALSE_ALARM / 2)
    assert epsilon_at_least(np.array([0, 300]), np.array([0, 300]), size, 0.0).tolist() == [0.0, 0.0]
    assert epsilon_at_least(np.array([900]), np.array([0]), size, 0.95).tolist() == [0.0]
