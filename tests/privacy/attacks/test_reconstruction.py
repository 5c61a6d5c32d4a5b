import numpy as np
import polars as pl
import pytest

from synthmap.audit.attacks.reconstruction import answers_from, ask, random_subsets, reconstruct
from synthmap.audit.attacks.tables import released
from synthmap.audit.worlds import SETTINGS, World, town_and_hamlet
from synthmap.kernels.stream import seeded_stream

TABLE = pl.DataFrame(
    {"origin": ["x", "y", "z", "x"], "destination": ["a", "a", "a", "b"], "count": [2, 3, 4, 1]},
)


def test_answers_are_sums_over_destinations_and_origins():
    answer = answers_from(TABLE, ["x", "y"])
    assert [answer(["a"]), answer(["b"]), answer(["a", "b"]), answer(["c"]), answer([])] == [5, 1, 6, 0, 0]


def test_half_of_the_destinations_are_in_a_subset():
    subsets = random_subsets(2_000, 30, seed=1)
    assert subsets.mean() == pytest.approx(0.5, abs=0.01)
    assert (np.corrcoef(subsets.T) - np.eye(30)).max() < 0.1


@pytest.fixture
def secret():
    """How many of 1 to 3 workers live in an area, at 60 destinations, and random subsets of them."""
    rng = np.random.default_rng(3)
    headcount = rng.integers(1, 4, 60)
    return rng.binomial(headcount, 0.5), headcount, random_subsets(240, 60, seed=4)


def test_exact_sums_tell_everything(secret):
    truth, headcount, subsets = secret
    assert (reconstruct(subsets[:80], subsets[:80] @ truth.astype(float), headcount) == truth).all()


def test_sums_that_are_off_by_little_tell_nearly_everything(secret):
    """What Dinur and Nissim found: errors well below √n do not help, whatever rounding or noise makes them."""
    truth, headcount, subsets = secret
    sums = subsets @ truth.astype(float)
    assert (reconstruct(subsets, np.round(sums / 5) * 5, headcount) == truth).mean() >= 0.95
    noise = np.random.default_rng(5).integers(-2, 3, len(sums))
    assert (reconstruct(subsets, sums + noise, headcount) == truth).mean() >= 0.95


def test_errors_of_the_size_of_the_sums_help(secret):
    truth, headcount, subsets = secret
    noise = np.random.default_rng(5).integers(-60, 61, len(subsets))
    found = reconstruct(subsets, subsets @ truth + noise.astype(float), headcount)
    assert (found == truth).mean() < 0.7
    assert ((found >= 0) & (found <= headcount)).all()


def test_a_release_gives_away_itself_and_no_more():
    """However many sums are asked for: they are functions of what was published."""
    region = town_and_hamlet()
    ids = region.zones.ids.to_pylist()
    places = tuple(range(1, 41))
    world = World("lone workers", region, places, (1,) * 40, SETTINGS)
    workplaces, homes = [ids[at] for at in places], [ids[at * 11 % 49] for at in range(40)]
    table = pl.DataFrame({"origin": homes, "destination": workplaces, "count": [1] * 40})
    release = released(world, seeded_stream(2))(table, 1)
    area = ids[:24]
    subsets = random_subsets(160, 40, seed=1)
    found = {
        name: reconstruct(subsets, ask(answers_from(one, area), workplaces, subsets), np.ones(40, np.int64))
        for name, one in (("table", table), ("release", release))
    }
    published = {row["destination"]: row["origin"] in area for row in release.iter_rows(named=True)}
    assert found["table"].tolist() == [home in area for home in homes]
    assert found["release"].tolist() == [published[one] for one in workplaces]
    assert 0.4 < (found["release"] == found["table"]).mean() < 0.9
