"""The noisy histogram as one randomised map: totals, order, intervals, loss, independence of grouping, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from madeup import made_up
from plansettings import plan_settings

from synthmap.errors import PrivacyParameterError
from synthmap.geography.prior import PriorTable
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.histogram import loss, synthesize
from synthmap.mechanism.histogram_plan import plan_destinations
from synthmap.mechanism.table import Counts
from synthmap.privacy.rule import Rule

SETTINGS = plan_settings(mechanism="histogram", segments=2, elsewhere_share=0.1, cells=16)
VARIANTS = {
    "plain": {},
    "one cell": {"cells": 1},
    "planner": {"cells": 0, "finest": 1, "either": True},
    "every zone": {"cells": 401},
    "distance": {"finest": 1},
    "much noise": {"epsilon": 0.05},
    "little noise": {"epsilon": 30.0},
    "likeliest units": {"agreement": True},
    "everywhere else joined": {"elsewhere_share": 0.0},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_totals_are_exact_rows_sorted_and_every_figure_has_its_interval(town, world, variant):
    places, headcount, counts = world
    settings = replace(SETTINGS, **VARIANTS[variant])
    plan = plan_destinations(town, places, headcount, settings)
    table = synthesize(plan, counts, town, settings, seeded_stream(1))
    totals = np.bincount(table.destination, table.workers.sum(axis=1), 401)
    assert totals[places].tolist() == headcount.tolist()
    assert totals.sum() == headcount.sum()
    keys = np.searchsorted(places, table.destination) * 500 + table.origin
    assert (np.diff(keys) > 0).all()
    assert table.interval.shape == (keys.size, 2)
    count = table.workers.sum(axis=1)
    assert (table.interval[:, 0] >= 0).all()
    assert (table.interval[:, 0] <= count).all()
    assert (count <= table.interval[:, 1]).all()
    assert (table.interval[:, 1] <= headcount[np.searchsorted(places, table.destination)]).all()
    found = loss(plan, settings)
    assert found.epsilon <= settings.epsilon
    assert (found.delta, found.rule, found.pdp_delta_table) == (0.0, Rule.PURE, None)


def test_next_to_no_noise_gives_the_table_itself(town, world):
    places, headcount, counts = world
    settings = replace(SETTINGS, cells=401, epsilon=44.0)
    plan = plan_destinations(town, places, headcount, settings)
    table = synthesize(plan, counts, town, settings, seeded_stream(2))
    true = {
        (int(d), int(o)): w
        for d, low, high in zip(places, counts.first_row, counts.first_row[1:], strict=False)
        for o, w in zip(counts.origin[low:high], counts.workers[low:high].sum(axis=1).tolist(), strict=True)
    }
    weightless = {o for o in range(400) if town.zones.weight[o] == 0}  # they belong to a neighbour's cell
    found = {
        (int(d), int(o)): w
        for d, o, w in zip(table.destination, table.origin, table.workers.sum(axis=1).tolist(), strict=True)
    }
    same = [found.get(pair, 0) == w for pair, w in true.items() if pair[1] not in weightless]
    assert np.mean(same) > 0.97


def test_a_draw_is_seen_from_the_scale_in_its_plan(town, world):
    """That was certified; another machine may work a destination's class out otherwise."""
    places, headcount, counts = world
    far = replace(SETTINGS, scale_km=40.0)
    plan = plan_destinations(town, places, headcount, far)
    planned, other = (synthesize(plan, counts, town, one, seeded_stream(4)) for one in (far, SETTINGS))
    assert planned.origin.tolist() == other.origin.tolist()
    near = synthesize(plan_destinations(town, places, headcount, SETTINGS), counts, town, SETTINGS, seeded_stream(4))
    assert planned.origin.tolist() != near.origin.tolist()


def test_destinations_do_not_depend_on_each_other(town, world):
    places, headcount, counts = world
    plan = plan_destinations(town, places, headcount, SETTINGS)
    whole = synthesize(plan, counts, town, SETTINGS, seeded_stream(3))
    low, high = counts.first_row[10], counts.first_row[20]
    part = Counts(counts.first_row[10:21] - low, counts.origin[low:high], counts.workers[low:high])
    some = plan_destinations(town, places[10:20], headcount[10:20], SETTINGS)
    alone = synthesize(some, part, town, SETTINGS, seeded_stream(3))
    inside = np.isin(whole.destination, places[10:20])
    assert alone.origin.tolist() == whole.origin[inside].tolist()
    assert alone.workers.tolist() == whole.workers[inside].tolist()
    assert alone.interval.tolist() == whole.interval[inside].tolist()


