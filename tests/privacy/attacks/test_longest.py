import polars as pl
import pytest

from synthmap.audit.attacks.longest import farthest_homes

PLACES = pl.DataFrame(
    {
        "id": ["a", "b", "c", "d", "elsewhere"],
        "longitude": [0.0, 1.0, -1.0, 3.0, None],
        "latitude": [0.0, 0.0, 0.0, 0.0, None],
    }
)
TABLES = pl.DataFrame(
    [
        (0, "b", "a", 7),
        (0, "d", "a", 1),
        (0, "d", "b", 1),
        (1, "c", "a", 1),
        (1, "b", "a", 1),
        (1, "d", "a", 0),
        (2, "elsewhere", "a", 4),
        (2, "a", "a", 4),
        (3, "d", "b", 4),
    ],
    schema=["draw", "origin", "destination", "count"],
    orient="row",
)


def test_the_farthest_origin_and_its_distance():
    found = farthest_homes(TABLES, PLACES, destination="a")
    assert found["draw"].to_list() == [0, 1, 2]
    assert found["origin"].to_list() == ["d", "b", "a"]
    assert found["km"].to_list() == pytest.approx([3 * 111.195, 111.195, 0], abs=0.01)


def test_a_single_table_is_draw_0():
    table = TABLES.filter(pl.col("draw") == 3).drop("draw")
    assert farthest_homes(table, PLACES, destination="b")["origin"].to_list() == ["d"]


def test_an_unknown_destination_is_refused():
    with pytest.raises(ValueError, match=r"destination \(x\) must be one of the places"):
        farthest_homes(TABLES, PLACES, destination="x")
