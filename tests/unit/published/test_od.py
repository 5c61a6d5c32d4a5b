"""OD queries against the same question put to plain Python, on worlds of all kinds."""

import math
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import pytest
from handmade import ELSEWHERE, World, Zone, open_world
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.errors import QueryError, ReleaseCorruptError
from synthmap.published import sums
from synthmap.published.boxes import make_box
from synthmap.published.od import Kind, Query, find_flows
from synthmap.published.places import ZONE

LEVELS = ("state", "county")
NAMES = ["01", "001", "1", "a", "O'Brien", "Île", "東京", "<b>", "a/b", "zz", "𝒳", "\x00", "=1+1", "e", "f"]
LEVEL = st.sampled_from([*LEVELS, ZONE])


@st.composite
def worlds(draw) -> World:
    """Zones in counties in states, not in the order of their ids, with a few flows between them."""
    ids = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    parents = [("s" + str(i % 2), f"{i % 2}{i % 3}") for i in range(3 * 2)]
    degrees = st.integers(-3, 3)
    zones = [
        Zone(i, draw(st.sampled_from(parents)), draw(degrees), draw(degrees), draw(st.integers(0, 3))) for i in ids
    ]
    elsewhere = draw(st.booleans())
    ends = st.tuples(st.sampled_from([*ids, ELSEWHERE] if elsewhere else ids), st.sampled_from(ids))
    pairs = draw(st.lists(ends, min_size=1, max_size=40, unique=True))
    counts = st.tuples(st.sampled_from([0, 1, 2, 300, 70_000]), st.sampled_from([1, 2, 3, 5_000_000_000]))
    flows = [(*pair, draw(counts)) for pair in pairs]
    return World(zones, flows, LEVELS, ("young", "old"), elsewhere)


@st.composite
def questions(draw, world: World) -> Query:
    """Return a query that fits a world."""
    levels = draw(LEVEL), draw(LEVEL)
    some = [draw(st.lists(st.sampled_from(sorted(units(world, level))), max_size=2, unique=True)) for level in levels]
    box = None
    if draw(st.booleans()):
        west, south, width, height = draw(st.tuples(*[st.integers(-3, 2)] * 2, *[st.integers(0, 4)] * 2))
        box = make_box((west - 0.5, south - 0.5, west + width, south + height), "OGC:CRS84")
    return Query(
        *levels,
        tuple(some[0]),
        tuple(some[1]),
        draw(st.sampled_from([1, 2, 4, 301, 2**40])),
        draw(st.sampled_from([None, 1, 3, 1000])),
        box,
        draw(st.sampled_from(["origin", "destination", "both"])),
        draw(st.sampled_from([None, *get_args(Kind)])),
    )


def unit_of(world: World, level: str) -> dict[str, str]:
    """Return the unit of every zone at a level."""
    of = {z.id: z.id if level == ZONE else z.parents[LEVELS.index(level)] for z in world.zones}
    return of | ({ELSEWHERE: ELSEWHERE} if world.elsewhere else {})


def units(world: World, level: str) -> set[str]:
    return set(unit_of(world, level).values())


def summed(world: World, origin_level: str, destination_level: str) -> dict[tuple[str, str], list[int]]:
    """Return the sums of count and segments by destination and origin."""
    of, to = unit_of(world, origin_level), unit_of(world, destination_level)
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in world.rows:
        pair = to[row["destination"]], of[row["origin"]]
        sums[pair] = [a + b for a, b in zip(sums[pair], [row["count"], row["young"], row["old"]], strict=True)]
    return sums


def kind_of(query: Query, origin: str, destination: str) -> Kind:
    """Return what a flow of an answer is."""
    if origin == ELSEWHERE:
        return "elsewhere"
    return "within" if query.origin_level == query.destination_level and origin == destination else "between"


def in_plain_python(world: World, query: Query, points) -> tuple[list[tuple], dict[Kind, int] | None]:
    """Return the whole answer to a query, and the sums by kind where the largest are asked for."""
    out = []
    for (destination, origin), values in summed(world, query.origin_level, query.destination_level).items():
        inside = {"origin": points["origin", origin], "destination": points["destination", destination]}
        ends = ("origin", "destination") if query.box_end == "both" else (query.box_end,)
        if (
            values[0] >= query.min_count
            and (not query.origins or origin in query.origins)
            and (not query.destinations or destination in query.destinations)
            and (query.box is None or all(_inside(inside[end], query.box.bounds) for end in ends))
        ):
            out.append((origin, destination, *values))
    out.sort(key=lambda row: (row[1].encode(), row[0].encode()))
    workers = dict.fromkeys(get_args(Kind), 0)
    for origin, destination, count, *_ in out:
        workers[kind_of(query, origin, destination)] += count
    if query.kind is not None:
        out = [row for row in out if kind_of(query, *row[:2]) == query.kind]
    if query.top is not None:
        out.sort(key=lambda row: -row[2])
    return out[: query.top], None if query.top is None else workers


