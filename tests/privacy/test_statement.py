"""What a statement says of beliefs is true for the rules it is said for, by enumeration (proofs/beliefs.md)."""

import itertools
from fractions import Fraction

import pytest

from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.rule import Rule
from synthmap.release.statement_facts import bound_beliefs

FORM = {Rule.PDP: "probabilistic", Rule.ADP: "approximate", Rule.PURE: "pure"}
CASES = [(4, 4, 1.0, 0.05), (4, 4, 2.0, 0.01), (3, 4, 2.0, 0.01), (2, 3, 1.0, 0.02)]


def certified(small_worlds, rule, n, k, epsilon, delta):
    found = minimum_alpha(epsilon=epsilon, delta=delta, headcount=n, cells=k, rule=rule)
    return small_worlds.World(n, k, n, found.alpha)


def laws(small_worlds, world):
    """Yield the law of the truth, and those of all other homes of one worker."""
    for truth in world.representatives:
        for left in {left for left, _, _ in small_worlds.neighbours(truth)}:
            others = [moved for start, _, moved in small_worlds.neighbours(truth) if start == left]
            yield (
                {x: world.probability(truth, x) for x in world.outputs},
                [{x: world.probability(other, x) for x in world.outputs} for other in others],
            )


def exceeded(true, others, prior, posterior):
    """Return how likely it is, at the truth, that its posterior is above a bound; for the worst spread of the prior."""
    worst = Fraction(0)
    spreads = [[one] for one in others] + [others]
    for spread in spreads:
        share = (1 - prior) / len(spread)
        worst = max(
            worst,
            sum(
                (p for x, p in true.items() if p * prior > posterior * (p * prior + share * sum(q[x] for q in spread))),
                Fraction(0),
            ),
        )
    return worst


def worst(small_worlds, world, odds):
    return max(
        exceeded(true, others, Fraction(belief.prior), Fraction(belief.posterior))
        for true, others in laws(small_worlds, world)
        for belief in odds.beliefs
    )


@pytest.mark.parametrize(("n", "k", "epsilon", "delta"), CASES)
@pytest.mark.parametrize("rule", list(Rule))
def test_the_truth_seems_more_likely_than_stated_no_more_often_than_stated(small_worlds, rule, n, k, epsilon, delta):
    world = certified(small_worlds, rule, n, k, epsilon, delta)
    odds = bound_beliefs(FORM[rule], epsilon, 0.0 if rule is Rule.PURE else delta)
    assert worst(small_worlds, world, odds) <= Fraction(odds.chance)


def test_the_figures_of_the_probabilistic_form_would_be_wrong_for_rule_adp(small_worlds):
    """The check finds a wrong statement: plain (ε, δ)-DP lets beliefs move by more than exp(ε) more often than δ."""
    n, k, epsilon, delta = CASES[0]
    world = certified(small_worlds, Rule.ADP, n, k, epsilon, delta)
    assert worst(small_worlds, world, bound_beliefs("probabilistic", epsilon, delta)) > Fraction(delta)


def test_a_factor_too_small_is_found(small_worlds):
    n, k, epsilon, delta = CASES[3]
    world = certified(small_worlds, Rule.PURE, n, k, epsilon, delta)
    assert worst(small_worlds, world, bound_beliefs("pure", 0.9 * epsilon, 0.0)) > 0


@pytest.mark.parametrize("rule", list(Rule))
def test_two_jobs_of_one_worker_are_bounded_together(small_worlds, rule):
    n, k, epsilon, delta = 2, 2, 1.0, 0.05
    world = certified(small_worlds, rule, n, k, epsilon, delta)
    delta = 0.0 if rule is Rule.PURE else delta
    odds = bound_beliefs(FORM[rule], 2 * epsilon, 2 * delta, jobs=2)
    single = list(laws(small_worlds, world))
    for first, second in itertools.product(single, single):
        true = {(x, y): p * q for x, p in first[0].items() for y, q in second[0].items()}
        pairs = itertools.product([first[0], *first[1]], [second[0], *second[1]])
        others = [{(x, y): p * q for x, p in a.items() for y, q in b.items()} for a, b in pairs][1:]
        for belief in odds.beliefs:
            assert exceeded(true, others, Fraction(belief.prior), Fraction(belief.posterior)) <= Fraction(odds.chance)


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("look", [lambda x: x, lambda x: x[0], max], ids=["table", "one cell", "a figure"])
def test_who_knows_less_or_sees_less_learns_at_most_twice_as_much(small_worlds, rule, look):
    """The others' homes are unknown, uniform; only a function of the table is seen."""
    n, k, epsilon, delta = 3, 3, 1.0, 0.05
    world = certified(small_worlds, rule, n, k, epsilon, delta)
    delta = 0.0 if rule is Rule.PURE else delta
    form = "pure" if rule is Rule.PURE else "approximate"
    odds = bound_beliefs(form, epsilon, delta)

    def law(home):
        found = {}
        for rest in itertools.product(range(k), repeat=n - 1):
            counts = tuple(sum(one == cell for one in (home, *rest)) for cell in range(k))
            for x in world.outputs:
                found[look(x)] = found.get(look(x), Fraction(0)) + world.probability(counts, x) / k ** (n - 1)
        return found

    true, *others = (law(home) for home in range(k))
    for belief in odds.beliefs:
        assert exceeded(true, others, Fraction(belief.prior), Fraction(belief.posterior)) <= Fraction(odds.chance)
