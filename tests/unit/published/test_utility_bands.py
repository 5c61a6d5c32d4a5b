"""Bands of distance against the mechanism's own prior, and the sample that stands for a large release."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from synthmap.geography.canonical import canonical
from synthmap.geography.distance import great_circle_km
from synthmap.geography.hierarchy import build_tree
from synthmap.geography.prior import NO_TABLE, PriorModel, mass_below, prior_from
from synthmap.geography.sphere import arc_km, unit_vectors
from synthmap.published import utility_bands
from synthmap.published.expected import LENGTH_EDGES_KM
from synthmap.published.places import Places
from synthmap.published.utility_bands import prior_by_band, sample_destinations
from synthmap.release.manifest import PriorSummary


def test_arcs_are_those_of_the_mechanism():
    rng = np.random.default_rng(3)
    a = unit_vectors(rng.uniform(-180, 180, 50), rng.uniform(-90, 90, 50))
    b = np.vstack([a[:10], -a[10:20], a[20:][::-1]])
    assert arc_km(a, b) == pytest.approx([great_circle_km(x, y) for x, y in zip(a, b, strict=True)], abs=1e-6)


def test_the_prior_of_each_band_is_that_of_the_mechanism():
    rng = np.random.default_rng(1)
    longitude, latitude = 10 + rng.uniform(-0.6, 0.6, 800), 50 + rng.uniform(-0.4, 0.4, 800)
    weight = rng.integers(0, 500, 800)
    zones = canonical(
        ids=pa.array([f"{i:04}" for i in range(800)]),
        longitude=longitude,
        latitude=latitude,
        weight=weight,
        levels=(),
        parents=(),
        vintage="2026",
    )
    tree = build_tree(zones)
    point = unit_vectors(zones.longitude[:1], zones.latitude[:1])[0]
    prior = prior_from(tree, PriorModel(7.0, 2.0, 0.2, 0.0, 5.0, NO_TABLE), point, 0)
    below = np.array([mass_below(prior, tree.cumulative, rank) for rank in range(len(zones) + 2)], float)
    points = unit_vectors(zones.longitude, zones.latitude)
    band = np.searchsorted(LENGTH_EDGES_KM, arc_km(points, points[0]), side="right") - 1
    mass = np.diff(below)
    wanted = np.append(np.bincount(band, mass[:-1], len(LENGTH_EDGES_KM) - 1), mass[-1]) / mass.sum()

    columns = {"weight": zones.weight, "longitude": zones.longitude, "latitude": zones.latitude}
    places = Places(pl.DataFrame({"id": zones.ids.to_pylist(), **columns}), (), None)
    summary = PriorSummary(formula="", weight="", scale_km=7.0, power=2.0, elsewhere_share=0.2, strength=20.0)
    found = prior_by_band(places, summary, np.array([0]), np.array([7.0]))[0]
    assert found.sum() == pytest.approx(1)
    assert found == pytest.approx(wanted, abs=0.01)
    assert (found > 0.01).sum() >= 4  # the comparison has something to compare


def test_few_destinations_are_all_looked_at():
    found = sample_destinations(np.array([5, 1, 9]), 100)
    assert found.rows.tolist() == [0, 1, 2]
    assert found.workers.tolist() == [5, 1, 9]


def test_a_sample_stands_for_all_workers_and_never_changes(monkeypatch):
    monkeypatch.setattr(utility_bands, "PAIRS", 200_000)
    size = np.random.default_rng(2).zipf(1.6, 5_000).clip(max=20_000)
    found, again = sample_destinations(size, 1_000), sample_destinations(size, 1_000)
    assert found.rows.size <= 200
    assert found.workers.sum() == pytest.approx(size.sum())
    assert (found.rows == again.rows).all()
    value = np.sin(np.arange(size.size) / 300) + 2  # a figure that changes along the table
    assert found.workers @ value[found.rows] / size.sum() == pytest.approx(size @ value / size.sum(), rel=0.1)
