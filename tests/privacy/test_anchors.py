"""Every number marked as an anchor in sections 2 and 3 of THEORY.md."""

import math
from fractions import Fraction

import pytest

from synthmap.privacy import reference_zero_sample as reference
from synthmap.privacy.calibration import Rule, minimum_alpha
from synthmap.privacy.certificate import certified, kept_cells
from synthmap.privacy.dropping import dropping_factors
from synthmap.privacy.epsilon import Epsilon, ratio_minus_one

MILLION = 10**6


def delta_at(alpha, *, epsilon, delta, n, k, adp=False):
    number, probability = kept_cells(k, 1.0)
    excess = ratio_minus_one(epsilon)
    return certified(n, n, k, alpha, excess, 1.0, number, probability, adp, delta)


def left_end(j, epsilon):
    return j / ratio_minus_one(epsilon) * (1 + 2.0**-46)


@pytest.mark.parametrize(("ratio", "alpha"), [(5, 1 / 4), (10, 1 / 9), (20, 1 / 19), (50, 1 / 49)])
def test_pure(ratio, alpha):
    found = minimum_alpha(
        epsilon=Epsilon.from_ratio(ratio),
        delta=0,
        headcount=MILLION,
        cells=10**4,
        rule=Rule.PURE,
    )
    assert float(found.alpha) == pytest.approx(alpha * MILLION, rel=2.0**-15)
    assert found.alpha * (ratio - 1) >= MILLION
    assert found.certified_delta == 0
    assert f"{float(found.alpha) / MILLION:.3g}" == {5: "0.25", 10: "0.111", 20: "0.0526", 50: "0.0204"}[ratio]


@pytest.mark.parametrize(
    ("n", "k", "alpha", "epsilon", "delta"),
    [
        (3, 3, 1, 1.2, 3 / 14),
        (4, 3, 1, 1.2, 0.2380952381),
        (6, 2, 2, 1.0, 0.0349650350),
        (10, 2, 1, 1.5, 0.0208978328),
        (12, 2, Fraction(1, 2), 2.0, 0.0170481939),
        (5, 3, Fraction(3, 10), 2.0, 0.4228500043),
        (2, 3, 2, math.log(2) - 1e-6, 0.4166666667),
    ],
)
def test_true_failure(small_worlds, n, k, alpha, epsilon, delta):
    world = small_worlds.World(n, k, n, Fraction(alpha))
    true = world.failure(Fraction(math.exp(epsilon)))
    assert float(true) == pytest.approx(delta, abs=6e-11)
    # the exact check above takes R = exp(ε) rounded to nearest, the certificate a few units below
    bound = delta_at(float(alpha), epsilon=epsilon, delta=0.99, n=n, k=k)
    assert bound >= true
    if (k >= 3 and delta < 0.4) or n == 2:
        assert bound == pytest.approx(float(true), rel=1e-9)


def test_true_failure_at_ratio_two_exactly(small_worlds):
    assert small_worlds.World(2, 3, 2, Fraction(2)).failure(Fraction(2)) == 0
    assert delta_at(2.0, epsilon=Epsilon.from_ratio(2), delta=0.0, n=2, k=3) == 0


@pytest.mark.parametrize(
    ("n", "k", "ratio", "true", "bound"),
    [
        (3, 3, 3, Fraction(1, 56), Fraction(1, 56)),
        (4, 3, 2, Fraction(1, 10), Fraction(2, 15)),
        (2, 3, 2, Fraction(1, 15), Fraction(1, 15)),
    ],
)
def test_true_adp(small_worlds, n, k, ratio, true, bound):
    assert small_worlds.World(n, k, n, Fraction(1)).adp(Fraction(ratio)) == true
    found = delta_at(1.0, epsilon=Epsilon.from_ratio(ratio), delta=0.9, n=n, k=k, adp=True)
    assert bound <= found <= bound * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("epsilon", "n", "k", "delta", "pdp", "adp"),
    [
        (4, 1000, 250, 1e-5, 24, 13),
        (4, 100, 60, 1e-5, 19, 12),
        (2, 1000, 100, 1e-6, 31, 20),
        (8.6, 1000, 240, 1e-6, 27, 16),
        (2, 20, 1000, 1e-5, 4, 3),
    ],
)
def test_rules_at_left_ends(epsilon, n, k, delta, pdp, adp):
    for j, rule in ((pdp, Rule.PDP), (adp, Rule.ADP)):
        at = {"epsilon": epsilon, "delta": delta, "n": n, "k": k, "adp": rule is Rule.ADP}
        assert delta_at(left_end(j, epsilon), **at) <= delta
        assert delta_at(left_end(j - 1, epsilon), **at) > delta
        found = minimum_alpha(epsilon=epsilon, delta=delta, headcount=n, cells=k, rule=rule)
        assert float(found.alpha) <= left_end(j, epsilon) * (1 + 2.0**-15)
        assert found.certified_delta <= delta


