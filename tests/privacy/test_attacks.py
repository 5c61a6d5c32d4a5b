"""The statistical audit: attacks by many draws with the real stream.

A bound on ε is wrong with a probability of at most 1e-6 for each attack; seeds are fixed, so a right mechanism passes
always.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from synthmap.audit import broken, chosen
from synthmap.audit.broken_shares import SHARES_IN_DOUBLES, SHARES_IN_SINGLES, one_cell_after_the_other
from synthmap.audit.exact import audit_exactly
from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.statistical import FALSE_ALARM, attack, epsilon_at_least
from synthmap.kernels.stream import seeded_stream

ATTACKS = chosen.attacks()
CONTROLS = chosen.attack_controls()
IN_FLOATS = {one.mechanism: one for one in CONTROLS if one.mechanism in (SHARES_IN_SINGLES, SHARES_IN_DOUBLES)}
NO_LAW = {broken.ONE_STREAM_FOR_TWO, *IN_FLOATS}  # what is drawn follows no law that choices of the urn could tell


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
    if one.mechanism not in NO_LAW:
        assert found.epsilon_at_least <= audit_exactly(one.world, one.mechanism).worst_epsilon


@pytest.mark.parametrize("place", [0, 1, 4, 5, 6])
def test_in_the_same_worlds_the_mechanism_withstands(place):
    assert run(CONTROLS[place], mechanism=AS_IT_IS).holds


@pytest.mark.parametrize("mechanism", IN_FLOATS, ids=[mechanism.name for mechanism in IN_FLOATS])
def test_shares_in_floats_lose_what_vanishes_and_no_more(mechanism):
    """The truth is ln(1/α) and what both gamma variables of the two empty cells being 0 adds to it."""
    one, precision = IN_FLOATS[mechanism], np.float32 if mechanism == SHARES_IN_SINGLES else np.float64
    promised = one.world.settings.epsilon
    nothing = special.gammainc(math.exp(-promised), np.finfo(precision).tiny) ** 2
    truth = promised - math.log1p(-nothing)
    assert nothing > 0.7
    assert promised + 0.1 < run(one).epsilon_at_least < truth


BY_LOGARITHMS = Mechanism("by logarithms", around=one_cell_after_the_other(np.random.Generator.beta))


@pytest.mark.parametrize(
    ("mechanism", "right"),
    [(SHARES_IN_SINGLES, AS_IT_IS), (SHARES_IN_SINGLES, BY_LOGARITHMS), (SHARES_IN_DOUBLES, BY_LOGARITHMS)],
    ids=["the urn", "singles", "doubles"],
)
def test_what_gammas_lose_is_not_lost_by_other_means(mechanism, right):
    """The same code is right with Beta variables that are drawn by logarithms where they are tiny; so is the urn."""
    found = run(IN_FLOATS[mechanism], mechanism=right)
    assert found.holds
    assert found.epsilon_at_least > found.promised_epsilon - 1.0


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
