"""Classes and lengths of a measurement: public, whole metres, cut off at the cap."""

import numpy as np
import pytest
from measuredworld import CAP, KM, SYNTHETIC, classes, flows, plan, zones

from synthmap.analysis.measured_classes import BANDS, look_up, make_classes
from synthmap.errors import ConfigurationError


def test_lengths_are_whole_metres_up_to_the_cap_and_elsewhere_has_it():
    table = flows(*((origin, 0, 1) for origin in range(6)))
    row, band, metres = look_up(table, plan(), zones(), CAP)
    assert row.tolist() == [0] * 6
    assert band.tolist() == [0, 0, 2, 3, 5, BANDS]
    assert metres.dtype == np.int64
    assert metres.tolist() == pytest.approx([min(1000 * km, CAP) for km in KM] + [CAP], abs=1)
    assert metres.max() == CAP


def test_destinations_are_classed_by_the_release_s_own_average_and_by_density():
    found = classes()
    assert found.synthetic_m.tolist() == pytest.approx([4 * 12_000, 3 * 30_000], abs=4)
    assert found.length.tolist() == [0, 3]  # averages of 4.8 and 22.5 km
    assert found.density[0] > found.density[1]
    assert found.synthetic_counts.sum() == 14
    assert found.synthetic_counts[found.density[0], [0, 2]].tolist() == [6, 4]
    assert found.synthetic_counts[found.density[1], [0, 3]].tolist() == [1, 3]


def test_a_release_of_another_size_than_its_table_is_refused():
    with pytest.raises(ConfigurationError, match="must be the headcount at every destination"):
        make_classes(plan(size=(9, 4)), SYNTHETIC, zones(), CAP)


def test_sums_that_would_not_be_exact_are_refused():
    with pytest.raises(ConfigurationError, match="sums would not be exact"):
        make_classes(plan(headcount=(2**40, 4)), SYNTHETIC, zones(), CAP)
