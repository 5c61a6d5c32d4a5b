import polars as pl

from synthmap.audit.attacks.linkage import linked_share, linked_workplaces, lone_homes

ROWS = ["draw", "origin", "destination", "count"]
TABLES = pl.DataFrame(
    [
        (0, "r", "a", 1),
        (0, "s", "a", 5),
        (1, "r", "a", 1),
        (1, "r", "b", 1),
        (2, "s", "b", 9),
        (3, "r", "a", 1),
        (3, "r", "b", 3),
        (4, "r", "b", 0),
    ],
    schema=ROWS,
    orient="row",
)


def test_the_largest_flow_from_a_zone_names_a_workplace_and_ties_name_none():
    assert linked_workplaces(TABLES, origin="r").rows() == [(0, "a"), (3, "b")]
    assert linked_workplaces(TABLES, origin="nowhere").height == 0


def test_a_single_table_is_draw_0():
    table = TABLES.filter(pl.col("draw") == 0).drop("draw")
    assert linked_workplaces(table, origin="r").rows() == [(0, "a")]


def test_lone_residents_are_found_over_all_destinations():
    table = pl.DataFrame({"origin": ["r", "s", "s", "t"], "destination": ["a", "a", "b", "b"], "count": [1, 1, 1, 2]})
    assert lone_homes(table) == ["r"]


def test_the_share_of_right_links():
    truth = pl.DataFrame({"origin": ["r", "s", "t"], "destination": ["a", "b", "b"], "count": [1, 1, 1]})
    published = pl.DataFrame({"origin": ["r", "s", "s"], "destination": ["a", "a", "b"], "count": [2, 1, 1]})
    assert linked_share(truth, truth, lone_homes(truth)) == 1
    assert linked_share(published, truth, lone_homes(truth)) == 1 / 3
