from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from synthmap.errors import GeographyError
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import build_tree


def test_children_halve_their_parent_s_range(town):
    tree = town.tree
    assert (tree.start[0], tree.stop[0]) == (0, len(town.zones))
    for node in range(tree.start.size):
        if tree.right[node] < 0:
            assert tree.stop[node] - tree.start[node] == 1
            continue
        left, right = node + 1, tree.right[node]
        assert tree.start[left] == tree.start[node] < tree.stop[left] == tree.start[right] < tree.stop[right]
        assert tree.stop[right] == tree.stop[node]


def test_every_parent_is_a_range_and_nodes_split_at_the_coarsest_level_first(town):
    tree = town.tree
    for level, starts in zip(town.zones.parents, tree.level_start, strict=False):
        names = level.to_pylist()
        assert len(starts) - 1 == len(set(names))
        assert all(len(set(names[a:b])) == 1 for a, b in pairwise(starts))
    counties = set(tree.level_start[0].tolist())
    for node in np.flatnonzero(tree.right >= 0):
        inside = counties & set(range(tree.start[node] + 1, tree.stop[node]))
        assert not inside or tree.stop[node + 1] in counties


def test_no_zone_is_farther_than_the_radius_and_spread_is_its_mean_square(town):
    tree, zones = town.tree, town.zones
    points = town.points(np.arange(len(zones)))
    for node in range(0, tree.start.size, 7):
        inside = slice(tree.start[node], tree.stop[node])
        km = np.array([great_circle_km(tree.centre[node], p) for p in points[inside]])
        assert km.max() <= tree.radius[node] + 1e-6
        if km.max() < 200:
            assert np.average(km**2, weights=zones.weight[inside] + 1) == pytest.approx(
                tree.spread[node], rel=1e-3, abs=1e-6
            )


def test_depth_is_logarithmic_even_with_one_heavy_zone(make_town):
    zones = make_town(zones=3000, counties=1, tracts=1).zones
    heavy = replace(zones, weight=np.where(np.arange(3000) == 0, 10**9, 1))
    tree = build_tree(heavy)
    depth = np.zeros(tree.start.size, int)
    for node in range(tree.start.size):
        if tree.right[node] >= 0:
            depth[node + 1] = depth[tree.right[node]] = depth[node] + 1
    assert depth.max() < 40


@pytest.mark.parametrize("weight", [0, 2**39])
def test_total_weight_out_of_range_is_refused(town, weight):
    zones = replace(town.zones, weight=np.full(len(town.zones), weight))
    with pytest.raises(GeographyError, match="the sum of zone weights"):
        build_tree(zones)


def test_a_single_zone_is_a_tree(make_town):
    tree = make_town(zones=2, counties=1, tracts=1).tree
    assert tree.start.tolist() == [0, 0, 1]
