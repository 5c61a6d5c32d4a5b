import numpy as np
import pyarrow as pa
import pytest

from synthmap.errors import GeographyError, UnknownZoneError
from synthmap.geography.canonical import canonical, hilbert
from synthmap.geography.zones import Zones, difference

SIDE = 32


def zones(ids, *, longitude=None, latitude=None, weight=None, **parents) -> Zones:
    count = len(ids)
    return canonical(
        ids=pa.array(ids, pa.string()),
        longitude=np.linspace(-5.0, 5.0, count) if longitude is None else np.array(longitude, float),
        latitude=np.full(count, 45.0) if latitude is None else np.array(latitude, float),
        weight=np.ones(count, np.int64) if weight is None else np.array(weight),
        levels=tuple(parents),
        parents=tuple(pa.array(names, pa.string()) for names in parents.values()),
        vintage="2020",
    )


def grid(column: int, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An aligned block of the curve's own cells, from the cell (column, row) × SIDE."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(SIDE), np.arange(SIDE)))
    longitude = (x + column * SIDE + 0.5) * 360 / 2**24 - 180
    latitude = (y + row * SIDE + 0.5) * 180 / 2**24 - 90
    return x, y, hilbert(longitude, latitude)


@pytest.mark.parametrize(("column", "row"), [(0, 0), (5, 9), (2**18, 2**18 - 1), (2**19 - 1, 2**19 - 1)])
def test_consecutive_hilbert_indices_are_neighbouring_cells(column, row):
    x, y, index = grid(column, row)
    order = np.argsort(index)
    assert (np.diff(index[order]) == 1).all()
    assert (np.abs(np.diff(x[order])) + np.abs(np.diff(y[order])) == 1).all()


def test_hilbert_starts_and_ends_on_the_southern_edge():
    assert hilbert(np.array([-180.0]), np.array([-90.0]))[0] == 0
    assert hilbert(np.array([180.0]), np.array([-90.0]))[0] == 4**24 - 1


def test_hilbert_joins_the_four_quadrants():
    half = 1e-6
    around = hilbert(np.array([-half, -half, half, half]), np.array([-half, half, half, -half]))
    assert (np.diff(around // 4**23) == 1).all()


def test_every_parent_is_one_range_of_ranks():
    rng = np.random.default_rng(5)
    fine = rng.integers(0, 60, 900)
    made = zones(
        [f"{i:03}" for i in rng.permutation(900)],
        longitude=rng.uniform(-5, 5, 900),
        latitude=rng.uniform(40, 50, 900),
        weight=rng.integers(0, 9, 900),
        coarse=[f"c{i // 7}" for i in fine],
        fine=[f"f{i}" for i in fine],
    )
    for names in made.parents:
        starts = 1 + sum(a != b for a, b in zip(names.to_pylist(), names.to_pylist()[1:], strict=False))
        assert starts == len(set(names.to_pylist()))


def test_order_does_not_depend_on_that_of_the_input():
    rng = np.random.default_rng(6)
    x, y, w = rng.uniform(-5, 5, 300), rng.uniform(40, 50, 300), rng.integers(0, 9, 300)
    x[::3], y[::3] = x[0], y[0]  # ties
    ids, parents = np.array([f"z{i}" for i in range(300)]), np.array([f"p{i % 11}" for i in range(300)])
    for _ in range(5):
        mixed = rng.permutation(300)
        made = zones(ids[mixed], longitude=x[mixed], latitude=y[mixed], weight=w[mixed], p=parents[mixed])
        expected = zones(ids, longitude=x, latitude=y, weight=w, p=parents)
        assert made.ids.equals(expected.ids)
        assert made.parents[0].equals(expected.parents[0])
        assert (made.weight == expected.weight).all()


def test_neighbours_of_one_parent_lie_next_to_each_other():
    made = zones(["a", "b", "c", "d"], longitude=[0.1, 3, 0.2, 3.1], latitude=[1, 1, 1, 1])
    assert {frozenset(made.ids.to_pylist()[:2]), frozenset(made.ids.to_pylist()[2:])} == {
        frozenset("ac"),
        frozenset("bd"),
    }


def test_ranks_name_the_unknown_and_hint_at_lost_zeros():
    made = zones(["01", "02"])
    assert made.ranks(pa.array(["02"]), table="t", column="o").tolist() == [made.ids.to_pylist().index("02")]
    with pytest.raises(UnknownZoneError, match=r"t: .* column o .* 1 distinct id is not: '2'; .*zero"):
        made.ranks(pa.array(["2", "2", "01"]), table="t", column="o")
    assert made.find(pa.array(["01", None, "x"])).tolist()[1:] == [-1, -1]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"ids": []}, "only a header"),
        ({"ids": ["a", ""]}, "must have an id"),
        ({"ids": ["a", None]}, "must have an id"),
        ({"ids": ["a", "b", "a"]}, "unique; 1 occur more than once: 'a'"),
        ({"ids": ["a", "elsewhere"]}, "another word"),
        ({"ids": ["a", "b"], "longitude": [0, np.nan]}, "1 zones have none or others: 'b'"),
        ({"ids": ["a", "b"], "latitude": [91, 0]}, "none or others: 'a'"),
        ({"ids": ["a", "b"], "longitude": [np.inf, 0]}, "none or others: 'a'"),
        ({"ids": ["a", "b"], "weight": [1, -1]}, "at least 0; not so for 'b'"),
        ({"ids": ["a", "b"], "county": ["c", None]}, "parent at level county; missing for 'b'"),
        ({"ids": ["a", "b"], "county": ["", "c"]}, "parent at level county; missing for 'a'"),
        ({"ids": ["a", "b"], "county": ["elsewhere", "c"]}, "no county may be called elsewhere"),
    ],
)
def test_faults_name_the_rule_and_the_zones(fault, message):
    with pytest.raises(GeographyError, match=message):
        zones(**fault)


