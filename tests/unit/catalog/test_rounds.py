"""A smaller sum is told where every entry meets the preconditions of the rule, and nowhere else."""

from fractions import Fraction
from math import comb, exp

import pytest
from losses import CONTENT, loss

from synthmap.catalog.account import Account
from synthmap.catalog.entries import Adjacency, Kind, charge
from synthmap.catalog.ledger_view import summary
from synthmap.catalog.rounds import losses_of, rounds_of, tighter_sum
from synthmap.privacy.tighter import tighter_epsilon

LIBRARY = "dp-accounting is not installed: pip install 'synthmap[accounting]'"
BUDGET = {"epsilon": "20", "delta": "1/1000000"}


def account(*steps, budget=BUDGET):
    """Return an account after steps: a charge under a name, or a kind of entry and a name."""
    found = Account("x")
    found.add(found.next(Kind.BUDGET, budget=budget))
    for what, name in steps:
        paid = {} if isinstance(what, Kind) else {"charge": what, "content": CONTENT}
        found.add(found.next(what if isinstance(what, Kind) else what.kind, name, **paid))
    return found


def each(charges, *, drawn):
    """Return the steps that pay them: each drawn before the next is recorded, or all recorded first."""
    paid = [(one, f"r{i}") for i, one in enumerate(charges)]
    drawings = [(Kind.DRAWING, name) for _, name in paid]
    return [step for both in zip(paid, drawings, strict=True) for step in both] if drawn else [*paid, *drawings]


def exact_delta(epsilon, times, total):
    """δ of `times` pure losses at ε = `total`: randomised response (Kairouz, Oh and Viswanath 2015, theorem 3.3)."""
    yes = 1 / (1 + exp(-epsilon))
    chances = (comb(times, no) * yes ** (times - no) * (1 - yes) ** no for no in range(times + 1))
    return sum(one * max(0.0, 1 - exp(total - (times - 2 * no) * epsilon)) for no, one in enumerate(chances))


def names(found):
    return [[str(Fraction(one.epsilon)) for one in charges] for charges in rounds_of(found)]


def test_a_round_ends_where_something_was_drawn():
    """What is recorded after that may have been chosen in its light."""
    found = account((loss(1), "a"), (loss(2), "b"), (Kind.DRAWING, "a"), (loss(3), "c"), (Kind.DRAWING, "b"),
                    (Kind.DRAWING, "c"), (loss(4), "d"))  # fmt: skip
    assert names(found) == [["1", "2"], ["3"], ["4"]]
    assert names(account()) == []


def test_a_refund_counts_unless_it_came_before_the_round_s_first_result():
    before = account((loss(1), "a"), (loss(2), "b"), (Kind.REFUND, "b"), (Kind.DRAWING, "a"))
    after = account((loss(1), "a"), (loss(2), "b"), (Kind.DRAWING, "a"), (Kind.REFUND, "b"))
    assert (names(before), names(after)) == ([["1"]], [["1", "2"]])
    assert before.spent == after.spent == (1, 0)


def test_losses_that_were_fixed_in_advance_come_to_less_and_those_that_were_not_do_not():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    charges = [loss(0.125) for _ in range(80)]
    found = tighter_sum(account(*each(charges, drawn=False)))
    assert found.epsilon < 6
    assert found.delta == pytest.approx(5e-7, rel=1e-12)  # half of the budget's ε has half of its δ
    assert exact_delta(0.125, 80, found.epsilon) <= found.delta
    assert "optimal composition" in found.rule
    assert "recorded before anything was drawn for them" in found.rule
    assert tighter_sum(account(*each(charges, drawn=True))) is None


