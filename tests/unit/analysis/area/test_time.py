"""Two releases compared, and those that cannot be."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from handmade import World, Zone

from synthmap.analysis.area.distance import area_profile, distance_direction
from synthmap.analysis.area.pictures import _bars as bars
from synthmap.analysis.area.pictures import _place as place
from synthmap.analysis.area.time import in_order, time
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones
from synthmap.published.exports.about import citation
from synthmap.release.manifest import Loss
from synthmap.service.analysis_answers import as_json

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
    assert found.frame().columns[:4] == ["figure", "label", "within_noise", "before_workers"]
    sure = np.abs(found.figures.workers[:, 0]) >= 2 * found.figures.error[:, 0]
    assert [key["within_noise"] for key in found.keys] == (~sure).tolist()
    assert not found.keys[0]["within_noise"]  # how many are employed is exact in both
    assert found.keys[2]["within_noise"]


@pytest.mark.parametrize(
    ("of", "run"),
    [
        ("area-profile", lambda release, area: area_profile(release, area, end="work")),
        ("distance-direction", lambda release, area: distance_direction(release, area, end="home")),
    ],
)
def test_rows_that_all_releases_have_are_compared_one_by_one(opened, of, run):
    before, after = opened(BEFORE), opened(AFTER)
    area = area_of_zones(after, ("x",))
    end = "home" if of == "distance-direction" else "work"
    found = time(before, after, area, of=of, end=end)
    old, new = run(before, area), run(after, area)
    assert found.parameters["end"] == found.areas[0].end == end
    assert (found.others["before"].workers == old.figures.workers).all()
    assert (found.figures.workers == new.figures.workers - old.figures.workers).all()
    assert np.allclose(found.figures.error, np.hypot(old.figures.error, new.figures.error))
    assert [key.get("label") for key in found.keys] == [key.get("label") for key in new.keys]
    assert not any("share" in key for key in found.keys)
    labels = [label for label, *_ in bars(found)]
    assert len(labels) == len(set(labels)) == len(found.keys) - 1  # all but the total, which is told in words
    if of == "distance-direction":
        assert {"N, 0 to under 10 mi", "NW, 50 and more mi", "within one zone", "outside the map"} <= set(labels)


def test_units_of_either_release_are_ranked_by_the_larger_figure(opened, rows):
    before, after = opened(BEFORE), opened(AFTER)
    area = area_of_zones(after, ("x",))
    found = time(before, after, area, of="origins", by="county")
    assert [row[:3] for row in rows(found, "id", "group")] == [
        ("A", "unit", -5),
        ("B", "unit", 30),
        (None, "others", 0),
        (None, "total", 25),
    ]
    assert found.keys[-1]["within_noise"] is False
    gone = time(after, before, area, of="destinations", by="county", top=1)
    assert [row[:3] for row in rows(gone, "id", "group")] == [
        ("A", "unit", 5),
        (None, "others", -8),
        (None, "total", -3),
    ]


def test_both_releases_are_cited_and_warned_of(opened):
    before, after = opened(BEFORE), opened(AFTER)
    privacy = before.manifest.privacy.model_copy(update={"dp": Loss(epsilon=0.5, delta=3e-9)})
    changes = {"privacy": privacy, "warning": "drawn with a fixed seed"}
    before = replace(before, manifest=before.manifest.model_copy(update=changes))
    found = time(before, after, area_of_zones(after, ("x",)), of="origins")
    cited = found.cited(date(2026, 1, 2))
    assert f"From {citation(before)} (ε, δ)-differentially private, ε = 0.5, δ = 3e-09. To {citation(after)} " in cited
    assert cited.count("ε = 4, δ = 1e-06") == cited.count("Asked on 2026-01-02.") == 1
    assert found.warnings()[0] == f"NOT PRIVATE (release {before.id}): drawn with a fixed seed"
    assert sum("drawn from the public prior" in one for one in found.warnings()) == 2
    told = as_json(found, date(2026, 1, 2))
    assert (told["release"], told["compared_with"]["release"]) == (after.id, before.id)
    assert told["compared_with"]["epsilon"] == 0.5
    alone = area_profile(after, area_of_zones(after, ("x",)), end="work")
    assert "NOT PRIVATE" not in " ".join(alone.warnings())
    assert "compared_with" not in as_json(alone, date(2026, 1, 2))


def test_a_release_without_delta_is_cited_without(opened):
    release = opened(AFTER)
    privacy = release.manifest.privacy.model_copy(update={"dp": Loss(epsilon=4.0, delta=0.0)})
    release = replace(release, manifest=release.manifest.model_copy(update={"privacy": privacy}))
    cited = area_profile(release, area_of_zones(release, ("x",)), end="work").cited(date(2026, 1, 2))
    assert f"{citation(release)} ε-differentially private, ε = 4. Zones" in cited
    assert "δ" not in cited


def test_a_picture_speaks_of_a_change_not_of_workers(opened):
    before, after = opened(BEFORE), opened(AFTER)
    words = place(time(before, after, area_of_zones(after, ("x",)), of="origins"))
    assert words[-1] == "change in all: 25 workers"
    assert place(area_profile(after, area_of_zones(after, ("x",)), end="work"))[-1] == "167 workers in all"


def test_what_cannot_be_compared_is_refused(opened):
    before, after = opened(BEFORE), opened(AFTER)
    area = area_of_zones(after, ("x",))
    with pytest.raises(QueryError, match=r"of \(paired-areas\) must be one of inflow-outflow"):
        time(before, after, area, of="paired-areas")
    with pytest.raises(QueryError, match="top"):
        time(before, after, area, of="origins", top=0)


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
