"""Distances and directions against places where they are known."""

import numpy as np
import polars as pl
import pytest
from handmade import World, Zone

from synthmap.analysis.area.bands import SECTORS, Bands, Compass
from synthmap.analysis.area.distance import area_profile, distance_direction
from synthmap.errors import QueryError
from synthmap.published.areas.area import area_of_zones

DEGREE_KM = 6371.0088 * np.pi / 180
AROUND = {
    "N": (0, 1),
    "NE": (1, 1),
    "E": (1, 0),
    "SE": (1, -1),
    "S": (0, -1),
    "SW": (-1, -1),
    "W": (-1, 0),
    "NW": (-1, 1),
}


def rose(longitude, latitude):
    """A zone with eight others around it, one in each sector, each with as many workers as its place in `SECTORS`."""
    stretch = 1 / np.cos(np.radians(latitude))
    zones = [Zone("middle", (), longitude, latitude)]
    for name, (x, y) in AROUND.items():
        east = (longitude + 0.1 * x * stretch + 180) % 360 - 180
        zones.append(Zone(name, (), east, latitude + 0.1 * y))
    flows = [(name, "middle", (at + 1,)) for at, name in enumerate(SECTORS)]
    flows += [("middle", name, (10 * (at + 1),)) for at, name in enumerate(SECTORS)]
    return World(zones, [*flows, ("middle", "middle", (7,)), ("elsewhere", "middle", (5,))])


def by_direction(found):
    out = {}
    for key, workers in zip(found.keys, found.figures.workers[:, 0].tolist(), strict=True):
        out[key["direction"]] = out.get(key["direction"], 0) + workers
    return out


def eastward(found):
    figures = zip(found.keys, found.figures.workers[:, 0].tolist(), strict=True)
    return [workers for key, workers in figures if key["direction"] == "E"]


@pytest.mark.parametrize("place", [(10, 50), (180, 0), (-180, -40), (179.95, 20), (0, 0), (33, 88), (-20, -89)])
def test_each_direction_is_seen_from_the_areas_end(opened, place):
    release = opened(rose(*place))
    area = area_of_zones(release, ("middle",))
    came = by_direction(distance_direction(release, area, end="work"))
    assert came == {name: at + 1 for at, name in enumerate(SECTORS)} | {"same_zone": 7, "elsewhere": 5, "all": 48}
    went = by_direction(distance_direction(release, area, end="home"))
    assert went == {name: 10 * (at + 1) for at, name in enumerate(SECTORS)} | {
        "same_zone": 7,
        "elsewhere": 0,
        "all": 367,
    }


def test_the_pole_itself_has_directions_that_do_no_harm(opened):
    release = opened(
        World([Zone("pole", (), 0, 90), Zone("x", (), 90, 89)], [("x", "pole", (3,)), ("pole", "x", (2,))])
    )
    found = distance_direction(release, area_of_zones(release, ("pole",)), end="work")
    assert found.figures.workers[-1, 0] == 3
    back = distance_direction(release, area_of_zones(release, ("x",)), end="work")
    assert by_direction(back)["N"] == 2


def test_bands_are_from_one_end_to_below_the_next(opened):
    zones = [Zone("0", (), 0, 0), *(Zone(str(d), (), d, 0) for d in (1, 2, 3))]
    release = opened(World(zones, [(str(d), "0", (10**d,)) for d in (1, 2, 3)]))
    area = area_of_zones(release, ("0",))
    ends = (DEGREE_KM * 1.0, DEGREE_KM * 2.5)
    found = distance_direction(release, area, end="work", bands=Bands(ends, "km"))
    assert eastward(found) in ([0, 110, 1000], [10, 100, 1000])  # at the end itself rounding decides
    miles = Bands((DEGREE_KM * 1.5 / 1.609344,), "mi")
    found = distance_direction(release, area, end="work", bands=miles)
    assert [w for key, w in zip(found.keys, found.figures.workers[:, 0], strict=True) if key["direction"] == "E"] == [
        10,
        1100,
    ]


def test_the_bands_of_onthemap_are_the_usual_ones(town):
    found = distance_direction(town, area_of_zones(town, ("a1",)), end="work")
    assert found.parameters == {"end": "work", "units": "mi", "bands": [10.0, 25.0, 50.0]}
    assert [(key["from"], key["to"]) for key in found.keys[:4]] == [(0, 10), (10, 25), (25, 50), (50, None)]
    assert len(found.keys) == 8 * 4 + 3


def test_a_profile_counted_by_hand(town, rows):
    area = area_of_zones(town, ("A",), "county")
    work = area_profile(town, area, end="work")
    assert rows(work, "group", "to") == [
        ("distance", 10.0, 18, 9, 9),  # a1-a1, a2-a1, b1-a1 (14 km), a1-a2
        ("distance", 25.0, 0, 0, 0),
        ("distance", 50.0, 0, 0, 0),
        ("distance", None, 10, 5, 5),  # c1, 222 km away
        ("same_zone", None, 5, 4, 1),
        ("elsewhere", None, 1, 1, 0),
        ("total", None, 29, 15, 14),
    ]
    home = area_profile(town, area, end="home")
    assert rows(home, "group")[-1] == ("total", 21, 14, 7)
    assert rows(home, "group")[0] == ("distance", 21, 14, 7)  # a1 to b1, 14.3 km, is 8.9 miles
    assert work.figures.error[-1, 0] == 0 < home.figures.error[-1, 0]


def test_shares_are_of_the_total_and_of_nothing_where_it_is_0(town):
    found = area_profile(town, area_of_zones(town, ("A",), "county"), end="work")
    assert [key["share"] for key in found.keys][-4:] == [10 / 29, 5 / 29, 1 / 29, 1.0]
    empty = area_profile(town, area_of_zones(town, ("c1",)), end="work")
    assert {key["share"] for key in empty.keys} == {None}
    assert (empty.figures.workers == 0).all()


@pytest.mark.parametrize("ends", [(), (10, 10), (25, 10), (0, 5), (-1,), (float("nan"),), (float("inf"),), (20_000,)])
def test_bands_that_do_not_rise_are_refused(ends):
    with pytest.raises(QueryError, match="bands must be"):
        Bands(ends, "mi")


def test_other_units_and_ends_are_refused(town):
    with pytest.raises(QueryError, match=r"units \(leagues\) must be"):
        Bands((1.0,), "leagues")
    with pytest.raises(QueryError, match=r"end \(both\) must be home or work"):
        distance_direction(town, area_of_zones(town, ("a1",)), end="both")


def test_the_compass_turns_at_the_edges_of_its_sectors(opened):
    angles = np.arange(0, 360, 5.0)
    zones = [Zone("m", (), 0, 0)]
    zones += [Zone(f"{a:03.0f}", (), 0.01 * np.sin(np.radians(a)), 0.01 * np.cos(np.radians(a))) for a in angles]
    release = opened(World(zones, [("m", "m", (1,))], elsewhere=False))
    middle = int(release.places.ids.search_sorted("m"))
    codes = release.places.ids.search_sorted(pl.Series([f"{a:03.0f}" for a in angles])).to_numpy()
    found = Compass(release).sector(np.full(angles.size, middle), codes)
    assert found.tolist() == [int(((a + 22.5) % 360) // 45) for a in angles]
