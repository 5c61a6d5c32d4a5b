"""Workers of a cell are spread over its zones as evenly as whole numbers allow, each zone by its prior mass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthmap.geography.prior import NO_TABLE, PriorModel, mass_below, prior_from, rank_at
from synthmap.kernels.bounded import uniform_below
from synthmap.kernels.destination import _sort, cell_masses, coarsen, spread
from synthmap.kernels.stream import seeded_stream


@pytest.fixture(scope="module")
def seen(town):
    """Return (prior, bounds of 12 cells, masses below them) of a destination."""
    point = town.points(np.array([50]))[0]
    prior = prior_from(town.tree, PriorModel(4.0, 2.0, 0.1, 0.0, 5.0, NO_TABLE), point, 50)
    bounds = coarsen(town.tree, point, prior, -1, 12, 12)
    return prior, bounds, cell_masses(prior, town.tree.cumulative, bounds)


def spread_by(town, seen, keys, segments, seed=1):
    prior, bounds, masses = seen
    out, reader = np.sort(keys), np.zeros(1, np.int64)
    words = seeded_stream(seed).words(0, out.size + 64)
    spread(out, segments, bounds, masses, prior, town.tree.cumulative, words, reader)
    assert reader[0] > 0
    return out


@pytest.mark.parametrize("segments", [1, 3])
def test_every_worker_stays_in_its_cell_and_segment(town, seen, segments):
    _, bounds, _ = seen
    rng = np.random.default_rng(0)
    keys = np.sort(rng.integers(0, (bounds.size - 1) * segments, 500))
    out = spread_by(town, seen, keys, segments)
    cell = np.searchsorted(bounds, out // segments, side="right") - 1
    assert (cell * segments + out % segments).tolist() == keys.tolist()


@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("workers", [1, 2, 7, 1000, 100_000])
def test_no_zone_is_more_than_one_worker_of_a_segment_off_its_share(town, seen, workers, segments):
    prior, bounds, masses = seen
    zone_mass = np.diff([mass_below(prior, town.tree.cumulative, r) for r in range(len(town.zones) + 2)]).astype(float)
    for cell in range(bounds.size - 1):
        keys = cell * segments + np.repeat(np.arange(segments), workers)
        out = spread_by(town, seen, keys, segments, seed=cell)
        expected = workers * zone_mass / (masses[cell + 1] - masses[cell])
        inside = slice(int(bounds[cell]), int(bounds[cell + 1]))
        for segment in range(segments):
            found = np.bincount(out[out % segments == segment] // segments, minlength=zone_mass.size)
            assert (np.abs(found - expected)[inside] < 1 + 1e-9).all()
            assert (found[zone_mass == 0] == 0).all()


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_in_expectation_every_zone_gets_its_share_exactly(workers):
    """All offsets of a cell of 12 units, as the kernel computes units from them."""
    size = 12
    whole, rest = size // workers, size % workers
    found = np.zeros(size, np.int64)
    for offset in range(size):
        for j in range(workers):
            found[j * whole + (offset + j * rest) // workers] += 1
    assert found.tolist() == [workers] * size


def test_one_worker_is_drawn_by_mass(town, seen):
    prior, bounds, masses = seen
    cell = int(np.argmax(np.diff(bounds)))
    word = seeded_stream(3).words(0, 1)
    unit = uniform_below(word, np.zeros(1, np.int64), int(masses[cell + 1] - masses[cell]))
    rank = rank_at(prior, town.tree.cumulative, int(masses[cell] + unit))
    assert spread_by(town, seen, np.array([cell]), 1, seed=3).tolist() == [rank]


def test_a_worker_is_put_where_its_unit_lies_also_on_the_edge_of_a_piece(town, seen):
    prior, bounds, masses = seen
    for edge in prior.mass[:-1].tolist():
        for unit in (edge - 1, edge):
            cell = int(np.searchsorted(masses, unit, side="right")) - 1
            if cell < 0:
                continue
            size = int(masses[cell + 1] - masses[cell])
            word = -(-((unit - int(masses[cell])) << 64) // size) + 1  # one that is drawn as this unit
            out = np.array([cell])
            spread(out, 1, bounds, masses, prior, town.tree.cumulative, np.array([word], np.uint64), np.zeros(1, int))
            assert out[0] == rank_at(prior, town.tree.cumulative, unit)


def test_running_out_of_words_is_told(town, seen):
    prior, bounds, masses = seen
    reader = np.zeros(1, np.int64)
    spread(np.arange(3), 1, bounds, masses, prior, town.tree.cumulative, np.zeros(1, np.uint64), reader)
    assert reader[0] < 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 59), max_size=40), st.integers(60, 300))
def test_keys_are_sorted_whether_counted_or_compared(values, above):
    found = np.array(values, np.int64)
    _sort(found, above)
    assert found.tolist() == sorted(values)
