from dataclasses import replace

import polars as pl
import pytest

from synthmap.audit.attacks.tables import keys, places, released, unprotected
from synthmap.audit.broken import SIZE_FROM_THE_DATA
from synthmap.audit.worlds import SETTINGS, World, town_and_hamlet
from synthmap.geography.zones import ELSEWHERE
from synthmap.kernels.stream import seeded_stream

REGION = town_and_hamlet()
IDS = REGION.zones.ids.to_pylist()
WORLD = World("town", REGION, (IDS.index("09"), IDS.index("20")), (4, 2), SETTINGS)
TABLE = pl.DataFrame(
    [("48", "09", 1), ("00", "09", 3), (ELSEWHERE, "20", 1), ("20", "20", 1)],
    schema=["origin", "destination", "count"],
    orient="row",
)


def test_flows_become_the_keys_of_a_world_and_counts_of_a_release():
    found = keys(WORLD, TABLE)
    assert found == (tuple(sorted([IDS.index("00")] * 3 + [IDS.index("48")])), (IDS.index("20"), len(IDS)))
    counts = WORLD.counts(found, 1)
    assert counts.workers.sum() == 6


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (("01", "09", 1), "as many as its headcount"),
        (("99", "09", 0), "between zones of the world"),
        (("01", "10", 0), "between zones of the world"),
    ],
)
def test_a_table_that_is_none_of_the_world_is_refused(row, match):
    more = pl.DataFrame([row], schema=TABLE.schema, orient="row")
    with pytest.raises(ValueError, match=match):
        keys(WORLD, pl.concat([TABLE, more]))


def test_without_protection_every_draw_is_the_table():
    found = unprotected(TABLE, 3)
    for number in range(3):
        assert found.filter(pl.col("draw") == number).drop("draw").equals(TABLE)


def test_a_release_has_the_headcounts_and_every_draw_its_own_randomness():
    draw = released(WORLD, seeded_stream(1))
    first, again = draw(TABLE, 50), draw(TABLE, 50)
    for found in (first, again):
        totals = found.group_by("draw", "destination").agg(pl.col("count").sum())
        assert sorted(totals.select("destination", "count").rows()) == [("09", 4)] * 50 + [("20", 2)] * 50
    assert not first.equals(again)
    apart = {tuple(map(tuple, part.drop("draw").iter_rows())) for _, part in first.group_by("draw")}
    assert len(apart) > 40
    assert first.equals(released(WORLD, seeded_stream(1))(TABLE, 50))


def test_the_mechanism_that_is_asked_for_draws():
    found = released(WORLD, seeded_stream(1), SIZE_FROM_THE_DATA)(TABLE, 5)
    assert found.group_by("draw").agg(pl.col("count").sum())["count"].to_list() == [4] * 5


def test_segments_are_refused():
    world = replace(WORLD, settings=replace(SETTINGS, segments=2))
    with pytest.raises(ValueError, match=r"settings.segments \(2\) must be 1"):
        released(world, seeded_stream(1))


def test_places_are_those_of_the_zones():
    found = places(WORLD)
    assert found["id"].to_list() == IDS
    assert found.filter(pl.col("id") == "48")["longitude"].item() == pytest.approx(0.9)
