"""Classes of destinations, noisy sums of neighbours, the decay fitted to them, and what is left for a table."""

import math
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plansettings import plan_settings

from synthmap.errors import PrivacyParameterError
from synthmap.geography.canonical import canonical
from synthmap.geography.prior import NO_TABLE, PriorModel, class_at, prior_from, rank_at
from synthmap.geography.region import make_region
from synthmap.kernels.geometric import noise_of_sum
from synthmap.kernels.lengths import PARTS
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.chosen import plan_destinations
from synthmap.mechanism.lengths import (
    MOST_CLASSES,
    _capped_km,
    class_of_each,
    fit_decay,
    length_classes,
    length_sums,
    noisy_sums,
    with_decay,
)
from synthmap.mechanism.plan import table_epsilon
from synthmap.mechanism.table import Counts
from synthmap.spec import PriorSpec, PrivacySpec, Spec, TableSpec, ZonesSpec

PUBLIC = PriorModel(4.0, 2.0, 0.1, 0.0, 5.0, NO_TABLE)


@pytest.fixture(scope="module")
def places(town):
    return np.arange(0, 400, 4, dtype=np.int32)


def classes_of(town, places, headcount, epsilon=0.1):
    """Return the classes, which destination is of which, and the public headcount of each."""
    headcount = np.asarray(headcount, np.int64)
    classes = length_classes(town, PUBLIC, places, headcount, epsilon)
    model = PUBLIC._replace(edges_km=classes.edges_km)
    of = np.array([class_at(town.tree, model, point) for point in town.points(places)])
    return classes, of, np.bincount(of, headcount, classes.public_km.size).astype(np.int64)


def told(classes):
    values = (getattr(classes, field.name) for field in fields(classes))
    return [
        [one.tolist() for one in value] if isinstance(value, list) else np.asarray(value).tolist() for value in values
    ]


@pytest.mark.parametrize("largest", [1, 30, 3000])
def test_classes_hold_about_equally_many_workers(town, places, largest):
    rng = np.random.default_rng(largest)
    headcount = rng.integers(1, largest + 1, places.size) * 1000
    classes, of, workers = classes_of(town, places, headcount)
    assert classes.public_km.size == MOST_CLASSES == classes.edges_km.size + 1 == len(classes.sample)
    assert of.max() == MOST_CLASSES - 1
    even = headcount.sum() / MOST_CLASSES
    assert np.abs(workers - even).max() <= headcount.max() + 0.02 * headcount.sum()
    assert (np.diff(classes.edges_km) > 0).all()
    assert all((of[np.searchsorted(places, ranks)] == one).all() for one, ranks in enumerate(classes.sample))


def test_sums_of_parts_add_up_to_those_of_the_whole(tables):
    """Who of a class works where does not matter, nor how destinations are split; workers are the public ones."""
    zones = len(tables.town.zones)
    origins = np.random.default_rng(1).integers(0, zones + 1, (tables.places.size, 20))
    whole = tables.exact(origins)
    parts = [tables.exact(origins[part], part) for part in (slice(0, 37), slice(37, 38), slice(38, None))]
    for name in ("workers", "lengths", "elsewhere"):
        assert sum(getattr(part, name) for part in parts).tolist() == getattr(whole, name).tolist()
    assert whole.workers.tolist() == tables.workers.tolist()
    assert whole.elsewhere.sum() == (origins == zones).sum() > 0
    assert (whole.lengths > 0).all()


@pytest.mark.parametrize(
    ("epsilon", "each"), [(1e-3, 1), (0.01, 100), (0.02, 1000), (0.1, 10), (1.0, 10**5), (10.0, 10**6)]
)
def test_there_are_never_more_than_eight_and_as_many_as_noise_allows(town, places, epsilon, each):
    classes, of, workers = classes_of(town, places, np.full(places.size, each), epsilon)
    assert 1 <= workers.size <= MOST_CLASSES
    assert set(of) == set(range(workers.size))
    if workers.size > 1:
        deviation = math.sqrt(2) / epsilon * classes.cap_km / workers
        assert (deviation / np.average(classes.public_km, weights=workers) < 1.3 / 40).all()


@pytest.mark.parametrize(("size", "each"), [(1, 1), (1, 10**6), (2, 1), (100, 1)])
def test_few_workers_or_one_destination_are_one_class(town, places, size, each):
    classes, of, _ = classes_of(town, places[:size], np.full(size, each))
    assert classes.public_km.size == 1
    assert classes.edges_km.size == 0
    assert not of.any()