def _inside(point: tuple[float, float], bounds: tuple[float, ...]) -> bool:
    west, south, east, north = bounds
    return west <= point[0] <= east and south <= point[1] <= north


def pages(opened, query, limit):
    """Return all rows of an answer, page by page, their points, and the sums that every page tells."""
    rows, points, told, after = [], {}, [], None
    while True:
        page = find_flows(opened, query, limit=limit, after=after)
        assert page.rows.height <= limit
        rows += page.rows.rows()
        told.append(page.sums)
        for end, where in (("origin", page.origins), ("destination", page.destinations)):
            points |= {(end, name): tuple(p) for name, p in zip(page.rows[end], where.tolist(), strict=True)}
        if page.next is None:
            assert all(one == told[0] for one in told)
            return rows, points, told[0]
        assert page.rows.height == limit
        after = page.next


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_answer_is_that_of_plain_python_whatever_the_page(data):
    world = data.draw(worlds())
    query = data.draw(questions(world))
    limit = data.draw(st.sampled_from([1, 2, 7, 1000]))
    sizes = {"part": data.draw(st.sampled_from([1, 5, 1000])), "group": data.draw(st.sampled_from([1, 3, 1000]))}
    turns = {
        "ROWS": data.draw(st.sampled_from([1, 5, sums.ROWS])),
        "DENSE": data.draw(st.sampled_from([0, sums.DENSE])),
    }
    with tempfile.TemporaryDirectory() as directory, patch.multiple(sums, **turns):
        opened = open_world(Path(directory) / "r", world, **sizes, memory=data.draw(st.sampled_from([0, 5000, 2**20])))
        _, points, _ = pages(opened, Query(query.origin_level, query.destination_level), 1000)
        found, _, told = pages(opened, query, limit)
        assert (found, told) == in_plain_python(world, query, points)


@pytest.fixture
def make(tmp_path):
    """Return a function that opens a world."""
    return lambda world, **sizes: open_world(tmp_path / "release", world, **sizes)


COUNTIES = World(
    [
        Zone("b", ("x", "xa"), 1, 1, 3),
        Zone("a", ("y", "ya"), 2, 1, 1),
        Zone("c", ("x", "xa"), 3, 1, 1),
        Zone("f", ("x", "xb"), 4, 5, 0),
    ],
    [("a", "b", (2, 1)), ("b", "b", (5, 0)), ("c", "a", (0, 4)), (ELSEWHERE, "c", (1, 1)), ("f", "f", (9, 9))],
    LEVELS,
    ("young", "old"),
)


@pytest.mark.parametrize("origin", [*LEVELS, ZONE])
@pytest.mark.parametrize("destination", [*LEVELS, ZONE])
def test_every_level_sums_to_the_invariants(make, origin, destination):
    rows, *_ = pages(make(COUNTIES), Query(origin, destination), 1)
    assert sum(row[2] for row in rows) == 32
    assert all(row[2] == row[3] + row[4] for row in rows)


def test_everywhere_else_stays_a_unit_of_its_own_and_lies_in_no_box(make):
    opened = make(COUNTIES)
    rows, points, _ = pages(opened, Query("state", "state"), 1000)
    assert (ELSEWHERE, "x", 2, 1, 1) in rows
    assert all(map(math.isnan, points["origin", ELSEWHERE]))
    world = make_box((-180, -90, 180, 90), "OGC:CRS84")
    rows, *_ = pages(opened, Query("state", "state", box=world, box_end="origin"), 1000)
    assert ELSEWHERE not in {row[0] for row in rows}


def test_a_destination_without_workers_is_an_empty_answer(make):
    world = replace(COUNTIES, zones=[*COUNTIES.zones, Zone("g", ("x", "xb"))])
    opened = make(world)
    assert find_flows(opened, Query(destinations=("g",)), limit=10).rows.height == 0
    page = find_flows(opened, Query(destinations=("g",), top=5), limit=10)
    assert page.next is None
    assert page.rows.columns == ["origin", "destination", "count", "young", "old"]


