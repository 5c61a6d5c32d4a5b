"""The exact audit: plan and draw as a release does, through every choice, and hold the law against the promise."""

import functools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from synthmap.audit import chosen
from synthmap.audit.choices import rebuilt
from synthmap.audit.exact import audit_exactly, laws
from synthmap.audit.float_dirichlet import audit_float_dirichlet
from synthmap.audit.mechanism import AS_IT_IS
from synthmap.audit.pairs import excess, failure, ratio_at
from synthmap.kernels import urn
from synthmap.mechanism import lengths
from synthmap.mechanism.lengths import PARTS, _noise_km
from synthmap.privacy.rule import Rule

WORLDS = chosen.exact_worlds()
CONTROLS = chosen.exact_controls()


@functools.cache
def finding(name):
    (world,) = [one for one in WORLDS if one.name == name]
    return audit_exactly(world)


@functools.cache
def in_singles():
    return audit_float_dirichlet(20.0)


@pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])
def test_the_promise_holds(world):
    found = finding(world.name)
    assert found.holds
    assert found.promised_delta <= world.promised_delta
    assert found.worst_epsilon <= world.settings.epsilon + 1e-12


@pytest.mark.parametrize(
    ("world", "mechanism"), CONTROLS, ids=[f"{broken.name}, {world.settings.rule}" for world, broken in CONTROLS]
)
def test_what_is_broken_on_purpose_is_found(world, mechanism):
    found = audit_exactly(world, mechanism)
    assert not found.holds
    assert found.worst_epsilon > world.settings.epsilon + 0.1


@pytest.mark.parametrize("place", [0, 1, 3, 4, 6, 7])  # the others' settings leave a right mechanism no noise to choose
def test_in_the_same_worlds_the_mechanism_keeps_its_promise(place):
    assert audit_exactly(CONTROLS[place][0], AS_IT_IS).holds


def test_the_audit_sees_all_that_is_lost():
    """The certificate of probabilistic DP is tight in this world, so nothing weaker than the audit would reach it."""
    found = finding("three workers")
    assert found.promised_failure > 0.2
    assert float(found.worst_failure) == pytest.approx(found.promised_failure, rel=1e-9)
    found = finding("rule adp, 2 workers")
    assert float(found.worst_delta) == pytest.approx(found.promised_delta, rel=1e-9)


def test_failures_are_certified_and_not_only_excluded():
    """Where a promise is pure DP in truth, its δ is not audited; with three workers it is, under every kind of plan."""
    for name in ("three workers, spread inside cells", "three workers, cells by distance", "three workers, dropping"):
        found = finding(name)
        assert 0 < found.worst_failure <= found.promised_failure
        assert found.worst_failure > 0.25 * found.promised_failure


def test_every_kind_of_plan_is_audited_with_several_workers():
    several = [one for one in WORLDS if max(one.headcount) > 1]
    plans = {
        "segments": lambda one: one.settings.segments > 1,
        "dropping": lambda one: one.settings.keep < 1,
        "dropping by prior": lambda one: one.settings.keep_by_prior,
        "segments and dropping": lambda one: one.settings.segments > 1 and one.settings.keep < 1,
        "distance": lambda one: one.settings.finest >= 0,
        "planner": lambda one: one.settings.cells == 0,
        "destinations": lambda one: len(one.places) > 1,
        "spreading": lambda one: 1 < one.settings.cells < one.origins,
    }
    for kind, is_it in plans.items():
        assert any(map(is_it, several)), kind
    assert {one.settings.rule for one in several} == set(Rule)


def test_every_breach_of_the_list_is_kept_for_the_audits():
    both = {
        "noise of scale 1/ε instead of 2/ε",
        "noise forgotten on empty cells",
        "prior fitted on the confidential counts",
    }
    exact = {mechanism.name for _, mechanism in CONTROLS} | {in_singles().mechanism}
    statistical = {one.mechanism.name for one in chosen.attack_controls()}
    every = {
        "noise only on occupied cells",
        "α too small by 30 %",
        "the reference 0-sample rule",
        "dropping charged by the maximum",
        "synthetic size taken from the data",
        "destinations of one worker forgotten",
    }
    attacked = {  # which no law of a single table shows; which no choice of the urn leads to
        "one stream for two destinations",
        "shares of what is left in single precision",
        "shares of what is left in double precision",
    }
    enumerated = {  # so rare an event that no number of draws shows it; what draws do not look at
        "shares drawn in single precision",
        "intervals told from the confidential counts",
        "σ² too small by 30 %",
    }
    assert exact == every | both | enumerated
    assert statistical == every | both | attacked


def test_the_laws_are_those_of_tables_with_the_right_totals():
    world = replace(WORLDS[0], places=(0, 2), headcount=(1, 2), settings=replace(WORLDS[0].settings, cells=2))
    plan, found = laws(replace(world, region=chosen.two_zones(), places=(0, 1)))
    assert plan.headcount.tolist() == [1, 2]
    assert len(found) == 3 * 6
    for law in found.values():
        assert sum(law.values()) == 1
        assert {tuple(np.reshape(x, (2, 3)).sum(axis=1)) for x in law} == {(1, 2)}


def test_shares_in_single_precision_break_the_promise():
    found = in_singles()
    assert not found.holds
    assert found.worst_delta > 0.9
    assert 25 < found.worst_epsilon < 100


def test_a_call_that_is_not_there_cannot_be_replaced():
    with pytest.raises(NameError, match="draw must call gamma"):
        rebuilt(urn.draw, gamma=print)


def test_a_call_that_others_make_too_is_replaced_there_as_well():
    """Else the choices pass by what a helper does, and what is held against the promise is another mechanism."""
    with pytest.raises(NameError, match="fit_decay calls _noise_km, which names PARTS too"):
        rebuilt(lengths.fit_decay, PARTS=4)
    rebuilt(lengths.fit_decay, PARTS=4, _noise_km=rebuilt(lengths._noise_km, PARTS=4))


def of_each(units):
    return sorted(_noise_km(one, PARTS) for one in units)  # a generator: lists are made in place from Python 3.12 on


def test_what_a_comprehension_calls_is_seen_too():
    with pytest.raises(NameError, match="of_each calls _noise_km, which names PARTS too"):
        rebuilt(of_each, PARTS=4)
    assert rebuilt(of_each, PARTS=4, _noise_km=max)([1, 9]) == [4, 9]


ONE = {"a": Fraction(1, 2), "b": Fraction(1, 3), "c": Fraction(1, 6)}
OTHER = {"a": Fraction(1, 6), "b": Fraction(1, 3), "c": Fraction(1, 2)}


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2)])
def test_the_ratio_is_the_least_that_leaves_delta(delta):
    ratio = ratio_at(ONE, OTHER, delta)
    assert excess(ONE, OTHER, ratio) == min(delta, Fraction(1, 3))
    if ratio > 1:
        assert excess(ONE, OTHER, ratio - Fraction(1, 10**6)) > delta


def test_no_ratio_covers_what_is_impossible_elsewhere():
    assert ratio_at(ONE, {"a": Fraction(1)}, Fraction(49, 100)) is None
    assert ratio_at(ONE, {"a": Fraction(1)}, Fraction(1, 2)) == 1
    assert ratio_at(ONE, {"d": Fraction(1)}, Fraction(1)) == 1


def test_an_outcome_fails_in_either_direction_and_once():
    assert failure(ONE, [OTHER, OTHER], Fraction(2)) == Fraction(2, 3)
    assert failure(ONE, [OTHER], Fraction(3)) == 0
    assert failure(ONE, [ONE], Fraction(1)) == 0
