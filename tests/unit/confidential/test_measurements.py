"""What is measured, by hand; sensitivities are enumerated in tests/privacy/test_metrics.py."""

import pytest
from measuredworld import CAP, SYNTHETIC, classes, flows

from synthmap.analysis.measured_classes import BANDS
from synthmap.confidential.measurements import NAMES, measure

TRUE = flows((0, 0, 5), (4, 0, 3), (5, 0, 2), (3, 3, 2), (2, 3, 2))  # to 0: 0 m, and 5 times the cap; to 3: 0 and 18 km


def test_counts_and_errors_are_those_counted_by_hand():
    public = classes()
    counts, absolute, signed = measure(TRUE, public)
    assert tuple(one.name for one in (counts, absolute, signed)) == NAMES
    assert [one.sensitivity for one in (counts, absolute, signed)] == [2, CAP, CAP]
    bands = counts.values.reshape(public.densities, BANDS + 1)
    assert bands[public.density[0]].tolist() == [5, 0, 0, 0, 0, 3, 2]
    assert bands[public.density[1]].tolist() == [2, 0, 2, 0, 0, 0, 0]
    errors = signed.values.reshape(BANDS, public.densities)
    assert errors[0, public.density[0]] == pytest.approx(4 * 12_000 - 5 * CAP, abs=5)
    assert errors[3, public.density[1]] == pytest.approx(3 * 30_000 - 2 * 18_000, abs=5)
    assert absolute.values.tolist() == abs(signed.values).tolist()
    assert (signed.values != 0).sum() == 2


def test_the_release_against_itself_has_no_error():
    public = classes()
    counts, absolute, signed = measure(SYNTHETIC, public)
    assert counts.values.tolist() == public.synthetic_counts.ravel().tolist()
    assert not absolute.values.any()
    assert not signed.values.any()
