from dataclasses import replace

import numpy as np
import pytest
from plansettings import plan_settings

from synthmap.errors import PrivacyParameterError
from synthmap.geography.coarsening import cells_for
from synthmap.geography.region import make_region
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism import dirichlet
from synthmap.mechanism.dirichlet import loss, synthesize
from synthmap.mechanism.dirichlet_plan import plan_destinations
from synthmap.mechanism.table import Counts
from synthmap.privacy.rule import Rule

SETTINGS = plan_settings(cells=16, segments=2, elsewhere_share=0.1, strength=20.0)
VARIANTS = {
    "plain": {},
    "one cell": {"cells": 1},
    "planner": {"cells": 0},
    "every zone": {"cells": 500},
    "distance": {"finest": 1},
    "dropping": {"keep": 0.5},
    "dropping by prior": {"keep": 0.3, "keep_by_prior": True, "epsilon": 8.0},
    "pure": {"rule": Rule.PURE},
    "elsewhere joined": {"elsewhere_share": 0.0},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_totals_are_exact_and_rows_sorted(town, world, variant):
    places, headcount, counts = world
    settings = replace(SETTINGS, **VARIANTS[variant])
    plan = plan_destinations(town, places, headcount, settings)
    table = synthesize(plan, counts, town, settings, seeded_stream(1))
    totals = np.bincount(table.destination, table.workers.sum(axis=1), 401)
    assert totals[places].tolist() == headcount.tolist()
    assert totals.sum() == headcount.sum()
    assert (table.workers.sum(axis=1) > 0).all()
    keys = np.searchsorted(places, table.destination) * 500 + table.origin
    assert (np.diff(keys) > 0).all()
    assert table.origin.max() <= 400


def test_grouping_and_words_at_hand_change_nothing(town, world, monkeypatch):
    places, headcount, counts = world
    settings = replace(SETTINGS, keep=0.5)
    plan = plan_destinations(town, places, headcount, settings)
    whole = synthesize(plan, counts, town, settings, seeded_stream(1))
    monkeypatch.setattr(dirichlet, "_words_needed", lambda plan, settings: np.full(len(plan), 3))
    starved = synthesize(plan, counts, town, settings, seeded_stream(1))
    alone = [
        synthesize(
            plan_destinations(town, places[i : i + 1], headcount[i : i + 1], settings),
            Counts(
                np.array([0, counts.first_row[i + 1] - counts.first_row[i]]),
                counts.origin[counts.first_row[i] : counts.first_row[i + 1]],
                counts.workers[counts.first_row[i] : counts.first_row[i + 1]],
            ),
            town,
            settings,
            seeded_stream(1),
        )
        for i in range(len(places))
    ]
    for name in ("destination", "origin", "workers"):
        assert np.array_equal(getattr(whole, name), getattr(starved, name))
        assert np.array_equal(getattr(whole, name), np.concatenate([getattr(t, name) for t in alone]))


def test_with_little_noise_the_draw_follows_the_data(town, world):
    """At a huge ε and one cell an inhabited zone, synthetic workers live where workers live."""
    places, headcount, counts = world
    town = make_region(replace(town.zones, weight=town.zones.weight + 1))
    settings = replace(SETTINGS, epsilon=30.0, cells=cells_for(400, SETTINGS.elsewhere_share))
    plan = plan_destinations(town, places, headcount, settings)
    table = synthesize(plan, counts, town, settings, seeded_stream(1))
    real = {
        (int(d), int(o))
        for d, a, b in zip(places, counts.first_row, counts.first_row[1:], strict=False)
        for o in counts.origin[a:b]
    }
    drawn = set(zip(table.destination.tolist(), table.origin.tolist(), strict=True))
    assert drawn <= real


def test_a_draw_is_seen_from_the_scale_in_its_plan(town, world):
    """That was certified; another machine may work a destination's class out otherwise."""
    places, headcount, counts = world
    far = replace(SETTINGS, scale_km=40.0)
    plan = plan_destinations(town, places, headcount, far)
    planned, other = (synthesize(plan, counts, town, one, seeded_stream(4)) for one in (far, SETTINGS))
    assert planned.origin.tolist() == other.origin.tolist()
    near = synthesize(plan_destinations(town, places, headcount, SETTINGS), counts, town, SETTINGS, seeded_stream(4))
    assert planned.origin.tolist() != near.origin.tolist()


def test_one_cell_does_not_depend_on_any_origin(town, world):
    places, headcount, counts = world
    settings = replace(SETTINGS, cells=1, segments=1)
    plan = plan_destinations(town, places, headcount, settings)
    total = counts.workers.sum(axis=1, keepdims=True)
    moved = replace(counts, workers=total, origin=np.zeros_like(counts.origin))
    one = synthesize(plan, replace(counts, workers=total), town, settings, seeded_stream(1))
    other = synthesize(plan, moved, town, settings, seeded_stream(1))
    assert np.array_equal(one.origin, other.origin)
    assert np.array_equal(one.workers, other.workers)


def test_a_plan_for_other_headcounts_is_refused(town, world):
    places, headcount, counts = world
    plan = plan_destinations(town, places, headcount + 1, SETTINGS)
    with pytest.raises(PrivacyParameterError, match="plan again"):
        synthesize(plan, counts, town, SETTINGS, seeded_stream(1))


def test_a_plan_for_another_geography_is_refused(town, world, make_town):
    places, headcount, counts = world
    plan = plan_destinations(town, places, headcount, replace(SETTINGS, finest=1, cells=11))
    with pytest.raises(PrivacyParameterError, match="geography"):
        synthesize(plan, counts, make_town(counties=2), replace(SETTINGS, finest=1), seeded_stream(1))


def test_loss_is_the_dearest_destination_and_table_failures_add(town, world):
    places, headcount, _ = world
    plan = plan_destinations(town, places, headcount, SETTINGS)
    found = loss(plan, SETTINGS)
    assert found.epsilon == 4.0
    assert found.delta == plan.delta.max() <= 1e-5
    assert plan.delta.max() <= found.pdp_delta_table <= plan.delta.sum() * (1 + 1e-9)
    direct = replace(SETTINGS, rule=Rule.ADP)
    assert loss(plan_destinations(town, places, headcount, direct), direct).pdp_delta_table is None