def test_unknown_ids_are_named_up_to_ten(make):
    opened = make(COUNTIES)
    wrong = tuple(f"z{i:02}" for i in range(12))
    with pytest.raises(QueryError, match=r"destination \('z00', .*'z09', …\).*level zone.*leading zeros"):
        find_flows(opened, Query(destinations=wrong), limit=1)
    with pytest.raises(QueryError, match=r"origin \('a'\) must be an id at level state"):
        find_flows(opened, Query("state", "state", origins=("a",)), limit=1)
    with pytest.raises(QueryError, match=r"level \(continent\)"):
        find_flows(opened, Query("continent"), limit=1)


def test_without_everywhere_else_its_name_is_unknown(make):
    opened = make(World([Zone("a")], [("a", "a", (1,))], elsewhere=False))
    with pytest.raises(QueryError, match="elsewhere"):
        find_flows(opened, Query(origins=(ELSEWHERE,)), limit=1)


def test_the_middle_of_a_unit_is_found_across_the_antimeridian(make):
    zones = [Zone("a", ("s", "c"), 179.0, 0.0, 9), Zone("b", ("s", "c"), -179.0, 0.0, 9)]
    opened = make(World(zones, [("a", "b", (1, 1))], LEVELS, ("young", "old"), elsewhere=False))
    page = find_flows(opened, Query("county", "county"), limit=1)
    assert abs(page.origins[0, 0]) == pytest.approx(180)


def test_a_parent_called_elsewhere_is_refused_where_it_would_be_mistaken(make):
    world = World([Zone("a", (ELSEWHERE,))], [("a", "a", (1,))], ("state",))
    with pytest.raises(ReleaseCorruptError, match="elsewhere"):
        find_flows(make(world), Query("state", "state"), limit=1)


@pytest.mark.parametrize(
    "rows",
    [
        [("b", "b"), ("a", "a")],  # not in the order of destinations
        [("a", "a"), ("q", "b")],  # no such origin
        [("a", "a"), (None, "b")],
    ],
)
def test_a_table_that_breaks_its_rules_is_corrupt_not_a_fault_of_the_service(tmp_path, rows):
    world = World([Zone("a"), Zone("b")], [("a", "a", (1,))])
    object.__setattr__(world, "rows", [{"origin": o, "destination": d, "count": 1} for o, d in rows])
    opened = open_world(tmp_path / "release", world)
    with pytest.raises(ReleaseCorruptError, match="release"):
        find_flows(opened, Query(), limit=10)


def test_what_was_damaged_after_opening_is_found_out_whether_or_not_it_can_be_read(tmp_path):
    flows = [(f"z{i:03}", f"z{j:03}", (i + 1,)) for i in range(40) for j in range(40)]
    world = World([Zone(f"z{i:03}") for i in range(40)], flows)
    whole = open_world(tmp_path / "whole", world).file("od/part-00000.parquet").read_bytes()
    for number, place in enumerate(range(4, len(whole), max(1, len(whole) // 25))):
        opened = open_world(tmp_path / str(number), world)
        part = opened.file("od/part-00000.parquet")
        part.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(ReleaseCorruptError, match="part-00000"):
            find_flows(opened, Query(), limit=10)


def test_bytes_that_went_bad_unnoticed_are_never_a_fault_of_the_service(tmp_path, monkeypatch):
    """Whatever byte of a page flips while time and size stay: an answer or ReleaseCorruptError, nothing else."""
    flows = [(f"z{i:03}", f"z{j:03}", (i + 1,)) for i in range(40) for j in range(40)]
    world = World([Zone(f"z{i:03}") for i in range(40)], flows)
    opened = open_world(tmp_path / "r", world)
    part = opened.file("od/part-00000.parquet")
    whole = part.read_bytes()
    monkeypatch.setattr("synthmap.published.store.OpenedRelease.file", lambda self, name: self.directory / name)
    answers = 0
    for place in range(0, len(whole), max(1, len(whole) // 200)):
        part.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        damaged = replace(opened, etag=str(place))
        try:
            answers += find_flows(damaged, Query(ZONE, ZONE, top=5), limit=10).rows.height
        except ReleaseCorruptError:
            continue
    assert answers < 5 * 200


def test_a_part_that_is_taken_away_and_put_back_is_read_again(make):
    opened = make(COUNTIES)
    part = opened.directory / "od" / "part-00000.parquet"
    whole = part.read_bytes()
    part.unlink()
    with pytest.raises(ReleaseCorruptError):
        find_flows(opened, Query(), limit=10)
    part.write_bytes(whole)
    assert find_flows(opened, Query(), limit=10).rows.height == 5
