from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from synthmap.errors import GeographyError
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import NODE, build_tree


def firsts(nodes):
    """Return the first rank of each node."""
    first = np.zeros(nodes.size, int)
    for at, node in enumerate(nodes):
        if node["right"] >= 0:
            first[at + 1], first[node["right"]] = first[at], nodes[at + 1]["stop"]
    return first


def test_children_halve_their_parent_s_range(town):
    nodes, below = town.tree.nodes, town.tree.cumulative
    first = firsts(nodes)
    assert (first[0], nodes["stop"][0]) == (0, len(town.zones))
    assert nodes["weight_below_stop"].tolist() == below[nodes["stop"]].tolist()
    for at, node in enumerate(nodes):
        if node["right"] < 0:
            assert node["stop"] - first[at] == 1
            continue
        left, right = nodes[at + 1], nodes[node["right"]]
        assert first[at] < left["stop"] < right["stop"] == node["stop"]


def test_a_node_is_one_line_of_the_cache(town):
    assert NODE.itemsize == 64
    assert town.tree.nodes.dtype == NODE


def test_every_parent_is_a_range_and_nodes_split_at_the_coarsest_level_first(town):
    tree = town.tree
    for level, starts in zip(town.zones.parents, tree.level_start, strict=False):
        names = level.to_pylist()
        assert len(starts) - 1 == len(set(names))
        assert all(len(set(names[a:b])) == 1 for a, b in pairwise(starts))
    counties, first = set(tree.level_start[0].tolist()), firsts(tree.nodes)
    for at in np.flatnonzero(tree.nodes["right"] >= 0):
        inside = counties & set(range(first[at] + 1, tree.nodes["stop"][at]))
        assert not inside or tree.nodes["stop"][at + 1] in counties


def test_no_zone_is_farther_than_the_radius_and_spread_is_its_mean_square(town):
    zones, below = town.zones, town.tree.cumulative
    points = town.points(np.arange(len(zones)))
    for node, first in list(zip(town.tree.nodes, firsts(town.tree.nodes), strict=True))[::7]:
        inside = slice(first, node["stop"])
        km = np.array([great_circle_km(node["centre"], p) for p in points[inside]])
        assert km.max() <= node["radius"] + 1e-6
        assert node["bulk"] == pytest.approx(node["spread"] * float(below[node["stop"]] - below[first]) ** 2)
        if km.max() < 200:
            assert np.average(km**2, weights=zones.weight[inside] + 1) == pytest.approx(
                node["spread"], rel=1e-3, abs=1e-6
            )


def test_depth_is_logarithmic_even_with_one_heavy_zone(make_town):
    zones = make_town(zones=3000, counties=1, tracts=1).zones
    heavy = replace(zones, weight=np.where(np.arange(3000) == 0, 10**9, 1))
    nodes = build_tree(heavy).nodes
    depth = np.zeros(nodes.size, int)
    for at, right in enumerate(nodes["right"]):
        if right >= 0:
            depth[at + 1] = depth[right] = depth[at] + 1
    assert depth.max() < 40


@pytest.mark.parametrize("weight", [0, 2**39])
def test_total_weight_out_of_range_is_refused(town, weight):
    zones = replace(town.zones, weight=np.full(len(town.zones), weight))
    with pytest.raises(GeographyError, match="the sum of zone weights"):
        build_tree(zones)


def test_a_single_zone_is_a_tree(make_town):
    tree = make_town(zones=2, counties=1, tracts=1).tree
    assert tree.nodes["stop"].tolist() == [2, 1, 2]


def test_more_levels_than_trees_are_deep_for_are_refused(town):
    levels = tuple(f"l{i}" for i in range(21))
    parents = (town.zones.parents[0],) * 21
    with pytest.raises(GeographyError, match=r"zones.levels \(21 of them\) must be at most 20"):
        build_tree(replace(town.zones, levels=levels, parents=parents))
