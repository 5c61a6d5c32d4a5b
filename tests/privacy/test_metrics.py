"""Published measurements: sensitivities by enumeration of neighbouring tables, and the law of their noise."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from publishedplan import published_plan
from scipy.stats import chi2

from synthmap.analysis.measured_classes import make_classes
from synthmap.analysis.table import ODTable
from synthmap.confidential.measurements import Measurement, measure
from synthmap.confidential.noisy import add_noise, scale_of
from synthmap.geography.canonical import canonical

CAP = 9_000  # metres: between the lengths below, so that it bites
FALSE_ALARM = 1e-9


@pytest.fixture(scope="module")
def zones():
    """Six zones at lengths of 0 to some 13,000 km from the first."""
    return canonical(
        ids=pa.array([f"{i}" for i in range(6)]),
        longitude=np.array([0.0, 0.05, 0.11, 0.3, 2.0, 120.0]),
        latitude=np.zeros(6),
        weight=np.ones(6, np.int64),
        levels=(),
        parents=(),
        vintage="1",
    )


def table_of(homes):
    """Return the table of workers whose homes are listed by destination (ranks 0, 3, 4)."""
    rows = [(origin, place) for place, listed in zip((0, 3, 4), homes, strict=True) for origin in listed]
    origin, destination = np.array(rows, np.int32).T
    return ODTable(origin, destination, np.ones(origin.size, np.int64))


@pytest.fixture(scope="module")
def classes(zones):
    return make_classes(published_plan([0, 3, 4], [2, 1, 1]), table_of([(1, 2), (3,), (0,)]), zones, CAP)


def moved(homes):
    """Yield the tables in which one worker of one destination lives elsewhere, in every zone or off the map (6)."""
    for place, listed in enumerate(homes):
        for i, home in itertools.product(range(len(listed)), range(7)):
            if home != listed[i]:
                changed = (*listed[:i], home, *listed[i + 1 :])
                yield (*homes[:place], changed, *homes[place + 1 :])


def largest_changes(classes):
    """Return the largest L1 change of each measurement over all pairs of neighbouring tables."""
    known = {}

    def vectors(homes):
        if homes not in known:
            known[homes] = [one.values for one in measure(table_of(homes), classes)]
        return known[homes]

    most = np.zeros(3, np.int64)
    for one, two, three, four in itertools.product(range(7), repeat=4):
        homes = ((one, two), (three,), (four,))
        if one > two:
            continue
        for other in moved(homes):
            pairs = zip(vectors(homes), vectors((tuple(sorted(other[0])), *other[1:])), strict=True)
            most = np.maximum(most, [np.abs(a - b).sum() for a, b in pairs])
    return most.tolist()


def test_no_neighbouring_table_changes_a_measurement_by_more_than_its_sensitivity(classes):
    stated = [one.sensitivity for one in measure(table_of([(0, 1), (2,), (3,)]), classes)]
    assert stated == [2, CAP, CAP]
    assert largest_changes(classes) == stated  # attained: no smaller one would do


def test_without_the_cap_the_sensitivity_would_be_exceeded(classes):
    """The control: lengths that are not cut off change sums by up to half way round the earth."""
    uncapped = replace(classes, cap_m=20_040_000)
    assert largest_changes(uncapped)[1] > CAP
    assert largest_changes(uncapped)[0] == 2


def losses(classes, sensitivities, epsilon):
    """Return the largest true ε of each measurement with noise for the stated sensitivities: L1 change over scale."""
    scales = [scale_of(one, epsilon) for one in sensitivities]
    return [change / scale for change, scale in zip(largest_changes(classes), scales, strict=True)]


def test_the_noise_keeps_the_stated_epsilon_and_half_the_sensitivity_would_not(classes):
    epsilon = Fraction(1, 3)
    assert max(losses(classes, (2, CAP, CAP), epsilon)) <= epsilon
    assert losses(classes, (2, CAP, CAP), epsilon) == pytest.approx([1 / 3] * 3)
    for halved in ((1, CAP, CAP), (2, CAP // 2, CAP), (2, CAP, CAP // 2)):
        assert max(losses(classes, halved, epsilon)) > 1.5 * epsilon


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_the_noise_has_the_law_that_the_proof_supposes(scale):
    """Pearson's test on the noise of one entry, false alarm 1e-9; another scale must be found out."""
    epsilon = Fraction(2) / Fraction(scale)
    values = add_noise(Measurement("x", np.full(40_000, 100, np.int64), 2), epsilon).values - 100

    def statistic(supposed):
        q = np.exp(-1.0 / supposed)
        edge = int(np.ceil(6 * supposed))
        inner = (1 - q) / (1 + q) * q ** np.abs(np.arange(-edge, edge + 1))
        tail = (1 - inner.sum()) / 2
        expected = values.size * np.array([tail, *inner, tail])
        seen = np.bincount(np.clip(values, -edge - 1, edge + 1) + edge + 1, minlength=expected.size)
        return ((seen - expected) ** 2 / expected).sum(), expected.size - 1

    found, freedom = statistic(scale)
    assert found < chi2.isf(FALSE_ALARM, freedom)
    wrong, freedom = statistic(1.15 * scale)
    assert wrong > chi2.isf(FALSE_ALARM, freedom)


def test_every_entry_gets_noise_of_its_own():
    values = add_noise(Measurement("x", np.zeros(200, np.int64), 2), Fraction(1, 1000)).values
    assert np.unique(values).size > 150
