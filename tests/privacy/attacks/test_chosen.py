"""The attacks of the literature: without protection they succeed, against a release they stay within the promise."""

from dataclasses import replace

import pytest

from synthmap.audit.attacks.chosen import Literature, audit_literature, literature
from synthmap.audit.attacks.tables import released, unprotected
from synthmap.audit.broken import ONLY_OCCUPIED_CELLS
from synthmap.kernels.stream import seeded_stream
from synthmap.privacy.rule import Rule

EVERY = literature()


def ids(one):
    return one.name if isinstance(one, Literature) else None


@pytest.fixture(scope="module")
def findings():
    return audit_literature(seeded_stream(1))


def test_no_attack_beats_the_odds_that_a_release_states(findings):
    against_releases, _ = findings
    assert [one.world for one in against_releases] == [one.name for one in EVERY]
    for one in against_releases:
        assert one.holds, one


def test_every_attack_learns_something_from_a_release(findings):
    """An attack that answers anything at random would not be beaten by protection, but by itself."""
    for one in findings[0]:
        assert one.epsilon_at_least > 0.1, one


def test_without_protection_every_attack_is_always_right(findings):
    controls = [one for one in findings[1] if one.mechanism.endswith("no protection")]
    assert [one.world for one in controls] == [one.name for one in EVERY]
    for one in controls:
        assert one.event == f"{one.draws} to 0 claims"


def test_every_breach_is_found(findings):
    for one in findings[1]:
        assert not one.holds, one
        assert one.epsilon_at_least > one.promised_epsilon + 0.1, one
    assert {one.mechanism.split(", ")[-1] for one in findings[1]} == {
        "no protection",
        "noise only on occupied cells",
        "8 releases charged as one",
    }


@pytest.mark.parametrize("one", [one for one in EVERY if one.implicates == 1], ids=ids)
@pytest.mark.parametrize(
    "changes",
    [
        {"rule": Rule.ADP},
        {"rule": Rule.PURE},
        {"keep": 0.75, "epsilon": 2.0},
        {"finest": 0},
        {"cells": 0, "epsilon": 2.0},
    ],
    ids=["adp", "pure", "dropping", "by distance", "cells by the planner"],
)
def test_nor_under_other_rules_and_plans(one, changes):
    settings = replace(one.world.settings, **changes)
    one = replace(one, world=replace(one.world, settings=settings), draws=min(one.draws, 4_000) // 2)
    assert one.against(released(one.world, seeded_stream(2)), "").holds
    assert not one.against(unprotected, "").holds


def test_two_workplaces_are_two_workers():
    """At which of two workplaces somebody works moves by more than where one worker lives, and is charged twice."""
    one = next(one for one in EVERY if one.changes == 2)
    differ = one.pair[0].sort("origin", "destination"), one.pair[1].sort("origin", "destination")
    assert differ[0].join(differ[1], on=["origin", "destination"], how="anti").height == 2
    assert one.against(released(one.world, seeded_stream(1)), "").promised_epsilon == 2 * one.world.settings.epsilon


def test_noise_only_on_occupied_cells_is_as_bad_as_none():
    one = EVERY[0]
    found = one.against(released(one.world, seeded_stream(1), ONLY_OCCUPIED_CELLS), "")
    assert found.event.endswith(" to 0 claims")