@pytest.mark.parametrize("weights", [[1], [1, 0, 0]], ids=["one zone", "one inhabited zone"])
@pytest.mark.parametrize("noisy", [0, -(2**62), 2**62])
def test_a_region_in_which_nobody_can_travel_is_no_fault(weights, noisy):
    """It would be found only after the measurement was paid for."""
    number = len(weights)
    zones = canonical(
        ids=pa.array([str(i) for i in range(number)]),
        longitude=0.1 * np.arange(number),
        latitude=np.full(number, 50.0),
        weight=np.array(weights),
        levels=(),
        parents=(),
        vintage="made-up",
    )
    region, place = make_region(zones), np.zeros(1, np.int32)
    classes, of, workers = classes_of(region, place, [7])
    assert of.tolist() == [0]
    (scale,) = fit_decay(region, PUBLIC, classes, workers, np.array([noisy]), 0.1).scales_km
    assert 0 < scale < math.inf


def test_classes_depend_on_headcounts_and_nothing_else(town, places):
    """Nothing of a table is given; nor does it matter in what other order or pieces things were computed before."""
    headcount = np.arange(1000, 1000 + places.size)
    one, of, _ = classes_of(town, places, headcount)
    classes_of(town, places[::-1], headcount)
    again, of_again, _ = classes_of(town, places.copy(), headcount.copy())
    assert of.tolist() == of_again.tolist()
    assert told(one) == told(again)


@pytest.mark.parametrize("epsilon", [0.0, 1e-7, math.nan, 701.0])
def test_an_epsilon_out_of_range_is_refused(town, places, epsilon):
    with pytest.raises(PrivacyParameterError, match="epsilon"):
        classes_of(town, places, np.ones(places.size), epsilon)


class Town:
    """Tables of a town with several classes, as lists of origins by destination."""

    def __init__(self, town, places):
        self.town, self.places = town, places
        self.headcount = np.full(places.size, 20)
        self.classes, self.of, self.workers = classes_of(town, places, self.headcount, 2.0)
        assert self.workers.size > 3

    def exact(self, origins, part=slice(None)):
        """Return the sums of some destinations' table."""
        first = np.arange(len(origins) + 1) * origins.shape[1]
        flat = np.sort(origins, axis=1).astype(np.int32).ravel()
        counts = Counts(first, flat, np.ones((origins.size, 1), np.int64))
        headcount = np.full(len(origins), origins.shape[1])
        of = class_of_each(self.town, PUBLIC, self.classes, self.places[part])
        return length_sums(self.town, self.classes, of, self.places[part], headcount, counts)

    def sums(self, origins, classes=None, seed=1):
        """Return noisy sums of a table, drawn with the same stream each time."""
        return noisy_sums(classes or self.classes, self.exact(origins), seeded_stream(seed))


@pytest.fixture(scope="module")
def tables(town, places):
    return Town(town, places)


def test_every_sum_has_noise_from_a_stream_of_its_own(tables):
    """Numbered from the last on, which no destination has."""
    origins = np.repeat(tables.places[:, None], 20, axis=1)
    assert not tables.exact(origins).lengths.any()
    wanted = [
        noise_of_sum(tables.classes.units, seeded_stream(1), 2**64 - 1 - one) for one in range(tables.of.max() + 1)
    ]
    assert tables.sums(origins).tolist() == wanted
    assert len(set(wanted)) == len(wanted) > 3
    assert tables.sums(origins, seed=2).tolist() != wanted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_worker_s_move_changes_one_sum_by_at_most_the_sensitivity(tables, data):
    """From and to any zone or elsewhere; the noise is the same, as the stream is."""
    zones = len(tables.town.zones)
    origins = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, zones + 1, (tables.places.size, 20))
    d = data.draw(st.integers(0, tables.places.size - 1))
    origin = st.one_of(st.just(zones), st.just(int(tables.town.zones.longitude.argmax())), st.integers(0, zones))
    origins[d, 3] = data.draw(origin)
    moved = origins.copy()
    moved[d, 3] = data.draw(origin)
    change = tables.sums(moved) - tables.sums(origins)
    assert abs(change[tables.of[d]]) <= PARTS
    assert np.flatnonzero(change).tolist() in ([], [tables.of[d]])


def test_a_move_can_take_the_whole_sensitivity(tables):
    """Else too much noise would be paid for."""
    zones, far = len(tables.town.zones), int(tables.town.zones.longitude.argmax())
    origins = np.repeat(tables.places[:, None], 20, axis=1)
    moved = origins.copy()
    moved[7, 0] = far
    assert (tables.sums(moved) - tables.sums(origins))[tables.of[7]] == PARTS
    moved[7, 0] = zones
    public = tables.classes.public_km[tables.of[7]] / tables.classes.cap_km * PARTS
    assert (tables.sums(moved) - tables.sums(origins))[tables.of[7]] == pytest.approx(public, abs=0.5)


