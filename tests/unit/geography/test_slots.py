import numpy as np
import pyarrow as pa
import pytest

from synthmap.geography.canonical import canonical
from synthmap.geography.distance_cells import split_by_distance
from synthmap.geography.prior import NO_TABLE, PriorModel, prior_from
from synthmap.geography.region import make_region, open_region, write_region


@pytest.mark.parametrize("levels", [0, 1, 4, 9])
def test_any_number_of_levels_survives_its_files(tmp_path, levels):
    ids = pa.array([f"{i:02}" for i in range(20)])
    parents = tuple(pa.array([f"{level}-{i // (20 - 2 * level)}" for i in range(20)]) for level in [0] * levels)
    region = make_region(
        canonical(
            ids=ids,
            longitude=np.arange(20) / 10,
            latitude=np.zeros(20),
            weight=np.ones(20, np.int64),
            levels=tuple(f"level {i}" for i in range(levels)),
            parents=parents,
            vintage="v",
        )
    )
    write_region(region, tmp_path)
    back = open_region(tmp_path)
    assert back.zones.levels == region.zones.levels
    assert back.tree.nodes.dtype == region.tree.nodes.dtype
    assert back.tree.nodes.tobytes() == region.tree.nodes.tobytes()
    for name in ("level_start", "level_centre", "level_spread"):
        for here, there in zip(getattr(region.tree, name), getattr(back.tree, name), strict=True):
            assert np.array_equal(here, there)
    point = region.points(np.array([0]))[0]
    prior = prior_from(back.tree, PriorModel(4.0, 2.0, 0.0, 0.0, 5.0, NO_TABLE), point, 0)
    boundaries = split_by_distance(back.tree, prior, point, levels, 20)
    assert boundaries.size == 19


def test_one_compilation_serves_regions_of_different_depth(make_town):
    before = len(prior_from.overloads)
    for levels in ((), ("county",), ("county", "tract")):
        zones = make_town().zones
        shallow = make_region(type(zones)(**{**vars(zones), "levels": levels, "parents": zones.parents[: len(levels)]}))
        prior_from(shallow.tree, PriorModel(4.0, 2.0, 0.0, 0.0, 5.0, NO_TABLE), shallow.points(np.array([0]))[0], 0)
    assert len(prior_from.overloads) <= before + 1
