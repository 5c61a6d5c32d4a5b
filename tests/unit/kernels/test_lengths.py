"""Lengths of workers against plain Python, and the noise of sums against its exact law."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from synthmap.geography.prior import finest_level
from synthmap.geography.sphere import EARTH_KM
from synthmap.kernels.lengths import PARTS, lengths_of, noise_of_sums
from synthmap.kernels.noise import NOISE_UNITS
from synthmap.kernels.stream import draw_all, seeded_stream

FALSE_ALARM = 1e-9


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


def noise(units, number, stream, budget=64):
    """Draw `number` noises as a release does."""
    out = np.empty(number, np.int64)
    numbers = np.arange(number, dtype=np.uint64)
    draw_all(stream, numbers, np.full(number, budget), partial(noise_of_sums, units), out)
    return out


def agrees(found, q):
    """Whether draws agree with two-sided geometric noise of ratio q; outcomes are joined until 20 are expected."""
    most = int(np.abs(found).max()) + 1
    z = np.arange(-most, most + 1)
    expected = (1 - q) / (1 + q) * q ** np.abs(z) * found.size
    groups = np.minimum(np.cumsum(expected) // 20, expected.sum() // 20 - 1).astype(int)
    seen, wanted = np.bincount(groups, np.bincount(found + most, minlength=z.size)), np.bincount(groups, expected)
    kept = wanted > 0
    return stats.chisquare(seen[kept], wanted[kept] * seen.sum() / wanted.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("units", [2**26, 2**30, 2**31 - 2**27])
def test_the_noise_of_a_sum_has_the_law_that_is_charged(units):
    drawn = noise(units, 40_000, seeded_stream(units))
    q = units / (NOISE_UNITS - units)
    assert agrees(drawn, q)
    assert not agrees(drawn, q**1.5)  # what would cost half as much again


def test_sums_have_noise_of_their_own():
    drawn = noise(2**31 - 2**27, 20_000, seeded_stream(2)).reshape(-1, 2)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06
    assert len(np.unique(drawn)) > 50


@pytest.mark.parametrize("budget", [2, 4, 1000])
def test_running_out_of_words_draws_the_same_again(budget):
    """Else long noise would have another law than short."""
    units, stream = 2**31 - 2**21, seeded_stream(3)
    drawn = noise(units, 200, stream, budget)
    assert drawn.tolist() == noise(units, 200, stream, 100_000).tolist()
    assert np.abs(drawn).max() > 1000


def test_a_sum_that_ran_out_of_words_stays_as_it_was_and_others_are_drawn():
    words = np.full(8, 0, np.uint64)  # a first word of zeros is a positive noise, which goes on for ever
    words[6] = np.uint64(2**64 - 1)  # no noise
    out, status = np.array([5, 5, 5]), np.array([1, 1, 0], np.int8)
    noise_of_sums(2**30, np.array([0, 6, 7, 8]), words, out, status)
    assert out.tolist() == [5, 0, 5]
    assert status.tolist() == [1, 0, 0]
