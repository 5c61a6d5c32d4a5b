"""Two releases compared, and those that cannot be."""

from dataclasses import replace

import numpy as np
import pytest
from handmade import World, Zone

from synthmap.analysis.area.time import in_order, time
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones

ZONES = [Zone("x", ("A",)), Zone("y", ("B",))]
BEFORE = World(ZONES, [("x", "x", (100, 0)), ("y", "x", (40, 2))], ("county",), ("p", "q"), year=2019)
AFTER = World(ZONES, [("x", "x", (90, 5)), ("y", "x", (70, 2)), ("x", "y", (8, 0))], ("county",), ("p", "q"), year=2020)


def test_differences_are_after_minus_before_with_the_noise_of_both(opened, rows):
    before, after = opened(BEFORE), opened(AFTER)
    found = time(before, after, area_of_zones(after, ("x",)))
    assert [row[:2] for row in rows(found, "figure")] == [
        ("employed", 25),
        ("living", 3),
        ("live_and_work", -5),
        ("in_commuters", 30),
        ("in_commuters_from_elsewhere", 0),
        ("out_commuters", 8),
        ("net_inflow", 22),
    ]
    old, new = found.others["before"], found.others["after"]
    assert old.workers[:, 0].tolist() == [142, 100, 100, 42, 0, 0, 42]
    assert np.allclose(found.figures.error, np.hypot(old.error, new.error))
    assert found.frame().columns[:3] == ["figure", "label", "before_workers"]


def test_other_segments_leave_all_workers(opened):
    before, after = opened(replace(BEFORE, segments=("p", "r"))), opened(AFTER)
    found = time(before, after, area_of_zones(after, ("x",)))
    assert found.segments == ()
    assert found.figures.workers.shape == (7, 1)
    assert any("different segments" in note for note in found.notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vintage": "2"}, r"the same vintage of zones \(2, not 1\)"),
        ({"levels": ("state",)}, r"the same levels \(state, not county\)"),
        ({"zones": [*ZONES, Zone("z", ("B",))]}, "the same zones, in the same parents"),
        ({"zones": [Zone("x", ("B",)), Zone("y", ("B",))]}, "the same zones, in the same parents"),
        ({"elsewhere": False}, "the same places outside the map"),
    ],
)
def test_releases_of_other_zones_are_refused(opened, changes, words):
    before, after = opened(replace(BEFORE, **changes)), opened(AFTER)
    with pytest.raises(QueryError, match=words):
        time(before, after, area_of_zones(after, ("x",)))


def test_a_release_is_not_compared_with_itself(opened):
    release = opened(BEFORE)
    with pytest.raises(QueryError, match="must be another release"):
        time(release, release, area_of_zones(release, ("x",)))


def test_the_earlier_year_comes_first(opened):
    before, after = opened(BEFORE), opened(AFTER)
    assert in_order(after, before) == in_order(before, after) == (before, after)
