import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from synthmap.audit.attacks.averaging import averaged, beliefs, nearest_tables
from synthmap.audit.attacks.chosen import literature
from synthmap.audit.attacks.tables import released, unprotected
from synthmap.audit.exact import laws
from synthmap.audit.statistical import drawing
from synthmap.audit.worlds import SETTINGS, World, two_zones
from synthmap.kernels.stream import seeded_stream
from synthmap.privacy.rule import Rule

SCHEMA = ["draw", "origin", "destination", "count"]


def test_means_count_flows_that_a_draw_does_not_have_as_0():
    rows = [(0, "x", "a", 3), (1, "x", "a", 1), (1, "y", "a", 2), (2, "y", "a", 4), (3, "y", "a", 4)]
    found = averaged(pl.DataFrame(rows, schema=SCHEMA, orient="row"), implicates=2)
    assert found.rows() == [(0, "x", "a", 2.0), (0, "y", "a", 1.0), (1, "y", "a", 4.0)]


def test_the_nearest_table_is_that_of_the_least_squares():
    def mean(*rows):
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    expected = {
        "one": mean((0, "x", "a", 3.0), (0, "y", "a", 1.0)),
        "two": mean((0, "x", "a", 1.0), (0, "y", "a", 3.0)),
    }
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y = rng.uniform(0.1, 4, 2)
        seen = mean((0, "x", "a", x), (0, "y", "a", y), (0, "z", "a", 1.0))
        nearest = "one" if (x - 3) ** 2 + (y - 1) ** 2 < (x - 1) ** 2 + (y - 3) ** 2 else "two"
        assert nearest_tables(seen, expected).rows() == [(0, nearest)]


def lone(epsilon, rule=Rule.PURE, delta=0.02):
    settings = replace(SETTINGS, epsilon=epsilon, rule=rule, delta=delta, cells=2, elsewhere_share=0.0)
    return World("a lone worker", two_zones(), (0,), (1,), settings)


def test_each_release_moves_a_belief_by_at_most_epsilon_and_many_of_them_beyond_doubt():
    """The odds are exact: of the laws of the code that draws, after releases drawn by that code."""
    world = lone(0.5)
    _, law = laws(world)
    here, there = ((0,),), ((1,),)
    seen = map(tuple, drawing(world, seeded_stream(1))(here, 2_000).tolist())
    path = beliefs(seen, law[here], law[there])
    moves = np.diff(path, prepend=0.0)
    assert np.abs(moves).max() <= 0.5 + 1e-12
    assert np.abs(moves).max() > 0.49
    releases = np.arange(1, 2_001)
    assert (np.abs(path) <= 0.5 * releases + 1e-9).all()
    drift = sum(float(p) * math.log(p / law[there][x]) for x, p in law[here].items())
    assert path[-1] == pytest.approx(2_000 * drift, rel=0.2)
    assert path[7] < 5 < path[-1]


def test_what_one_law_excludes_ends_all_doubt():
    one, other = {"a": Fraction(1, 2), "b": Fraction(1, 2)}, {"b": Fraction(1)}
    assert beliefs(["b", "a"], one, other).tolist() == [math.log(0.5), math.inf]
    assert beliefs(["a"], other, one).tolist() == [-math.inf]


def test_more_releases_are_better_than_one_at_the_same_epsilon_each():
    one = next(one for one in literature() if one.implicates > 1)
    draw = released(one.world, seeded_stream(5))
    proved = [
        replace(one, implicates=implicates, draws=1_000).against(draw, "", charged=1).epsilon_at_least
        for implicates in (1, 8, 32)
    ]
    assert proved[0] < 0.5 < proved[1] < proved[2]


def test_without_protection_one_release_is_enough():
    one = replace(next(one for one in literature() if one.implicates > 1), implicates=1)
    assert one.against(unprotected, "").event == f"{one.draws} to 0 claims"
