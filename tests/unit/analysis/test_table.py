import numpy as np
import pytest

from synthmap.analysis.table import aggregate, by_levels, pair, pair_km, units_by_level


def rows(paired):
    return list(
        zip(
            paired.origin.tolist(),
            paired.destination.tolist(),
            paired.reference.tolist(),
            paired.other.tolist(),
            strict=True,
        )
    )


def test_pairs_of_either_table_stand_side_by_side_sorted_by_destination(table):
    found = pair(table((1, 2, 5), (0, 0, 1), (1, 2, 2)), table((3, 0, 4), (0, 0, 2)), 4)
    assert rows(found) == [(0, 0, 1, 2), (3, 0, 0, 4), (1, 2, 7, 0)]
    assert found.starts.tolist() == [0, 2]


def test_rows_without_workers_are_no_pairs(table):
    assert rows(pair(table((0, 0, 0), (1, 0, 1)), table((2, 0, 0)), 4)) == [(1, 0, 1, 0)]


def test_empty_tables_have_no_pairs(table):
    assert rows(pair(table(), table(), 4)) == []


def test_levels_are_finest_first_and_elsewhere_is_a_unit_of_its_own(line):
    units = units_by_level(line)
    assert list(units) == ["zone", "county"]
    assert units["zone"].tolist() == [0, 1, 2, 3, 4]
    assert units["county"].tolist() == [0, 0, 1, 1, 2]


def test_aggregation_adds_up_on_one_side_or_both(line, table):
    county = units_by_level(line)["county"]
    found = pair(table((0, 0, 1), (1, 0, 2), (1, 1, 4), (4, 1, 8)), table((0, 1, 3)), 4)
    assert rows(aggregate(found, county, None)) == [(0, 0, 3, 0), (0, 1, 4, 3), (2, 1, 8, 0)]
    assert rows(aggregate(found, None, county)) == [(0, 0, 1, 3), (1, 0, 6, 0), (4, 0, 8, 0)]
    assert rows(aggregate(found, county, county)) == [(0, 0, 7, 3), (2, 0, 8, 0)]


def test_every_pair_of_levels_is_the_direct_aggregation(town):
    rng = np.random.default_rng(1)
    zones = len(town.zones)
    units = units_by_level(town.zones)
    origin = rng.integers(0, zones + 1, 900).astype(np.int32)
    destination = rng.integers(0, zones, 900).astype(np.int32)
    from synthmap.analysis.table import ODTable

    tables = [ODTable(origin, destination, rng.integers(0, 5, 900)) for _ in range(2)]
    paired = pair(*tables, zones)
    seen = {}
    for o, d, flows in by_levels(paired, units):
        seen[o, d] = rows(flows)
        assert seen[o, d] == rows(aggregate(paired, units[o], units[d]))
    assert set(seen) == {(o, d) for o in ("zone", "tract", "county") for d in ("zone", "tract", "county")}


def test_distance_is_0_inside_a_zone_and_unknown_from_elsewhere(line, degree_km):
    found = pair_km(np.array([0, 1, 3, 4], np.int32), np.array([0, 0, 0, 0], np.int32), line)
    assert found[:3].tolist() == pytest.approx([0, degree_km, 3 * degree_km])
    assert np.isnan(found[3])
