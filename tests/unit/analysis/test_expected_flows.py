"""Closed forms of measures of whole tables, against means over many worlds in which the prior is the truth."""

from dataclasses import replace

import numpy as np
import pytest
from publishedplan import published_plan

from synthmap.analysis.comparison import measure
from synthmap.analysis.expected_flows import expected_flows
from synthmap.analysis.prior_world import Setting, prior_world
from synthmap.analysis.table import pair
from synthmap.geography.prior import NO_TABLE, PriorModel, prior_from
from synthmap.kernels.histogram import nest

PLACES = np.array([3, 17, 18, 19, 50, 90, 91, 140, 200, 201, 260, 333, 380, 399], np.int32)
WORKERS = [40, 1, 3, 90, 300, 8, 20, 2, 700, 30, 12, 150, 5, 60]
SEEDS = 60
SHARE = 0.003  # how far closed forms of shares are off, at most, beyond chance
BY_DISTANCE = 0.015


@pytest.fixture
def setting(town):
    def make(elsewhere=0.0):
        model = PriorModel(4.0, 2.0, elsewhere, 0.0, 5.0, NO_TABLE)
        return Setting(town.tree, model, town.points(PLACES), PLACES, keep_by_prior=False, segments=2,
                       strength_inside=160.0, agreement=False)  # fmt: skip

    return make


@pytest.fixture
def made(setting):
    """Return a setting and a plan, whose cells are those that coarsening makes."""

    def make(cells, elsewhere=0.0, **changes):
        at = setting(elsewhere)
        plan = published_plan(PLACES, WORKERS, cells_asked=cells, alpha_denominator=4, **changes)
        sizes = []
        for d in range(PLACES.size):
            prior = prior_from(at.tree, at.model, at.points[d], at.destination[d])
            bounds = nest(at.tree, at.points[d], prior, plan.finest[d], (plan.cells_asked[d], 1)).bounds
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
    for side in ("reference", "other"):
        for name in ("origin", "destination", "distance"):
            out[f"gravity {side} {name}"] = getattr(getattr(found.gravity, side), name)
    return out


def pair_shares(worlds):
    pairs = [world.pairs["zone/zone"] for world in worlds]
    true, drawn, both = (np.array([getattr(one, n) for one in pairs]) for n in ("reference", "other", "common"))
    return 1 - both.sum() / drawn.sum(), 1 - both.sum() / true.sum(), (both / true).std() / np.sqrt(len(pairs))


def compare(town, at, plan):
    """Return {name: (closed form, mean over worlds, standard error)}."""
    worlds = [measure(pair(*prior_world(at, plan, seed), len(town.zones)), town.zones)[0] for seed in range(SEEDS)]
    found = expected_flows(at, plan, town.zones)
    each = [told(one) for one in worlds]
    out = {}
    for name, value in told(found).items():
        values = [one[name] for one in each]
        out[name] = value, np.mean(values), np.std(values) / np.sqrt(SEEDS)
    spurious, missing, error = pair_shares(worlds)
    return out | {"spurious": (found.spurious, spurious, error), "missing": (found.missing, missing, error)}
