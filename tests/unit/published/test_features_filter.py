"""CQL2 filters over flows and zones, against plain Python over the rows."""

import json

import pytest
from handmade import World, Zone, open_world

from synthmap.errors import QueryError
from synthmap.published.features import Query, find, open_layer
from synthmap.published.features_parse import parse_filter

IDS = ["01", "001", "O'Brien", "Île de Ré", "東京", 'say "hi"', "50%", "a_b", "line\nbreak", "back\\slash", "(x.y)*[z]"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    zones = [Zone(name, ("west" if i < 5 else "East",), 2 + i / 10, 48.0) for i, name in enumerate(IDS)]
    flows = [(a, b, ((3 * i + j) % 7, j % 3)) for i, a in enumerate([*IDS, "elsewhere"]) for j, b in enumerate(IDS)]
    world = World(zones, flows, levels=("side",), segments=("A", "B"))
    return open_world(tmp_path_factory.mktemp("filter") / "world", world, group=20)


@pytest.fixture(scope="module")
def flows(opened):
    return open_layer(opened, "flows")


@pytest.fixture(scope="module")
def rows(flows):
    frame, _ = flows.read(find(flows, Query(), start=0, limit=10**6).rows, "OGC:CRS84")
    return frame.to_dicts()


def passing(layer, text, language="cql2-text", crs="OGC:CRS84"):
    tests = (json.dumps(parse_filter(text, language)),)
    return find(layer, Query(None, tests, crs), start=0, limit=10**6).rows.tolist()


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("count > 5", lambda r: r["count"] > 5),
        ("5 < count", lambda r: r["count"] > 5),
        ("count = 5.5", lambda r: False),
        ("count >= -1", lambda r: True),
        ("count <> 3 AND A <= B", lambda r: r["count"] != 3 and r["A"] <= r["B"]),
        ("origin = '01'", lambda r: r["origin"] == "01"),
        ("origin = 'O''Brien'", lambda r: r["origin"] == "O'Brien"),
        ("origin = 'say \"hi\"'", lambda r: r["origin"] == 'say "hi"'),
        ("origin = '東京' OR destination = '001'", lambda r: r["origin"] == "東京" or r["destination"] == "001"),
        ("origin = destination", lambda r: r["origin"] == r["destination"]),
        ("origin < destination", lambda r: r["origin"].encode() < r["destination"].encode()),
        ("origin_side = destination_side", lambda r: r["origin_side"] == r["destination_side"]),
        ("origin_side <> destination_side", lambda r: r["origin_side"] not in (None, r["destination_side"])),
        ("NOT origin_side = 'west'", lambda r: r["origin_side"] not in (None, "west")),
        ("origin_side IS NULL", lambda r: r["origin_side"] is None),
        ("origin_side IS NULL OR count > 5", lambda r: r["origin_side"] is None or r["count"] > 5),
        ("origin_side = 'west' OR count > 5", lambda r: r["origin_side"] == "west" or r["count"] > 5),
        ("NOT (origin_side = 'west' AND A > 5)", lambda r: r["origin_side"] not in (None, "west") or r["A"] <= 5),
        ("distance_km < 20", lambda r: r["distance_km"] is not None and r["distance_km"] < 20),
        ("origin IN ('01', '東京', 'none')", lambda r: r["origin"] in ("01", "東京")),
        ("count IN (1, 2)", lambda r: r["count"] in (1, 2)),
        ("count NOT IN (1, 2)", lambda r: r["count"] not in (1, 2)),
        ("count BETWEEN 2 AND 3", lambda r: 2 <= r["count"] <= 3),
        ("origin LIKE '0%'", lambda r: r["origin"].startswith("0")),
        ("origin LIKE '_1'", lambda r: len(r["origin"]) == 2 and r["origin"][1] == "1"),
        ("origin LIKE '50\\%'", lambda r: r["origin"] == "50%"),
        ("origin LIKE '%\\_%'", lambda r: "_" in r["origin"]),
        ("origin LIKE 'line%break'", lambda r: r["origin"] == "line\nbreak"),
        ("origin LIKE '(x.y)*[z]'", lambda r: r["origin"] == "(x.y)*[z]"),
        ("origin NOT LIKE '%1'", lambda r: not r["origin"].endswith("1")),
        ("CASEI(origin_side) = CASEI('EAST')", lambda r: r["origin_side"] == "East"),
        ("CASEI(origin) LIKE CASEI('Î%')", lambda r: r["origin"].startswith("Î")),
        ("true", lambda r: True),
        ("false OR count = 1", lambda r: r["count"] == 1),
        ("1 = 2", lambda r: False),
    ],
)  # fmt: skip
def test_a_filter_picks_what_it_says(flows, rows, text, test):
    assert passing(flows, text) == [place for place, row in enumerate(rows) if test(row)]


def test_text_and_json_mean_the_same(flows):
    tree = {"op": "and", "args": [{"op": ">", "args": [{"property": "count"}, 3]},
                                  {"op": "like", "args": [{"property": "origin"}, "0%"]}]}  # fmt: skip
    found = passing(flows, json.dumps(tree), "cql2-json")
    assert found == passing(flows, "count > 3 AND origin LIKE '0%'")
    assert found


