"""Flows between units in the order of their strength."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.published import tiles_flows
from synthmap.published.tiles_flows import rank_flows
from synthmap.published.tiles_grid import point
from synthmap.published.tiles_units import Units


def units(longitude, latitude, of_zone=None):
    x, y = point(np.array(longitude, float), np.array(latitude, float))
    ids = [str(number) for number in range(x.size)]
    of_zone = np.arange(x.size) if of_zone is None else np.array(of_zone)
    return Units("zone", pl.DataFrame({"id": ids}), x, y, of_zone.astype(np.int32))


def piece(flows):
    """Flows as the table yields them."""
    origin, destination, count = np.array(flows, np.int64).reshape(-1, 3).T
    return origin.astype(np.int32), destination.astype(np.int32), count


def rows(flows):
    return list(zip(flows.origin.tolist(), flows.destination.tolist(), flows.count.tolist(), strict=True))


TWO = units([0, 1], [0, 1])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 5), st.integers(1, 2**40)), max_size=40),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.integers(1, 10),
)
def test_pairs_of_units_are_summed_and_ordered_by_count(table, of_zone, size):
    places = units([0, 1, 2, 3], [0, 1, 2, 3], of_zone)
    stretches = [  # of destination units, whole, each in pieces
        [piece(part[i : i + size]) for i in range(0, len(part), size)]
        for part in ([row for row in table if of_zone[row[1]] == unit] for unit in range(4))
        if part
    ]
    truth = Counter()
    for origin, destination, count in table:
        if origin >= 0:
            truth[of_zone[origin], of_zone[destination]] += count
    found = rows(rank_flows(stretches, places))
    assert {(origin, destination): count for origin, destination, count in found} == truth
    assert len(found) == len(truth)
    counts = [count for *_, count in found]
    assert counts == sorted(counts, reverse=True)


def test_only_the_strongest_are_kept_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(tiles_flows, "MOST", 10)
    flows = [(a, b, 1 + a * 8 + b) for a in range(8) for b in range(8)]
    stretches = [[piece(flows[i : i + 8])] for i in range(0, 64, 8)]
    found = rank_flows(stretches, units(np.linspace(0, 1, 8), np.linspace(0, 1, 8)))
    assert found.count.tolist() == list(range(64, 54, -1))


def test_among_equals_no_corner_of_the_map_is_preferred():
    places = units(np.linspace(0, 1, 1600), np.linspace(0, 1, 1600))
    found = rank_flows([[piece([(zone, (zone + 1) % 1600, 1) for zone in range(1600)])]], places)
    assert np.histogram(found.origin[:400], 4, (0, 1600))[0].min() > 70
    assert sorted(found.origin.tolist()) == list(range(1600))


def test_the_order_does_not_depend_on_that_of_the_table():
    flows = [(a, b, 1 + (a * b) % 3) for a in range(30) for b in range(30)]
    places = units(np.linspace(0, 1, 30), np.linspace(0, 1, 30))
    assert rows(rank_flows([[piece(flows)]], places)) == rows(rank_flows([[piece(flows[::-1])]], places))


def test_no_flows_at_all():
    assert rows(rank_flows([], TWO)) == []
    assert rows(rank_flows([[piece([(-1, 0, 5)])]], TWO)) == []


@pytest.mark.parametrize("largest", [2**31, 2**52])
def test_counts_of_any_size_keep_their_order(largest):
    flows = [(0, 1, largest - 1), (1, 0, largest), (1, 1, 1)]
    assert rank_flows([[piece(flows)]], TWO).count.tolist() == [largest, largest - 1, 1]


def test_lines_take_the_shorter_way_round_the_globe():
    places = units([179, -179, 0, 90], [0, 0, 0, 0])
    lines = rank_flows([[piece([(0, 1, 3), (1, 0, 2), (2, 3, 1)])]], places).lines()
    assert 360 * (lines[:, :, 0] - 0.5) == pytest.approx(np.array([[179, 181], [-179, -181], [0, 90]]))
