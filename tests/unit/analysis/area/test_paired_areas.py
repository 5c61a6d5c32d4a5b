"""Flows between two areas."""

import pytest

from synthmap.analysis.area.paired_areas import paired_areas
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones


def test_both_directions_counted_by_hand(town, rows):
    a, b = area_of_zones(town, ("A",), "county"), area_of_zones(town, ("b1", "c1"))
    assert rows(paired_areas(town, a, b), "figure") == [
        ("a_to_b", 7, 7, 0),
        ("b_to_a", 14, 7, 7),
        ("within_a", 14, 7, 7),
        ("within_b", 11, 1, 10),
    ]


def test_turned_round_it_says_the_same(town):
    a, b = area_of_zones(town, ("A",), "county"), area_of_zones(town, ("b1",))
    one, two = paired_areas(town, a, b).figures, paired_areas(town, b, a).figures
    assert one.workers[[1, 0, 3, 2]].tolist() == two.workers.tolist()
    assert one.error[[1, 0, 3, 2]].tolist() == two.error.tolist()


def test_areas_with_a_zone_in_common_are_refused(town):
    with pytest.raises(QueryError, match="no zone in common; they share 1"):
        paired_areas(town, area_of_zones(town, ("A",), "county"), area_of_zones(town, ("a2", "b1")))