def test_a_parent_in_two_coarser_parents_is_refused():
    with pytest.raises(GeographyError, match="every fine must lie in one coarse; 1 lie in several: 'f'"):
        zones(["a", "b", "c"], coarse=["x", "y", "y"], fine=["f", "f", "g"])


def test_the_same_code_at_two_levels_is_no_fault():
    assert len(zones(["a", "b"], coarse=["1", "2"], fine=["1", "2"])) == 2


def test_ids_are_found_whatever_their_order_script_and_gaps():
    ids = ["z2", "z10", "é", "e", "路", "z", "Z", "elsewhere2", "0042"]
    made = zones(ids)
    asked = pa.array(["路", None, "z10", "nowhere", "", "é", "z10", "zz", "0042", "42", "Z"], pa.string())
    found = made.find(asked)
    assert found.dtype == np.int32
    expected = [made.ids.to_pylist().index(i) if i in ids else -1 for i in asked.to_pylist()]
    assert found.tolist() == expected
    assert made.find(pa.array([], pa.string())).size == 0
    assert made.find(pa.array([None, None], pa.string())).tolist() == [-1, -1]
    assert made.ids.take(pa.array(made.by_id)).to_pylist() == sorted(ids)


CHANGED = {
    "ids": {"ids": ["a", "b", "d"]},
    "ids of more": {"ids": ["a", "b", "c", "d"], "county": ["x", "x", "y", "y"]},
    "levels (tract)": {"county": None, "tract": ["x", "x", "y"]},
    "levels (none)": {"county": None},
    "parents at level county, at 1 of 3 zones": {"county": ["x", "y", "y"]},
    "weights, at 1 of 3 zones": {"weight": [1, 1, 2]},
    "points, at 3 of 3 zones": {"latitude": [45.0 + 1e-6] * 3},
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_differs_between_two_editions_is_named(what):
    usual = {"ids": ["a", "b", "c"], "county": ["x", "x", "y"]}
    changed = {name: value for name, value in (usual | CHANGED[what]).items() if value is not None}
    assert difference(zones(**usual), zones(**changed)) == what.removesuffix(" of more")


def test_rounding_and_the_order_of_rows_are_no_difference():
    one = zones(["a", "b", "c"], longitude=[1, 2, 3], weight=[1, 2, 3], county=["x", "x", "y"])
    other = zones(["c", "b", "a"], longitude=[3, 2 + 1e-12, 1], weight=[3, 2, 1], county=["y", "x", "x"])
    assert difference(one, other) == difference(other, one) == ""
