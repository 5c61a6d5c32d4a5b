"""Closed forms of measures of whole tables, against means over many worlds in which the prior is the truth."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from publishedplan import published_plan

from synthmap.analysis import expected_flows as module
from synthmap.analysis.comparison import measure
from synthmap.analysis.expected_flows import expected_flows
from synthmap.analysis.measures import common_part, count_pairs
from synthmap.analysis.prior_world import Setting, domain_planned, in_cells, prior_world
from synthmap.analysis.table import pair
from synthmap.geography.canonical import canonical
from synthmap.geography.prior import NO_TABLE, PriorModel, prior_from
from synthmap.geography.region import make_region

PLACES = np.array([3, 17, 18, 19, 50, 90, 91, 140, 200, 201, 260, 333, 380, 399], np.int32)
WORKERS = [40, 1, 3, 90, 300, 8, 20, 2, 700, 30, 12, 150, 5, 60]
SEEDS = 200
OFF = {"tv_unweighted": 0.008, "spurious": 0.01, "missing": 0.008, "length_wasserstein_km": 0.04, "gravity": 0.01}
OFF_COARSE = {"tv_unweighted": 0.005, "spurious": 0.012, "missing": 0.012, "marginals": 0.01}
OFF_ELSE = 0.005  # how far closed forms are off, at most, beyond chance


@pytest.fixture
def setting():
    def make(region, elsewhere=0.0, places=PLACES, segments=2):
        model = PriorModel(4.0, 2.0, elsewhere, 0.0, 5.0, NO_TABLE)
        return Setting(region.tree, model, region.points(places), places, keep_by_prior=False, segments=segments,
                       strength_inside=160.0, agreement=False)  # fmt: skip

    return make


@pytest.fixture
def made(setting):
    """Return a setting and a plan, whose cells are those that coarsening makes."""

    def make(region, cells, elsewhere=0.0, places=PLACES, workers=WORKERS, segments=2, **changes):
        at = setting(region, elsewhere, places, segments)
        plan = published_plan(places, workers, cells_asked=cells, **({"alpha_denominator": 4} | changes))
        sizes = []
        for d in range(places.size):
            prior = prior_from(at.tree, at.model, at.points[d], at.destination[d])
            bounds = domain_planned(at.tree, at.points[d], prior, plan.finest[d], (plan.cells_asked[d], 1), True).bounds
            sizes.append(bounds.size - 1)
        return at, replace(plan, cells=np.array(sizes))

    return make


def told(found):
    """Return numbers by name, of a `Comparison` or of `ExpectedFlows`."""
    names = ("tv", "tv_unweighted", "cpl", "length_wasserstein_km")
    out = {name: getattr(found, name) for name in names}
    for name in ("tv_by_level", "cpc"):
        out |= {f"{name} {key}": value for key, value in getattr(found, name).items()}
    for key, value in found.marginals.items():
        out[f"marginals {key}"] = getattr(value, "relative_error", value)
    for side in ("reference", "other") if found.gravity else ():
        for name in ("origin", "destination", "distance"):
            out[f"gravity {side} {name}"] = getattr(getattr(found.gravity, side), name)
    return out


def compare(town, at, plan):
    """Return {name: (closed form, mean over worlds, standard error)}."""
    tables = [pair(*prior_world(at, plan, seed), len(town.zones)) for seed in range(SEEDS)]
    worlds, cells = [measure(both, town.zones)[0] for both in tables], [in_cells(both, at, plan) for both in tables]
    found = expected_flows(at, plan, town.zones)
    each = [told(one) | {"cpc cells": common_part(of)} for one, of in zip(worlds, cells, strict=True)]
    out = {}
    for name, value in (told(found) | {"cpc cells": found.cpc_cells}).items():
        values = [one[name] for one in each]
        out[name] = value, np.mean(values), np.std(values) / np.sqrt(SEEDS)
    pairs = {key: [world.pairs[key] for world in worlds] for key in worlds[0].pairs}
    shares = {key: (pair.spurious_share, pair.missing_share) for key, pair in found.pairs.items()}
    dropping = (plan.keep_units < 2**16).any()
    assert list(shares) == (["zone/zone"] if dropping else list(pairs))
    shares["cells"], pairs["cells"] = (found.spurious_cells, found.missing_cells), [count_pairs(of) for of in cells]
    for key, both in shares.items():
        true, drawn, common = (
            np.array([getattr(one, n) for one in pairs[key]]) for n in ("reference", "other", "common")
        )
        for name, of, value in zip(("spurious", "missing"), (drawn, true), both, strict=True):
            out[f"{name} {key}"] = value, 1 - common.sum() / of.sum(), (common / of).std() / np.sqrt(SEEDS)
    return out


def check(found, usual=OFF):
    for name, (value, mean, error) in found.items():
        off = usual.get(name.split()[0], OFF_ELSE)
        assert abs(value - mean) < 4 * error + off, (name, value, mean, error)


@pytest.mark.parametrize(
    "plan",
    [
        {"cells": 8},
        {"cells": 24, "elsewhere": 0.1},
        {"cells": 1, "elsewhere": 0.1, "alpha_numerator": 0},
        {"cells": 12, "finest": 1},  # by distance: of unequal mass
        {"cells": 60},  # smaller than tracts
    ],
)
def test_they_are_the_means_over_many_worlds(town, made, plan):
    found = compare(town, *made(town, **plan))
    check(found)
    assert found["tv"][0] > 0.2
    assert found["marginals tract"][0] > 0.05
    assert found["spurious tract/tract"][0] > 0.1


@pytest.mark.parametrize(
    ("plan", "off"),
    [
        ({"cells": 16, "alpha_numerator": 32, "keep_units": 2**14}, {"tv_unweighted": 0.012}),
        ({"cells": 24, "elsewhere": 0.1, "alpha_numerator": 4, "keep_units": 2**15}, {}),
        ({"cells": 12, "finest": 1, "alpha_numerator": 16, "keep_units": 2**14}, {"tv_unweighted": 0.02}),
        ({"cells": 60, "alpha_numerator": 40, "keep_units": 2**13}, {"missing": 0.012}),
    ],
)
def test_they_are_so_where_empty_cells_are_dropped(town, made, plan, off):
    at, made_plan = made(town, segments=1, **plan)
    found = compare(town, at, made_plan)
    check(found, OFF | off)
    assert {"missing zone/zone", "missing cells"} < set(found)
    assert "missing tract/tract" not in found
    all_kept = expected_flows(at, replace(made_plan, keep_units=np.full(PLACES.size, 2**16)), town.zones)
    assert all_kept.tv_unweighted > found["tv_unweighted"][0] + 0.02
    assert all_kept.spurious_cells > found["spurious cells"][0] + 0.02


def test_lengths_have_the_synthetic_workers_on_the_map_in_common_who_are_not_as_many_as_the_true_ones(town, made):
    """Pseudo-counts of five cells draw on to the map who lives elsewhere, in the sixth."""
    at, plan = made(town, 6, elsewhere=0.8, alpha_numerator=400)
    tables = [pair(*prior_world(at, plan, seed), len(town.zones)) for seed in range(20)]
    measured = np.mean([measure(both, town.zones)[0].cpl for both in tables])
    assert expected_flows(at, plan, town.zones).cpl == pytest.approx(measured, abs=0.02)


@pytest.fixture
def coarse():
    """Return a region of few zones, about as many as cells."""

    def make(count, lightest, heaviest):
        rng = np.random.default_rng(1)
        longitude, latitude = rng.uniform(0.0, 0.2, count), rng.uniform(45.0, 45.2, count)
        parents = [pa.array([f"{i // size:03}" for i in range(count)]) for size in (50, 10)]
        return make_region(canonical(
            ids=pa.array([f"{i:03}" for i in range(count)]), longitude=longitude, latitude=latitude,
            weight=rng.integers(lightest, heaviest, count), levels=("county", "tract"), parents=tuple(parents),
            vintage="made up",
        ))  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("zones", "workers", "cells", "alpha"),
    [
        ((107, 50, 150), 2000, 64, 20.0),
        ((107, 50, 150), 400, 64, 5.0),
        ((107, 50, 150), 200, 16, 20.0),
        ((100, 95, 106), 100, 100, 0.25),
        ((100, 95, 106), 500, 100, 0.25),
        ((100, 95, 106), 500, 100, 20.0),
        ((100, 95, 106), 300, 60, 0.25),
        ((100, 95, 106), 100, 30, 0.25),
        ((300, 95, 106), 1000, 300, 0.25),
        ((300, 95, 106), 300, 100, 5.0),
    ],
)
def test_zones_may_be_as_coarse_as_cells(coarse, made, zones, workers, cells, alpha):
    region = coarse(*zones)
    places = np.array([5, 50, 90], np.int32)
    at, plan = made(region, cells, places=places, workers=[workers] * 3, alpha_numerator=round(4 * alpha))
    check(compare(region, at, plan), OFF | OFF_COARSE)


def test_zones_alone_are_a_level_too(town, made):
    zones = replace(town.zones, levels=(), parents=())
    region = make_region(zones)
    found = compare(region, *made(region, 8))
    check(found)
    assert {"cpc zone/zone", "marginals zone", "gravity other distance"} < set(found)
    assert not any("tract" in name for name in found)


def test_measures_that_say_the_same_do(town, made):
    found = expected_flows(*made(town, 8), town.zones)
    assert found.tv == pytest.approx(1 - found.cpc["zone/zone"]) == found.tv_by_level["zone"]
    assert found.tv_by_level["county"] == pytest.approx(1 - found.cpc["county/zone"])
    assert len(found.cpc) == 9
    assert found.cpc["zone/zone"] < found.cpc["tract/zone"] < found.cpc["tract/tract"] < found.cpc["county/county"]
    assert found.gravity.level == "tract"


def test_flows_are_kept_for_the_gravity_model_only_if_they_are_few(town, made, monkeypatch):
    """Those of units without weight are kept, too, which the model's own bound does not count."""
    weightless = np.where(np.arange(400) % 100 < 90, 0, town.zones.weight)
    zones = replace(town.zones, levels=(), parents=(), weight=weightless)
    at, plan = made(make_region(zones), 8)
    monkeypatch.setattr(module, "LARGEST", 40 * PLACES.size)  # of 401 units 40 have weight
    monkeypatch.setattr(module, "MOST_FLOWS", 401 * PLACES.size)
    kept = expected_flows(at, plan, zones)
    monkeypatch.setattr(module, "MOST_FLOWS", 401 * PLACES.size - 1)
    left_out = expected_flows(at, plan, zones)
    assert kept.gravity is not None
    assert left_out == replace(kept, gravity=None)


def test_what_is_not_modelled_is_none(town, made):
    at, plan = made(town, 8)
    ones = np.ones(PLACES.size, np.int64)
    assert expected_flows(at, plan, town.zones, most_pairs=400 * PLACES.size) is not None
    assert expected_flows(at, plan, town.zones, most_pairs=400 * PLACES.size - 1) is None
    for change in (
        {"keep_units": ones * 2**15},
        {"size": plan.size + 1},
        {"cells": plan.cells + 1},
        {"noise_units": ones * 2**20, "alpha_numerator": ones * 0},
    ):
        assert expected_flows(at, replace(plan, **change), town.zones) is None, change
