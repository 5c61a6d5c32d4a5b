"""Published figures: made of noisy whole numbers, with intervals that reach as far as the noise."""

import numpy as np
import pytest
from measuredworld import CAP, classes

from synthmap.analysis.measured_classes import BANDS
from synthmap.analysis.measured_report import NoisyVector, average_errors, band_shares, density_classes
from synthmap.privacy.noise import half_width
from synthmap.published.expected import LENGTH_EDGES_KM

PUBLIC = classes()
COUNTS = NoisyVector(np.arange(PUBLIC.densities * (BANDS + 1)), 2.0)
ZERO = NoisyVector(np.zeros(BANDS * PUBLIC.densities, np.int64), 10.0)


def test_density_classes_without_destinations_are_left_out():
    found = density_classes(PUBLIC)
    assert sum(one.destinations for one in found) == 2
    assert sum(one.workers for one in found) == 14
    assert all(one.destinations for one in found)


def test_shares_of_all_are_sums_over_densities_and_reach_as_far():
    found = [one for one in band_shares(PUBLIC, COUNTS, 0.9, elsewhere=True) if one.density == "all"]
    assert [(one.km_from, one.origin) for one in found] == [
        *((km, None) for km in LENGTH_EDGES_KM[:-1]),
        (None, "elsewhere"),
    ]
    noisy = COUNTS.values.reshape(PUBLIC.densities, BANDS + 1)
    t = half_width(2.0, PUBLIC.densities, 0.9)
    for band, one in enumerate(found):
        total, synthetic = noisy[:, band].sum(), PUBLIC.synthetic_counts[:, band].sum()
        assert one.synthetic_workers == synthetic
        assert (one.workers.value, one.workers.low, one.workers.high) == (total, max(0, total - t), total + t)
        assert one.share_error.value == pytest.approx((synthetic - total) / 14, rel=1e-5)
        assert one.share_error.high - one.share_error.low == pytest.approx(2 * t / 14, rel=1e-4)


def test_without_elsewhere_there_is_no_such_band():
    assert all(one.origin is None for one in band_shares(PUBLIC, COUNTS, 0.9, elsewhere=False))


def test_averages_come_by_density_and_by_length_and_leave_out_classes_of_noise_alone():
    signed = NoisyVector(np.full(ZERO.values.size, 1000), 10.0)
    found = average_errors(PUBLIC, ZERO, signed, 0.9)
    whole = next(one for one in found if (one.density, one.km_from) == ("all", None))
    assert (whole.destinations, whole.workers) == (2, 14)
    assert whole.mean_error_km.value == pytest.approx(2 * 1000 / 14 / 1000, rel=1e-5)  # two classes have destinations
    t = half_width(10.0, 2, 0.9)
    assert whole.mean_absolute_error_km.low == 0
    assert whole.mean_absolute_error_km.high == pytest.approx(t / 14 / 1000, rel=1e-4)
    assert [one.km_from for one in found if one.density == "all"] == [None, 0.0, 20.0]
    assert all(one.destinations > 0 for one in found)


def test_ends_of_intervals_are_rounded_outwards():
    third = NoisyVector(np.full(ZERO.values.size, 1), 1 / 3)
    for one in average_errors(PUBLIC, ZERO, third, 0.9):
        t = half_width(1 / 3, 1 if one.destinations == 1 else 2, 0.9)
        total = 1 if one.destinations == 1 else 2
        assert one.mean_error_km.low <= (total - t) / one.workers / 1000
        assert one.mean_error_km.high >= (total + t) / one.workers / 1000


def test_no_share_of_a_count_is_below_nothing():
    low = NoisyVector(np.full(COUNTS.values.size, -CAP), 2.0)
    assert {one.workers.value for one in band_shares(PUBLIC, low, 0.9, elsewhere=True)} == {0}
