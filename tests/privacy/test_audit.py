"""The audit: plan and draw as a release does, through every choice, and hold the law against the promise.

The whole path of a destination is run: planning, coarsening, dropping, the urn, spreading to zones, segments.
All neighbouring tables of a small region are compared, zone by zone, in exact fractions.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pytest

from synthmap.geography.region import make_region
from synthmap.geography.zones import canonical
from synthmap.kernels import destination
from synthmap.mechanism.plan import PlanSettings, plan_destinations
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.rule import Rule

SETTINGS = PlanSettings(
    epsilon=1.5,
    delta=0.02,
    rule=Rule.PDP,
    cells=3,
    finest=-1,
    keep=1.0,
    keep_by_prior=False,
    segments=1,
    scale_km=4.0,
    power=2.0,
    elsewhere_share=0.2,
    strength=20.0,
)


@pytest.fixture(scope="module")
def region():
    ids = pa.array(["a", "b", "c", "d"])
    return make_region(
        canonical(
            ids=ids,
            longitude=np.array([0.0, 0.01, 0.2, 0.21]),
            latitude=np.array([50.0, 50.01, 50.0, 50.02]),
            weight=np.array([1, 2, 1, 1]),
            levels=("county",),
            parents=(pa.array(["x", "x", "y", "y"]),),
            vintage="test",
        )
    )


def true_delta(every_choice, choices, region, settings, workers, shrink=Fraction(1)):
    """Return the exact δ at the stated ε of one destination's synthetic zones, over all neighbouring tables."""
    place = np.zeros(1, np.int32)
    plan = plan_destinations(region, place, np.array([workers]), settings)
    origins = len(region.zones) + 1
    size = origins * settings.segments
    alpha = Fraction(int(plan.alpha_numerator[0]), int(plan.alpha_denominator[0])) * shrink
    laws = {}
    for table in combinations_with_replacement(range(size), workers):
        counts = np.bincount(table, minlength=size).reshape(origins, settings.segments)
        occupied = np.flatnonzero(counts.sum(axis=1))

        def run(occupied=occupied, counts=counts):
            return destination.synthesize_one.py_func(
                occupied.astype(np.int32),
                counts[occupied],
                region.tree,
                region.points(place)[0],
                settings.scale_km,
                settings.power,
                settings.elsewhere_share,
                settings.finest,
                int(plan.cells_asked[0]),
                int(plan.cells[0]),
                int(plan.synthetic_size[0]),
                alpha.numerator,
                alpha.denominator,
                int(plan.keep_units[0]),
                settings.keep_by_prior,
                None,
                np.zeros(1, np.int64),
            )

        laws[table] = every_choice.law_of(choices, run, size)
    ratio = Fraction(1 + ratio_minus_one(settings.epsilon))
    worst = Fraction(0)
    for table, law in laws.items():
        for i in range(workers):
            for value in range(size):
                other = laws[tuple(sorted((*table[:i], *table[i + 1 :], value)))]
                worst = max(worst, sum(max(Fraction(0), p - ratio * other.get(x, 0)) for x, p in law.items()))
    return worst, plan


VARIANTS = {
    "prior-mass": {},
    "two cells": {"cells": 2},
    "every zone": {"cells": 5},
    "planner": {"cells": 0},
    "distance": {"finest": 1, "cells": 4},
    "direct": {"rule": Rule.ADP, "cells": 4},
    "pure": {"rule": Rule.PURE},
    "dropping": {"keep": 0.5, "epsilon": 2.5, "cells": 4},
    "dropping, direct": {"keep": 0.75, "epsilon": 2.0, "cells": 4, "rule": Rule.ADP},
    "dropping by prior": {"keep": 0.25, "epsilon": 3.0, "cells": 4, "keep_by_prior": True},
    "segments": {"segments": 2, "cells": 2},
    "everywhere else in the last cell": {"elsewhere_share": 0.0},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_promise_holds(every_choice, choices, region, variant, workers):
    settings = replace(SETTINGS, **VARIANTS[variant])
    delta, plan = true_delta(every_choice, choices, region, settings, workers)
    assert delta <= plan.delta[0] <= (0 if settings.rule is Rule.PURE else settings.delta)


def test_the_promise_holds_for_three_workers(every_choice, choices, region):
    settings = replace(SETTINGS, cells=2, delta=0.2)
    delta, plan = true_delta(every_choice, choices, region, settings, 3)
    assert delta <= plan.delta[0]


@pytest.mark.parametrize("variant", ["every zone", "direct", "pure", "dropping", "segments"])
def test_too_little_noise_is_caught(every_choice, choices, region, variant):
    settings = replace(SETTINGS, **VARIANTS[variant])
    delta, plan = true_delta(every_choice, choices, region, settings, 2, shrink=Fraction(7, 10))
    assert delta > plan.delta[0]