def test_whoever_lives_elsewhere_never_counts_more_than_the_cap(tables):
    """Whatever the public mean is."""
    far = replace(tables.classes, public_km=np.full(tables.workers.size, 7 * tables.classes.cap_km))
    origins = np.repeat(tables.places[:, None], 20, axis=1)
    moved = np.full_like(origins, len(tables.town.zones))
    change = tables.sums(moved, far) - tables.sums(origins, far)
    assert change.tolist() == (PARTS * tables.workers).tolist()


def test_j_jobs_of_a_person_in_one_class_change_its_sum_by_at_most_j_times_as_much(tables):
    far = int(tables.town.zones.longitude.argmax())
    origins = np.repeat(tables.places[:, None], 20, axis=1)
    moved = origins.copy()
    held = np.flatnonzero(tables.of == 2)[:3]
    moved[held, 0] = far
    change = tables.sums(moved) - tables.sums(origins)
    assert np.flatnonzero(change).tolist() == [2]
    assert 2 * PARTS < change[2] <= 3 * PARTS


def drawn_from(town, model, places, each, seed):
    """Return origins drawn from the prior of a model."""
    rng, origins = np.random.default_rng(seed), []
    for place, point in zip(places, town.points(places), strict=True):
        prior = prior_from(town.tree, model, point, int(place))
        units = (rng.random(each) * float(prior.mass[-1])).astype(np.int64)
        origins.append([rank_at(prior, town.tree.cumulative, int(min(unit, prior.mass[-1] - 1))) for unit in units])
    return np.array(origins)


@pytest.mark.parametrize("scale", [1.5, 4.0, 9.0])
def test_the_scale_that_made_the_truth_is_found_again(tables, town, places, scale):
    """From sums without noise of many workers; the public scale is another."""
    each = 400
    origins = drawn_from(town, PUBLIC._replace(scale_km=scale), places, each, 5)
    classes, of, workers = classes_of(town, places, np.full(places.size, each), 2.0)
    many = Town.__new__(Town)
    many.town, many.places, many.classes, many.of = town, places, classes, of
    found = fit_decay(town, PUBLIC, classes, workers, many.sums(origins), 2.0)
    assert found.scales_km == pytest.approx([scale] * workers.size, rel=0.25)
    assert np.average(found.scales_km, weights=workers) == pytest.approx(scale, rel=0.08)


@pytest.mark.parametrize("factor", [0.3, 0.7, 1.0, 1.5, 2.5])
def test_the_fitted_prior_has_the_mean_it_is_fitted_to(tables, factor):
    """Within a percent, for each class, unless the mean is longer than any scale makes it."""
    classes, workers = tables.classes, tables.workers * 10**6
    noisy = (factor * classes.public_km / classes.cap_km * PARTS * workers).astype(np.int64)
    model = PUBLIC._replace(elsewhere_share=0.0)
    found = fit_decay(tables.town, model, classes, workers, noisy, 2.0)
    assert found.mean_km == pytest.approx(factor * classes.public_km, rel=1e-3)
    made = np.array(
        [
            _capped_km(
                tables.town.tree, model._replace(scale_km=scale), tables.town.points(ranks), classes.cap_km
            ).mean()
            for scale, ranks in zip(found.scales_km, classes.sample, strict=True)
        ]
    )
    longest = np.array(found.scales_km) > 49 * PUBLIC.scale_km
    assert not longest.all()
    assert made[~longest] == pytest.approx(np.array(found.mean_km)[~longest], rel=0.003)


@pytest.mark.parametrize("factor", [0.2, 3.0])
def test_few_workers_move_little(town, places, factor):
    """Where the noise is many times the mean, the decay stays public."""
    classes, _, workers = classes_of(town, places[:3], [1, 1, 1], 0.1)
    noisy = np.array([int(factor * classes.public_km[0] / classes.cap_km * PARTS * 3)])
    (scale,) = fit_decay(town, PUBLIC, classes, workers, noisy, 0.1).scales_km
    assert scale == pytest.approx(PUBLIC.scale_km, rel=0.02)
    assert fit_decay(town, PUBLIC, classes, workers, noisy, 0.1).trust < 0.01
    many, _, workers = classes_of(town, places[:3], [10**5] * 3, 0.1)
    noisy = (factor * many.public_km / many.cap_km * PARTS * workers).astype(np.int64)
    found = fit_decay(town, PUBLIC, many, workers, noisy, 0.1)
    assert abs(math.log(found.scales_km[0] / PUBLIC.scale_km)) > 0.4
    assert found.trust > 0.99