@pytest.mark.parametrize(
    ("ratio", "reference_alpha", "j"),
    [(5, 17.491, 68), (10, 5.524, 49), (20, 2.164, 40), (50, 0.742, 36)],
)
def test_million(ratio, reference_alpha, j):
    epsilon = Epsilon.from_ratio(ratio)
    old = reference.reference_zero_sample_alpha(epsilon=epsilon, delta=1e-6, headcount=MILLION, cells=10**4)
    assert round(old, 3) == reference_alpha
    at = {"epsilon": epsilon, "delta": 1e-6, "n": MILLION, "k": 10**4}
    assert delta_at(left_end(j, epsilon), **at) <= 1e-6
    assert delta_at(left_end(j - 1, epsilon), **at) > 1e-6
    found = minimum_alpha(epsilon=epsilon, delta=1e-6, headcount=MILLION, cells=10**4)
    assert float(found.alpha) <= left_end(j, epsilon) * (1 + 2.0**-15)


def test_reference_rule_is_unsound_for_one_worker(small_worlds):
    # the printed δ = 5.5e-4 is 5.52e-4 rounded: the rule accepts from 4/R·(1 + 2/R) = 5.517e-4 on
    alpha, ratio = 1.576e-5, math.exp(8.889)
    for delta, accepted in ((5.52e-4, True), (5.5e-4, False)):
        bound = math.log(delta * (ratio - 2) / (4 * ratio))
        assert reference._accepts(1.0, 1.0, 2.0, alpha, ratio - 1, bound) is accepted
    world = small_worlds.World(1, 2, 1, Fraction(alpha))
    assert round(float(world.probability((1, 0), (1, 0))), 5) == 0.99998
    # told apart by the output that copies the worker, and by the other one in the other direction
    assert world.failure(Fraction(ratio)) == 1


@pytest.mark.parametrize(
    ("n", "m", "k", "alpha", "keep", "worst"),
    [
        (3, 3, 3, "3/4", "3/10", 22.252),
        (1, 2, 2, "5/4", "1/10", 53),
        (3, 2, 3, "2", "1/2", 5.2143),
        (2, 2, 3, "1/2", "2/5", 14.8438),
        (1, 2, 4, "3/4", "1/10", 62.6379),
        (2, 6, 2, "50", "9/10", 6.572),
        (2, 6, 3, "50", "9/10", 4.537),
    ],
)
def test_dropping(small_worlds, n, m, k, alpha, keep, worst):
    world = small_worlds.World(n, k, m, Fraction(alpha), Fraction(keep))
    true = world.worst_ratio()
    assert float(true) == pytest.approx(worst, abs=5e-4)
    a = float(world.alpha)
    factor = dropping_factors(n, m, k, a, float(world.keep))
    bound = max(
        (1 + m / a) * factor[0] if n > 1 else 0,
        (1 + m / (1 + a)) * factor[1] if n > 2 else 0,
        (1 + m / (n - 1 + a)) * factor[2],
    )
    assert bound >= true
    if (n, k) == (1, 4):
        assert bound == pytest.approx(63.6667, abs=5e-4)
    elif (n, k) != (2, 3) or m == 2:
        assert bound == pytest.approx(float(true), rel=1e-9)


def test_the_maximum_rule_of_the_slides_is_refuted(small_worlds):
    world = small_worlds.World(3, 3, 3, Fraction(3, 4), Fraction(3, 10))
    base, cost = 1 + 3 / Fraction(3, 4), 1 / world.keep
    assert round(float(base * cost), 3) == 16.667
    assert world.probability((1, 0, 2), (3, 0, 0)) / world.probability((0, 1, 2), (3, 0, 0)) == (world.worst_ratio())
    assert world.worst_ratio() > base * cost
