"""Inflow and outflow against counts by hand and against plain Python."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from handmade import ELSEWHERE, World, Zone, open_world
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.analysis.area.inflow_outflow import LABELS, inflow_outflow
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones


def test_a_county_counted_by_hand(town, rows):
    found = inflow_outflow(town, area_of_zones(town, ("A",), "county"))
    assert rows(found, "figure") == [
        ("employed", 29, 15, 14),
        ("living", 21, 14, 7),
        ("live_and_work", 14, 7, 7),
        ("in_commuters", 15, 8, 7),
        ("in_commuters_from_elsewhere", 1, 1, 0),
        ("out_commuters", 7, 7, 0),
        ("net_inflow", 8, 1, 7),
    ]


def test_an_area_where_nobody_works_has_only_residents(town, rows):
    found = inflow_outflow(town, area_of_zones(town, ("c1",)))
    assert [row[:2] for row in rows(found, "figure")] == list(zip(LABELS, (0, 12, 0, 0, 0, 12, -12), strict=True))
    assert found.figures.error[0, 0] == 0


def test_the_number_employed_is_exact_and_its_segments_are_not(town):
    found = inflow_outflow(town, area_of_zones(town, ("A",), "county"))
    assert found.frame()["trust"][0] == "exact"
    assert found.figures.error[0, 0] == 0
    assert (found.figures.error[0, 1:] > 0).all()
    assert (found.figures.error[1:] > 0).all()


def test_all_zones_together_have_no_outflow(town, rows):
    found = inflow_outflow(town, area_of_zones(town, ("A", "B", "C"), "county"))
    assert [row[1] for row in rows(found, "figure")] == [56, 46, 46, 10, 10, 0, 10]


def test_an_area_of_another_release_is_refused(town, opened):
    other = opened(World([Zone("x"), Zone("y")], [("x", "y", (1,))]))
    with pytest.raises(QueryError, match="of the release that is analysed"):
        inflow_outflow(town, area_of_zones(other, ("x",)))


def test_a_release_without_elsewhere(opened, rows):
    release = opened(World([Zone("x"), Zone("y")], [("x", "y", (3,)), ("y", "y", (2,))], elsewhere=False))
    found = inflow_outflow(release, area_of_zones(release, ("y",)))
    assert [row[1] for row in rows(found, "figure")] == [5, 2, 2, 3, 0, 0, 3]


def errors_of(found):
    """Return the expected errors of all workers by figure."""
    return dict(zip(LABELS, found.figures.error[:, 0].tolist(), strict=True))


def test_nobody_can_come_from_elsewhere_where_the_release_has_none(opened):
    """An estimate of 0 would be told as noise."""
    flows = [("x", "y", (30, 9)), ("y", "y", (20, 1)), ("y", "x", (7, 2))]
    release = opened(World([Zone("x"), Zone("y")], flows, segments=("p", "q"), elsewhere=False))
    found = inflow_outflow(release, area_of_zones(release, ("y",)))
    assert found.figures.error[4].tolist() == found.figures.prior[4].tolist() == [0, 0, 0]
    assert found.frame()["trust"].to_list()[4] == "exact"
    assert (np.delete(found.figures.error, [0, 4], axis=0) > 0).all()


@pytest.mark.parametrize("area", [("A",), ("B",), ("A", "B")])
def test_what_some_of_the_employed_are_too_many_the_others_are_too_few(town, area):
    """Employed, exact, are those who live there and those who come in."""
    found = inflow_outflow(town, area_of_zones(town, area, "county"))
    errors = errors_of(found)
    assert errors["employed"] == 0
    assert errors["live_and_work"] == errors["in_commuters"] > 0
    assert (found.figures.error[0, 1:] > 0).all()


def test_of_all_zones_together_the_errors_are_those_of_elsewhere(town):
    errors = errors_of(inflow_outflow(town, area_of_zones(town, ("A", "B", "C"), "county")))
    assert errors.pop("employed") == errors.pop("out_commuters") == 0
    assert len(set(errors.values())) == 1
    assert min(errors.values()) > 0


def test_all_zones_are_exact_where_there_is_no_elsewhere(opened):
    release = opened(World([Zone("x"), Zone("y")], [("x", "y", (3,)), ("y", "y", (2,))], elsewhere=False))
    found = inflow_outflow(release, area_of_zones(release, ("x", "y")))
    assert found.figures.workers[:, 0].tolist() == [5, 5, 5, 0, 0, 0, 0]
    assert not found.figures.error[:, 0].any()


NAMES = ["01", "001", "O'Brien", "東京", "<b>", "zz", "e", "f"]


@st.composite
def cases(draw):
    ids = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    ends = st.tuples(st.sampled_from([*ids, ELSEWHERE]), st.sampled_from(ids))
    flows = [
        (*pair, (draw(st.integers(0, 300)), draw(st.integers(1, 70_000))))
        for pair in draw(st.lists(ends, min_size=1, max_size=30, unique=True))
    ]
    some = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
    return World([Zone(one) for one in ids], flows, segments=("a", "b")), some


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_it_adds_up_and_agrees_with_plain_python(case):
    world, some = case
    with tempfile.TemporaryDirectory() as directory:
        release = open_world(Path(directory) / "r", world, group=4, memory=2**20)
        found = inflow_outflow(release, area_of_zones(release, tuple(some)))
    rows = {key["figure"]: workers for key, workers in zip(found.keys, found.figures.workers, strict=True)}

    def count(wanted):
        parts = [part for o, d, part in world.flows if wanted(o in some, d in some, o)]
        return [sum(map(sum, parts)), *(sum(part[i] for part in parts) for i in range(2))]

    assert rows["employed"].tolist() == count(lambda home, work, o: work)
    assert rows["living"].tolist() == count(lambda home, work, o: home)
    assert rows["live_and_work"].tolist() == count(lambda home, work, o: home and work)
    assert rows["in_commuters_from_elsewhere"].tolist() == count(lambda home, work, o: work and o == ELSEWHERE)
    assert (rows["employed"] == rows["live_and_work"] + rows["in_commuters"]).all()
    assert (rows["living"] == rows["live_and_work"] + rows["out_commuters"]).all()
    assert (rows["net_inflow"] == rows["in_commuters"] - rows["out_commuters"]).all()
    assert all((workers[0] == workers[1:].sum()) for workers in rows.values())
    assert (found.figures.error >= 0).all()
    assert np.isfinite(found.figures.error).all()
