import numpy as np
import pyarrow as pa
import pytest

from synthmap.analysis.classes import by_density, by_headcount, by_true_length, density_edges, jobs_per_km2
from synthmap.analysis.lengths import MeanLengths
from synthmap.geography.zones import Zones


@pytest.fixture
def lengths():
    return MeanLengths(
        destination=np.arange(6, dtype=np.int32),
        headcount=np.array([1, 2, 4, 5, 30, 30]),
        reference=np.array([1.0, 4.0, 6.0, 30.0, 90.0, np.nan]),
        other=np.array([2.0, 6.0, 3.0, 30.0, 80.0, 1.0]),
    )


def test_by_headcount(lengths):
    found = by_headcount(lengths)
    assert [(c.low, c.high, c.error.destinations, c.error.workers) for c in found] == [
        (1, 2, 1, 1),
        (2, 5, 2, 6),
        (5, 20, 1, 5),
        (20, 100, 1, 30),
    ]
    assert found[1].error.mae_km == pytest.approx((2 * 2 + 3 * 4) / 6)
    assert found[1].error.bias_km == pytest.approx((2 * 2 - 3 * 4) / 6)


def test_by_true_length(lengths):
    found = by_true_length(lengths)
    assert [(c.low, c.high, c.error.destinations) for c in found] == [
        (0, 5, 2),
        (5, 10, 1),
        (20, 40, 1),
        (80, None, 1),
    ]


def test_by_density_has_thirds_of_the_destinations(lengths):
    found = by_density(lengths, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    assert [c.error.destinations for c in found] == [2, 2, 1]
    assert [c.error.destinations for c in by_density(lengths, np.full(6, 3.0))] == [5]
    assert density_edges(np.zeros(0)) == (0.0, np.inf)


def test_density_counts_workers_within_a_few_km():
    km = 1 / 111.195
    latitude = 50.0 + km * np.array([0.5, 1.5, 2.5, 30.5])
    zones = Zones(pa.array(list("abcd")), np.arange(4), np.full(4, 10.0), latitude, np.ones(4, int), (), (), "made-up")
    found = jobs_per_km2(np.arange(4, dtype=np.int32), np.array([100, 50, 25, 7]), zones)
    assert (found * 25).tolist() == pytest.approx([175, 175, 175, 7])


def test_density_far_apart_on_a_parallel_is_separate():
    zones = Zones(
        pa.array(["a", "b"]), np.arange(2), np.array([10.0, 10.2]), np.full(2, 60.0), np.ones(2, int), (), (), ""
    )
    assert jobs_per_km2(np.arange(2, dtype=np.int32), np.array([100, 50]), zones).tolist() == [4, 2]
    assert jobs_per_km2(np.zeros(0, np.int32), np.zeros(0, int), zones).size == 0