@pytest.mark.parametrize("gaussian", [False, True])
def test_few_words_at_first_give_the_same_table(town, world, monkeypatch, gaussian):
    from synthmap.mechanism import histogram

    places, headcount, counts = world
    settings = replace(SETTINGS, gaussian=gaussian)
    plan = plan_destinations(town, places, headcount, settings)
    usual = synthesize(plan, counts, town, settings, seeded_stream(4))
    monkeypatch.setattr(histogram, "_words_needed", lambda plan, law, settings: np.ones(len(plan), np.int64))
    found = synthesize(plan, counts, town, settings, seeded_stream(4))
    assert found.origin.tolist() == usual.origin.tolist()
    assert found.workers.tolist() == usual.workers.tolist()


def test_likeliest_units_agree_more_where_the_prior_holds(town):
    """Forty destinations whose true origins are drawn from the prior that the counts are read through."""
    places, headcount = np.arange(100, 140, dtype=np.int32), np.full(40, 40)
    settings = plan_settings(mechanism="histogram", cells=401, epsilon=2.0)
    first = np.arange(41) * 40
    origin = made_up(town, settings, places, first, np.random.default_rng(6))
    counts = Counts(first, origin, np.ones((origin.size, 1), np.int64))
    plan = plan_destinations(town, places, headcount, settings)
    true = np.zeros((40, 401), np.int64)
    np.add.at(true, (np.repeat(np.arange(40), 40), origin), 1)
    agree = []
    for agreement in (False, True):
        table = synthesize(plan, counts, town, replace(settings, agreement=agreement), seeded_stream(9))
        drawn = np.zeros_like(true)
        drawn[table.destination - 100, table.origin] = table.workers[:, 0]
        agree.append(np.minimum(true, drawn).sum() / true.sum())
    assert agree[1] > agree[0] + 0.02
    assert agree[0] > 0.3


def test_counties_of_a_large_workplace_are_nearer_than_noise_on_blocks_allows(town):
    """A thousand workers whose counties the prior does not know: where they live is seen, not guessed."""
    settings = plan_settings(mechanism="histogram", finest=1, either=True, cells=401, epsilon=0.5)
    starts = town.tree.level_start[0]
    blocks = np.diff(starts)
    rng = np.random.default_rng(4)
    workers = rng.multinomial(1000, np.repeat(rng.dirichlet(np.ones(blocks.size)) / blocks, blocks))
    origin = np.flatnonzero(workers).astype(np.int32)
    counts = Counts(np.array([0, origin.size]), origin, workers[origin][:, None])
    plan = plan_destinations(town, np.array([7], np.int32), np.array([1000]), settings)
    true, off = np.add.reduceat(workers, starts[:-1]), []
    for seed in range(20):
        table = synthesize(plan, counts, town, settings, seeded_stream(seed))
        drawn = np.bincount(table.origin, table.workers[:, 0], starts[-1])
        off.append(np.add.reduceat(drawn, starts[:-1]) - true)
    ratio = np.exp(-0.25)
    noise = 2 * ratio / (1 - ratio) ** 2 * blocks.mean()  # variance of a county's sum, one count a block
    assert np.mean(np.square(off)) < 0.5 * noise


def test_a_table_in_the_prior_draws_towards_it(town):
    places, headcount = np.array([5], np.int32), np.array([50])
    counts = Counts(np.array([0, 1]), np.array([300], np.int32), np.array([[50]]))
    first = np.zeros(401, np.int64)
    first[6:] = 1
    known = PriorTable(first, np.array([300], np.int32), np.array([400]))
    settings = plan_settings(mechanism="histogram", cells=64, epsilon=0.2, mixing=0.9)
    shares = []
    for table in (known, PriorTable(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))):
        mine = settings if table is known else replace(settings, mixing=0.0)
        plan = plan_destinations(town, places, headcount, mine, table)
        drawn = [synthesize(plan, counts, town, mine, seeded_stream(s), table) for s in range(10)]
        shares.append(np.mean([d.workers[d.origin == 300].sum() for d in drawn]))
    assert shares[0] > shares[1] + 10


def test_refusals(town, world):
    places, headcount, counts = world
    plan = plan_destinations(town, places, headcount, SETTINGS)
    with pytest.raises(PrivacyParameterError, match="headcounts of this table"):
        synthesize(replace(plan, headcount=headcount + 1), counts, town, SETTINGS, seeded_stream(1))
    with pytest.raises(PrivacyParameterError, match="this geography"):
        synthesize(replace(plan, cells=plan.cells + 1), counts, town, SETTINGS, seeded_stream(1))
    with pytest.raises(PrivacyParameterError, match="this geography"):
        synthesize(replace(plan, groups=plan.groups + 1), counts, town, SETTINGS, seeded_stream(1))
