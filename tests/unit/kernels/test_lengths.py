"""Lengths of workers against plain Python."""

import math

import numpy as np
import pytest

from synthmap.geography.prior import finest_level
from synthmap.geography.sphere import EARTH_KM
from synthmap.kernels.lengths import PARTS, lengths_of


def km_between(a, b):
    """Haversines, which have nothing in common with what is tested."""
    (x, y), (u, v) = np.radians(a), np.radians(b)
    half = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(half))


def reference(town, destination, first_row, origin, workers, cap_km):
    sums = [[], []]
    for d, place in enumerate(destination):
        inside = elsewhere = 0
        for row in range(first_row[d], first_row[d + 1]):
            if origin[row] == len(town.zones):
                elsewhere += sum(workers[row])
                continue
            at = [(town.zones.longitude[zone], town.zones.latitude[zone]) for zone in (origin[row], place)]
            inside += sum(workers[row]) * math.floor(min(km_between(*at) / cap_km, 1) * PARTS + 0.5)
        sums[0].append(inside)
        sums[1].append(elsewhere)
    return sums


@pytest.fixture(scope="module")
def table(town):
    """(destination, first_row, origin, workers) with three segments; one destination has rows from elsewhere alone."""
    rng = np.random.default_rng(8)
    zones = len(town.zones)
    rows = [np.sort(rng.choice(zones + 1, size, replace=False)) for size in (30, 1, 200)]
    rows += [np.array([zones]), np.array([town.zones.longitude.argmax(), zones])]  # far from all others
    first_row = np.append(0, np.cumsum([row.size for row in rows]))
    origin = np.concatenate(rows).astype(np.int32)
    return np.array([3, 17, 200, 201, 399], np.int32), first_row, origin, rng.integers(0, 9, (origin.size, 3))


def found(town, table, cap_km):
    places = town.tree.level_centre[finest_level(town.tree)]
    return lengths_of(places, *table, cap_km)


@pytest.mark.parametrize("cap_km", [1.0, 40.0, 1e5])
def test_lengths_are_those_of_plain_python(town, table, cap_km):
    assert found(town, table, cap_km).tolist() == reference(town, *table, cap_km)


def test_elsewhere_is_counted_apart(town, table):
    inside, elsewhere = found(town, table, 40.0)
    _, first_row, origin, workers = table
    assert inside[3] == 0
    assert elsewhere[3] == workers[first_row[3]].sum()
    assert elsewhere.sum() == workers[origin == len(town.zones)].sum() > 0


def test_segments_are_added_up(town, table):
    *others, workers = table
    together = found(town, (*others, workers.sum(axis=1, keepdims=True)), 40.0)
    assert found(town, table, 40.0).tolist() == together.tolist()
    moved = np.roll(workers, 1, axis=1)
    assert found(town, (*others, moved), 40.0).tolist() == together.tolist()


def one_worker(town, origin, destination, cap_km):
    ones = np.ones((1, 1), np.int64)
    table = np.array([destination], np.int32), np.array([0, 1]), np.array([origin], np.int32), ones
    return int(found(town, table, cap_km)[0, 0])


def test_a_worker_counts_from_none_to_all_of_the_cap(town):
    lengths = [one_worker(town, origin, 50, 40.0) for origin in range(len(town.zones))]
    assert lengths[50] == 0
    assert max(lengths) == PARTS
    assert lengths[town.zones.longitude.argmax()] == PARTS  # some 1,000 km away


@pytest.mark.parametrize(
    ("parts", "wanted"), [(1.5 - 1e-6, 1), (1.5 + 1e-6, 2), (999.5 - 1e-6, 999), (999.5 + 1e-6, PARTS)]
)
def test_lengths_are_rounded_to_the_nearest_part(town, parts, wanted):
    at = [(town.zones.longitude[zone], town.zones.latitude[zone]) for zone in (7, 50)]
    assert one_worker(town, 7, 50, km_between(*at) * PARTS / parts) == wanted