@pytest.mark.parametrize(
    ("told", "trust", "strength"), [(None, 0.0, 5.0), (None, 0.5, 10.0), (None, 1.0, 15.0), (7.0, 1.0, 7.0)]
)
def test_a_decay_is_believed_as_far_as_it_was_measured_unless_told_otherwise(tables, told, trust, strength):
    """And what that took of ε stays taken, whatever a spec says of itself once it has scales."""
    spec = spec_of(1.0, "auto").with_workers(250_000)
    spec = spec.model_copy(update={"prior": spec.prior.model_copy(update={"strength": told})})
    found = fit_decay(tables.town, PUBLIC, tables.classes, tables.workers, np.zeros_like(tables.workers), 0.02)
    fitted = with_decay(spec, replace(found, trust=trust))
    assert fitted.strength == strength
    assert fitted.lengths_epsilon == 0.02
    assert table_epsilon(fitted) == table_epsilon(spec) < 1.0


def test_a_class_in_which_another_machine_sees_nobody_is_no_fault(tables):
    """Edges are lengths of sampled destinations: the last bit may decide. It would be found after it was paid for."""
    workers = tables.workers.copy()
    workers[1] = 0
    noisy = tables.sums(np.repeat(tables.places[:, None], 20, axis=1))
    found = fit_decay(tables.town, PUBLIC, tables.classes, workers, noisy, 2.0)
    assert all(0 < one < math.inf for one in [*found.scales_km, found.trust])
    assert np.isfinite(found.mean_km).all()


@pytest.mark.parametrize("noisy", [-(2**62), -(10**9), -1, 0, 10**9, 2**62 + 10**12])
@pytest.mark.parametrize("away", [0.0, 0.9])
@pytest.mark.parametrize("mechanism", ["dirichlet", "histogram"])
def test_whatever_was_measured_a_plan_can_be_made(tables, noisy, away, mechanism):
    """A release that failed for how the noise fell would tell something, and would have been paid for."""
    sums = np.full(tables.workers.size, noisy)
    model = PUBLIC._replace(elsewhere_share=away)
    found = fit_decay(tables.town, model, tables.classes, tables.workers, sums, 2.0)
    assert all(0 < one < math.inf for one in found.scales_km)
    assert all(PUBLIC.scale_km / 51 < one < PUBLIC.scale_km * 51 for one in found.scales_km)
    assert all(0 <= one <= tables.classes.cap_km for one in found.mean_km)
    planned = plan_destinations(
        tables.town,
        tables.places,
        tables.headcount,
        plan_settings(
            mechanism=mechanism, edges_km=tuple(found.edges_km), scales_km=tuple(found.scales_km), elsewhere_share=away
        ),
    )
    assert np.isfinite(planned.predicted_km).all()
    assert (planned.epsilon <= 4.0).all()


def spec_of(epsilon, lengths):
    return Spec(
        name="made-up",
        zones=ZonesSpec(path="zones", vintage="1"),
        tables=[TableSpec(path="table", vintage="1")],
        privacy=PrivacySpec(epsilon=epsilon, delta=1e-6),
        prior=PriorSpec(lengths_epsilon=lengths),
    )


@given(st.floats(0.0021, 700), st.floats(1e-3, 10))
def test_lengths_and_table_never_take_more_than_the_whole(epsilon, lengths):
    lengths = min(lengths, epsilon / 2)
    table = table_epsilon(spec_of(epsilon, lengths))
    exact = Fraction(epsilon) - Fraction(lengths)
    assert Fraction(table) <= exact < Fraction(math.nextafter(table, math.inf))


def test_without_lengths_the_table_has_the_whole():
    assert table_epsilon(spec_of(0.1 + 0.2, 0)) == 0.1 + 0.2


@pytest.mark.parametrize(
    ("epsilon", "lengths"), [(0.02, 0.02), (0.02, 0.03), (0.02, 0.0195), (0.02, math.nextafter(0.02, 0))]
)
def test_a_table_for_which_next_to_nothing_is_left_is_refused_before_anything_is_paid(epsilon, lengths):
    with pytest.raises(ValueError, match=r"must leave 0\.001 or more of privacy.epsilon to the table"):
        spec_of(epsilon, lengths)