@pytest.mark.parametrize(
    ("text", "crs", "zones"),
    [
        ("S_INTERSECTS(geometry, BBOX(2.05, 47, 2.25, 49))", "OGC:CRS84", {"001", "O'Brien"}),
        ("S_INTERSECTS(geometry, BBOX(47, 2.05, 49, 2.25))", "EPSG:4326", {"001", "O'Brien"}),
        ("S_INTERSECTS(geometry, POINT(2.1 48))", "OGC:CRS84", {"001"}),
        ("S_INTERSECTS(geometry, MULTIPOINT((2.1 48), (2.2 48)))", "OGC:CRS84", {"001", "O'Brien"}),
        ("S_INTERSECTS(geometry, LINESTRING(2.05 48, 2.15 48))", "OGC:CRS84", {"001"}),
        ("S_INTERSECTS(geometry, GEOMETRYCOLLECTION(POINT(2.1 48), POINT(9 9)))", "OGC:CRS84", {"001"}),
        ("S_INTERSECTS(POLYGON((2.05 47, 2.05 49, 2.15 48.5, 2.05 47)), geometry)", "OGC:CRS84", {"001"}),
        ("S_INTERSECTS(geometry, POLYGON((-1 -1, -1 -2, -2 -2, -1 -1)))", "OGC:CRS84", set()),
        ("NOT S_INTERSECTS(geometry, BBOX(0, 47, 2.85, 49))", "OGC:CRS84", {"back\\slash", "(x.y)*[z]", "elsewhere"}),
    ],
)
def test_zones_that_meet_a_geometry(opened, text, crs, zones):
    layer = open_layer(opened, "origins")
    frame, _ = layer.read(
        find(layer, Query(None, (json.dumps(parse_filter(text, "cql2-text")),), crs), start=0, limit=99).rows, crs
    )
    assert set(frame["zone"]) == zones


def test_flows_that_meet_a_polygon_but_not_only_its_box(flows, rows):
    """All zones lie on one line; the polygon's box covers it from 2.0 to 2.4, the polygon only from 2.3 on."""
    text = "S_INTERSECTS(geometry, POLYGON((2.0 47, 2.4 47, 2.4 49, 2.0 47)))"
    where = {name: 2 + i / 10 for i, name in enumerate(IDS)}
    ends = [(where.get(row["origin"]), where[row["destination"]]) for row in rows]
    # at latitude 48 the polygon reaches from 2.2 to 2.4
    wanted = [
        i for i, (a, b) in enumerate(ends) if a is not None and min(a, b) <= 2.4 + 1e-9 and max(a, b) >= 2.2 - 1e-9
    ]
    assert passing(flows, text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "count > '5'", "origin = 1", "origin = 01", "nothing = 1", "count", "origin", "'a'", "1", "count LIKE '1%'",
        "origin LIKE origin", "origin IN (1)", "origin IN (destination)", "CASEI(count) = 1", "count + 1 = 2",
        "-count = 1", "S_WITHIN(geometry, POINT(1 1))", "S_INTERSECTS(origin, POINT(1 1))",
        "S_INTERSECTS(geometry, 1)", "geometry IS NULL", "S_INTERSECTS(geometry, POLYGON((0 0, 1 1, 0 1, 1 0, 0 0)))",
        "S_INTERSECTS(geometry, POLYGON((0 0, 1 1)))", "S_INTERSECTS(geometry, BBOX(3, 0, 1))",
        "S_INTERSECTS(geometry, BBOX(0, 3, 1, 1))", "f(origin) = 1", "AND", "(", "", "origin = DATE('2020-01-01')",
        "count = 1; DROP TABLE x", "origin LIKE '" + "%" * 300 + "'", "count BETWEEN 1 AND 'b'",
        "origin = TIMESTAMP('2020-01-01T00:00:00Z')", "A_CONTAINS(origin, ('a','b'))",
        "S_INTERSECTS(geometry, POINT EMPTY)",
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(flows, text):
    with pytest.raises(QueryError):
        passing(flows, text)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "1", '"x"', "null", "{}", '{"op": "and", "args": []}', '{"op": "=", "args": [1]}',
        '{"op": "not", "args": "x"}', '{"op": "in", "args": [{"property": "origin"}, []]}',
        '{"op": "in", "args": [{"property": "origin"}, "x"]}',
        '{"op": "s_intersects", "args": [{"property": "geometry"}, {"bbox": [1]}]}',
        '{"op": "=", "args": [{"property": 1}, 1]}', '{"op": "between", "args": [{"property": "count"}, 1]}',
        '{"op": "like", "args": [{"property": "origin"}, null]}',
        '{"op": "s_intersects", "args": [{"property": "geometry"}, {"type": "Point", "coordinates": ["a", 1]}]}',
        '{"op": "not", "args": [' * 500 + "true" + "]}" * 500,
    ],
)  # fmt: skip
def test_json_that_is_no_filter_is_refused(flows, text):
    with pytest.raises(QueryError):
        passing(flows, text, "cql2-json")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 60, "(" * 60 + "true" + ")" * 60, "NOT " * 2000 + "true", "count = " + "-" * 7000 + "1",
        "1" + "-1" * 3000 + " = 1", "count" + " = 1" * 1900, "true" + " AND true" * 880, "(a=" * 60, "CASEI(" * 1300,
        "x" * 9000, "S_INTERSECTS(geometry," + "GEOMETRYCOLLECTION(" * 300,
    ],
)  # fmt: skip
def test_text_that_the_parser_would_not_survive_never_reaches_it(text):
    """Without the guard these keep cql2 busy for years, or end the process with a stack overflow."""
    with pytest.raises(QueryError):
        parse_filter(text, "cql2-text")


def test_long_but_flat_filters_are_taken(flows, rows):
    many = ", ".join(f"'{i:05}'" for i in range(800))
    assert passing(flows, f"origin IN ({many}, '01')") == [i for i, row in enumerate(rows) if row["origin"] == "01"]
    line = ", ".join(f"{-1 - i / 1000} -{i}.5" for i in range(400))
    assert passing(flows, f"S_INTERSECTS(geometry, LINESTRING({line}))") == []
    assert passing(flows, " OR ".join(["count = 1"] * 90)) == passing(flows, "count = 1")
