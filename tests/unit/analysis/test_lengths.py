import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from synthmap.analysis.lengths import (
    common_part_of_lengths,
    length_error,
    mean_lengths,
    wasserstein_by_destination_km,
    wasserstein_km,
)
from synthmap.analysis.table import Paired, pair, pair_km


@pytest.fixture
def both(line, table):
    """Two tables: destination a gets 0, 1 and 2 degrees; destination d has someone from elsewhere; b is far off."""
    paired = pair(
        table((0, 0, 1), (1, 0, 1), (2, 0, 2), (2, 3, 1), (4, 3, 5), (4, 1, 2)),
        table((0, 0, 3), (2, 0, 1), (0, 3, 6), (0, 1, 2)),
        4,
    )
    return paired, pair_km(paired.origin, paired.destination, line)


def test_average_commute_by_hand(both, degree_km):
    found = mean_lengths(*both)
    assert found.destination.tolist() == [0, 1, 3]
    assert found.headcount.tolist() == [4, 2, 6]
    assert found.reference[[0, 2]].tolist() == pytest.approx([1.25 * degree_km, degree_km])
    assert np.isnan(found.reference[1])
    assert found.other.tolist() == pytest.approx([0.5 * degree_km, degree_km, 3 * degree_km])


def test_errors_by_hand(both, degree_km):
    found = length_error(mean_lengths(*both))
    assert (found.destinations, found.workers) == (2, 10)
    assert found.mae_km == pytest.approx((0.75 * 4 + 2 * 6) / 10 * degree_km)
    assert found.mae_km_unweighted == pytest.approx((0.75 + 2) / 2 * degree_km)
    assert found.bias_km == pytest.approx((-0.75 * 4 + 2 * 6) / 10 * degree_km)
    assert found.bias_km_unweighted == pytest.approx((-0.75 + 2) / 2 * degree_km)
    assert found.rmse_km == pytest.approx(np.sqrt((0.75**2 * 4 + 4 * 6) / 10) * degree_km)
    assert found.true_km == pytest.approx((1.25 * 4 + 6) / 10 * degree_km)


def test_no_destination_no_error(both, line, table):
    assert length_error(mean_lengths(*both), np.zeros(3, bool)) is None
    paired = pair(table(), table(), 4)
    lengths = mean_lengths(paired, pair_km(paired.origin, paired.destination, line))
    assert length_error(lengths) is None


def test_wasserstein_by_hand(both, degree_km):
    by_destination = wasserstein_by_destination_km(*both)
    # at a: (0, 1, 2, 2) against (0, 0, 0, 2); at d: 1 against 3
    assert by_destination[[0, 2]].tolist() == pytest.approx([0.75 * degree_km, 2 * degree_km])
    assert np.isnan(by_destination[1])


def test_identical_tables(line, table):
    one = table((0, 0, 3), (3, 0, 1), (4, 0, 1), (1, 2, 7))
    paired = pair(one, one, 4)
    km = pair_km(paired.origin, paired.destination, line)
    assert wasserstein_km(paired, km) == 0
    assert wasserstein_by_destination_km(paired, km).tolist() == [0, 0]
    assert common_part_of_lengths(paired, km) == 1
    error = length_error(mean_lengths(paired, km))
    assert (error.mae_km, error.bias_km, error.rmse_km) == (0, 0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 100), st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_wasserstein_is_that_of_scipy(rows):
    rows = sorted(rows)
    group, km, a, b = (np.array(column) for column in zip(*rows, strict=True))
    paired = Paired(np.arange(group.size, dtype=np.int32), group.astype(np.int32), a, b, group.size)
    found = wasserstein_by_destination_km(paired, km)
    for place, one in enumerate(np.unique(group)):
        inside = group == one
        if a[inside].sum() and b[inside].sum():
            true = wasserstein_distance(km[inside], km[inside], a[inside], b[inside])
            assert found[place] == pytest.approx(true, abs=1e-9)
        else:
            assert np.isnan(found[place])
    if a.sum() and b.sum():
        assert wasserstein_km(paired, km) == pytest.approx(wasserstein_distance(km, km, a, b), abs=1e-9)


def test_common_part_of_lengths_by_hand():
    km = np.array([0.0, 1.9, 2.0, 7.0, np.nan])
    paired = Paired(
        np.arange(5, dtype=np.int32), np.zeros(5, np.int32), np.array([1, 2, 3, 0, 9]), np.array([3, 0, 1, 2, 0]), 5
    )
    assert common_part_of_lengths(paired, km) == pytest.approx(2 * (3 + 1 + 0) / (6 + 6))
    assert common_part_of_lengths(paired, km, bin_km=10.0) == 1
