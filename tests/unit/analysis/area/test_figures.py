"""Figures that cannot be anything but 0, and figures that add up to an exact one."""

from dataclasses import replace

import numpy as np
import pytest
from handmade import ELSEWHERE, World, Zone

from synthmap.analysis.area.distance import area_profile, distance_direction
from synthmap.analysis.area.figures import Figures, parts_of
from synthmap.analysis.area.inflow_outflow import inflow_outflow
from synthmap.analysis.area.paired_areas import paired_areas
from synthmap.analysis.area.ranked import destinations, origins
from synthmap.published.areas.area import Area, area_of_zones
from synthmap.published.table import units_of

ANALYSES = {
    "inflow-outflow": inflow_outflow,
    "profile of workers": lambda opened, area: area_profile(opened, area, end="work"),
    "profile of residents": lambda opened, area: area_profile(opened, area, end="home"),
    "directions of workers": lambda opened, area: distance_direction(opened, area, end="work"),
    "directions of residents": lambda opened, area: distance_direction(opened, area, end="home"),
    "origins": origins,
    "destinations": destinations,
    "from it to another": lambda opened, area: paired_areas(opened, area, area_of_zones(opened, ("a1",))),
    "from another to it": lambda opened, area: paired_areas(opened, area_of_zones(opened, ("a1",)), area),
}
WORLD = World(
    [Zone("x"), Zone("y"), Zone("z")],
    [("x", "y", (30, 9)), ("y", "y", (20, 1)), ("x", "z", (7, 2))],
    segments=("p", "q"),
    elsewhere=False,
)


def figures(error, prior=0.5):
    """Return figures of 10 workers with these errors."""
    error = np.array(error, float)
    return Figures(np.full(error.shape, 10), error, np.full(error.shape, prior))


@pytest.mark.parametrize("name", ANALYSES)
def test_an_area_without_zones_has_exactly_nobody(town, name):
    nowhere = Area("nowhere", "no zone", np.zeros(len(units_of(town, "zone")), np.bool_))
    found = ANALYSES[name](town, nowhere)
    about = [place for place, key in enumerate(found.keys) if key.get("figure") not in ("within_a", "within_b")]
    for one in (found.figures.take(about), *found.sums.values()):
        assert not one.workers.any()
        assert not one.error.any()
        assert not one.prior.any()


@pytest.mark.parametrize("name", ANALYSES)
def test_what_has_no_origin_raises_no_alarm(opened, name):
    """Elsewhere in a release without, or seen from where people live, and the others where all are listed."""
    release = opened(replace(WORLD, zones=[*WORLD.zones, Zone("a1")]))
    found = ANALYSES[name](release, area_of_zones(release, ("x", "y")))
    for place, key in enumerate(found.keys):
        if ELSEWHERE in (key.get("group"), key.get("direction")) or key.get("figure") == "in_commuters_from_elsewhere":
            assert not found.figures.workers[place].any()
            assert not found.figures.error[place].any()


def test_residents_are_not_from_elsewhere(town):
    area = area_of_zones(town, ("A",), "county")
    for analysis in (area_profile, distance_direction):
        assert not analysis(town, area, end="home").figures.error[-2].any()
        assert (analysis(town, area, end="work").figures.error[-2] > 0).all()


def test_where_all_origins_are_listed_the_others_are_exactly_none(opened):
    release = opened(WORLD)
    area = area_of_zones(release, ("y",))
    assert origins(release, area).figures.error[-2, 0] > 0  # nobody from z, as far as can be told
    release = opened(replace(WORLD, flows=[*WORLD.flows, ("z", "y", (4, 4))]))
    found = origins(release, area).figures
    assert found.error[-2].tolist() == found.prior[-2].tolist() == [0, 0, 0]
    assert (found.error[:3] > 0).all()


def test_one_origin_and_all_others_are_off_by_as_much_as_each_other(opened):
    release = opened(WORLD)
    found = origins(release, area_of_zones(release, ("y",)), top=1).figures
    assert found.error[-1, 0] == 0 < found.error[0, 0] == found.error[1, 0]


def test_parts_agree_with_the_whole():
    whole = figures([[0, 3]], prior=0.25)
    found = parts_of(figures([[4, 1], [5, 2]]), whole, [True, True])
    assert found.error.tolist() == [[5, 1], [5, 2]]
    found = parts_of(figures([[4, 1], [5, 2]]), whole, [True, False])
    assert found.error.tolist() == [[0, 3], [0, 0]]
    assert found.prior.tolist() == [[0.25, 0.25], [0, 0]]
    three = figures([[4, 1], [5, 2], [6, 3]])
    assert parts_of(three, whole, [True] * 3).error.tolist() == three.error.tolist()
    assert not parts_of(three, whole, [False] * 3).error.any()