def test_rounds_add_up_each_with_its_share_of_the_budget_s_delta():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    one = tighter_sum(account((loss(0.125, times=40), "a")))
    two = tighter_sum(account(*each([loss(0.125, times=40)] * 2 + [loss(1)], drawn=True)))
    assert exact_delta(0.125, 40, one.epsilon) <= one.delta == pytest.approx(2.5e-7, rel=1e-12)
    assert two.epsilon == pytest.approx(2 * one.epsilon + 1, rel=1e-12)
    assert two.delta == pytest.approx(5e-7, rel=1e-12)
    assert "in each of 3 rounds; basic composition of the rounds" in two.rule


def test_it_is_told_within_the_budget_s_delta_only():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    assert tighter_sum(account((loss(0.125, times=40), "a"), (Kind.DRAWING, "a"), (loss(1, 5e-7), "b")))
    assert tighter_sum(account((loss(0.125, times=40), "a"), (Kind.DRAWING, "a"), (loss(1, 9e-7), "b"))) is None
    assert tighter_sum(account((loss(0.125, times=40), "a"), budget=BUDGET | {"delta": "0"})) is None
    assert tighter_sum(Account("x")) is None


ALONE = (Fraction(1, 8), Fraction(0), 40)
TOGETHER = (Fraction(5), Fraction(0), 1)
CHARGES = {
    "OnTheMap's pDP implies DP": (loss(0.125, times=40, jobs=2), ALONE),
    "pure": (loss(0.125, times=40, jobs=2, rule="pure"), ALONE),
    "recorded by hand": (loss(0.125, times=40, jobs=2, rule="dp", kind=Kind.QUERY), ALONE),
    "adp may be one noise for all jobs": (loss(0.125, times=40, jobs=2, rule="adp"), TOGETHER),
    "a part that does not promise draws of their own": (
        charge(Kind.RELEASE, [("table, all jobs together", 40, Fraction(1, 8), Fraction(0))],
               adjacency=Adjacency.ORIGIN, rule="pure", max_jobs_per_worker=2), TOGETHER),
    "a wider change covers the narrower": (loss(0.125, times=40, jobs=2, segments=True), ALONE),
    "an unknown rule": (loss(0.125, times=40, jobs=2).model_copy(update={"rule": "zcdp"}), None),
    "another number of jobs": (loss(0.125, times=40, jobs=3), None),
}  # fmt: skip


@pytest.mark.parametrize(("one", "expected"), CHARGES.values(), ids=CHARGES)
def test_what_an_entry_allows(one, expected):
    found = losses_of(one, Adjacency.ORIGIN, 2)
    assert found == (None if expected is None else (expected,))


def test_a_loss_for_another_origin_promises_nothing_when_the_segment_changes():
    assert losses_of(loss(), Adjacency.ORIGIN_OR_SEGMENT, 1) is None


def test_one_entry_that_fails_a_precondition_is_enough():
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    good = account((loss(0.125, times=40), "a"), (loss(0.125, times=40), "b"))
    assert summary(good, "").tighter is not None
    other = good.entries[-1].body.model_copy(update={"charge": good.entries[-1].body.charge.model_copy(
        update={"rule": "zcdp"})})  # fmt: skip
    good.entries[-1] = type(good.entries[-1])(other, good.entries[-1].hash)
    assert summary(good, "").tighter is None


def test_a_sum_that_is_hardly_less_is_not_told():
    """A release's lengths and its table compose to a millionth less, at several times its δ."""
    pytest.importorskip("dp_accounting", reason=LIBRARY)
    parts = [
        ("mean lengths, all jobs together", 1, Fraction(2, 25), Fraction(0)),
        ("table", 1, Fraction(98, 25), Fraction(1, 10**6)),
    ]
    asked = charge(Kind.RELEASE, parts, adjacency=Adjacency.ORIGIN, rule="pdp", max_jobs_per_worker=1)
    budget = {"epsilon": "7", "delta": "1/100000"}
    assert tighter_epsilon(losses_of(asked, Adjacency.ORIGIN, 1), Fraction(4, 700_000))[0] < 4
    assert tighter_sum(account((asked, "a"), budget=budget)) is None
