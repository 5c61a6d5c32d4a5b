"""Destinations and origins, ranked."""

import pytest

from synthmap.analysis.area.ranked import destinations, origins
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones


def test_where_residents_work_counted_by_hand(town, rows):
    area = area_of_zones(town, ("A",), "county")
    found = destinations(town, area)
    assert rows(found, "rank", "id", "group") == [
        (1, "a1", "unit", 8, 7, 1),
        (2, "b1", "unit", 7, 7, 0),
        (3, "a2", "unit", 6, 0, 6),
        (None, None, "others", 0, 0, 0),
        (None, None, "total", 21, 14, 7),
    ]
    assert found.parameters["end"] == "home"
    assert [key["longitude"] for key in found.keys] == [10.0, 10.2, 10.1, None, None]


def test_what_is_below_the_top_is_others(town, rows):
    found = destinations(town, area_of_zones(town, ("A",), "county"), by="county", top=1)
    assert rows(found, "id", "group") == [
        ("A", "unit", 14, 7, 7),
        (None, "others", 7, 7, 0),
        (None, "total", 21, 14, 7),
    ]


def test_where_workers_live_and_elsewhere_among_it(town, rows):
    found = origins(town, area_of_zones(town, ("b1",)), by="county")
    assert rows(found, "id") == [
        ("B", 9, 1, 8),
        ("elsewhere", 9, 0, 9),
        ("A", 7, 7, 0),
        ("C", 2, 0, 2),
        (None, 0, 0, 0),
        (None, 27, 8, 19),
    ]
    assert found.keys[1]["longitude"] is None
    assert found.figures.error[-1, 0] == 0
    assert [key["share"] for key in found.keys][:2] == [9 / 27, 9 / 27]


def test_nothing_is_ranked_where_nobody_works(town, rows):
    found = origins(town, area_of_zones(town, ("c1",)))
    assert rows(found, "group") == [("others", 0, 0, 0), ("total", 0, 0, 0)]


def test_what_cannot_be_ranked_is_refused(town):
    area = area_of_zones(town, ("a1",))
    with pytest.raises(QueryError, match=r"level \(state\) must be one of county, zone"):
        origins(town, area, by="state")
    for top in (0, 1001):
        with pytest.raises(QueryError, match=rf"top \({top}\) must be between 1 and 1,000"):
            destinations(town, area, top=top)
