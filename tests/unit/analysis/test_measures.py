import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthmap.analysis.measures import common_part, count_pairs, marginal_error, total_variation, weighted_mean
from synthmap.analysis.table import ODTable, Paired, aggregate, pair

COUNTY = np.array([0, 0, 1, 1, 2], np.int32)  # of four zones and elsewhere

tables = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 9)), max_size=12).map(
    lambda rows: ODTable(
        np.array([r[0] for r in rows], np.int32),
        np.array([r[1] for r in rows], np.int32),
        np.array([r[2] for r in rows], np.int64),
    )
)


class TestCommonPart:
    def test_by_hand(self, table):
        # shared: min(3, 1) + min(0, 2) + min(4, 4) = 5 of 7 and 7
        assert common_part(pair(table((0, 0, 3), (2, 1, 4)), table((0, 0, 1), (1, 0, 2), (2, 1, 4)), 4)) == 5 / 7

    def test_totals_may_differ(self, table):
        assert common_part(pair(table((0, 0, 3)), table((0, 0, 1)), 4)) == 2 * 1 / 4

    def test_identical_is_1_and_disjoint_is_0(self, table):
        one = table((0, 0, 3), (4, 1, 4))
        assert common_part(pair(one, one, 4)) == 1
        assert common_part(pair(one, table((1, 0, 3), (3, 1, 4)), 4)) == 0

    def test_elsewhere_is_a_place(self, table):
        assert common_part(pair(table((4, 0, 3)), table((4, 0, 3)), 4)) == 1

    def test_is_unknown_without_workers(self, table):
        assert np.isnan(common_part(pair(table(), table(), 4)))

    @given(tables, tables)
    def test_symmetric_between_0_and_1_and_not_lower_when_coarser(self, a, b):
        paired = pair(a, b, 4)
        if not paired.origin.size:
            return
        found = common_part(paired)
        assert 0 <= found <= 1
        assert found == common_part(pair(b, a, 4))
        for origin, destination in ((COUNTY, None), (None, COUNTY), (COUNTY, COUNTY)):
            assert common_part(aggregate(paired, origin, destination)) >= found


class TestTotalVariation:
    def test_by_hand(self, table):
        found = total_variation(pair(table((0, 0, 3), (1, 0, 1), (2, 1, 5)), table((0, 0, 1), (4, 0, 1), (2, 1, 7)), 4))
        assert found.tolist() == pytest.approx([0.5 * (0.25 + 0.25 + 0.5), 0])

    def test_is_unknown_where_a_table_has_no_workers(self, table):
        found = total_variation(pair(table((0, 0, 3)), table((0, 1, 3)), 4))
        assert np.isnan(found).tolist() == [True, True]

    def test_of_nothing_is_nothing(self, table):
        assert total_variation(pair(table(), table(), 4)).size == 0

    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=30))
    def test_is_one_less_the_common_part_when_totals_agree(self, workers):
        a, b, d = np.array(workers, np.int32).T
        one = np.ones(d.size, np.int64)
        paired = pair(ODTable(a, d, one), ODTable(b, d, one), 4)
        weight = np.add.reduceat(paired.reference, paired.starts)
        assert weighted_mean(total_variation(paired), weight) == pytest.approx(1 - common_part(paired))


def test_pairs_by_hand(table):
    found = count_pairs(pair(table((0, 0, 3), (1, 0, 1)), table((0, 0, 1), (2, 0, 2), (3, 0, 1)), 4))
    assert (found.reference, found.other, found.common) == (2, 3, 1)
    assert (found.missing_share, found.spurious_share) == (1 / 2, 2 / 3)
    assert (found.missing_workers_share, found.spurious_workers_share) == (1 / 4, 3 / 4)


def test_pairs_of_identical_tables(table):
    one = table((0, 0, 3), (1, 0, 1))
    found = count_pairs(pair(one, one, 4))
    assert (found.missing_share, found.spurious_share, found.common) == (0, 0, 2)


def test_marginals_by_hand(table):
    paired = pair(table((0, 0, 3), (1, 1, 1), (2, 0, 10)), table((0, 1, 1), (4, 0, 2), (2, 0, 11)), 4)
    zone = marginal_error(paired, np.arange(5, dtype=np.int32))
    # by origin 3, 1, 10, 0, 0 against 1, 0, 11, 0, 2
    assert zone.units == 4
    assert zone.relative_error == pytest.approx((2 + 1 + 1 + 2) / 14)
    assert zone.median == pytest.approx(2 / 3)
    assert zone.bias_largest == pytest.approx(0.1)
    county = marginal_error(paired, COUNTY)
    assert county.relative_error == pytest.approx((3 + 1 + 2) / 14)


def test_marginals_of_identical_tables(table):
    one = table((0, 0, 3), (1, 0, 1))
    found = marginal_error(pair(one, one, 4), COUNTY)
    assert (found.relative_error, found.median, found.p90, found.bias_largest) == (0, 0, 0, 0)


def test_weighted_mean_leaves_out_what_is_unknown():
    assert weighted_mean(np.array([1.0, np.nan, 4.0]), np.array([1, 100, 2])) == 3
    assert np.isnan(weighted_mean(np.array([np.nan]), np.array([1])))


def test_twenty_million_keys_fit_the_integers():
    paired = Paired(
        *(np.array([v], t) for v, t in ((10**7, np.int32), (10**7, np.int32), (1, int), (1, int))), 10**7 + 1
    )
    assert paired.merged().origin.tolist() == paired.merged().destination.tolist() == [10**7]
