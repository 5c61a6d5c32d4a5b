"""What synthmap is measured against makes tables of the same kind, and comes near the truth where noise is small."""

import argparse
import dataclasses
import functools
import importlib
import importlib.util
import json

import numpy as np
import pytest
from matplotlib import image
from scipy import stats

from pipelines.release import release
from synthmap.analysis.table import units_by_level
from synthmap.confidential.fidelity import read_confidential
from synthmap.geography.read import read_zones
from synthmap.spec import read_spec

NEEDS = {"OpenDP": "opendp", "geometric": "opendp", "Laplace": "opendp", "inf-tda": "InfTDA"}
AT_LEAST = {  # common part by tract at ε = 40, where next to no noise is left
    "synthmap, planned": 0.8,  # resampling alone costs a fifth
    "synthmap, planned, decay as given": 0.8,
    "synthmap histogram": 0.95,
    "synthmap histogram, decay as given": 0.95,
    "synthmap histogram, likeliest": 0.95,
    "synthmap, tract cells, one alpha": 0.8,
    "ICDE 2008, a cell for every area": 0.8,
    "ICDE 2008, 100 cells": 0.8,
    "OpenDP geometric, tracts": 0.95,
    "OpenDP Laplace, tracts": 0.95,
    "geometric, zones": 0.9,
    "Laplace, zones": 0.9,
    "geometric, zones, n(d) largest": 0.9,
    "OpenDP stability histogram, zones": 0.9,
    "inf-tda top-down, tracts": 0.9,
    "prior alone": 0.3,
    "no privacy, resampled": 0.8,
}


@pytest.fixture(scope="module")
def alternatives(repository):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository))
        found = importlib.import_module("tests.benchmarks.alternatives")
        patch.setattr(found.worlds, "release", functools.partial(release, scheduler="threads"))
        yield found


@pytest.fixture(scope="module")
def world(alternatives, region):
    spec = read_spec(region / "spec.toml")
    zones = read_zones(spec.zones)
    return alternatives.World("made-up", spec, zones, read_confidential(spec, zones), "tract")


def test_each_is_looked_at(alternatives):
    assert set(AT_LEAST) == set(alternatives.METHODS)


@pytest.mark.parametrize("method", AT_LEAST)
def test_an_alternative(alternatives, world, tmp_path, method):
    module = next((module for start, module in NEEDS.items() if method.startswith(start)), None)
    if module and importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    found = alternatives.METHODS[method](world, 40.0, 1e-5, np.random.default_rng(1), tmp_path)
    assert found.count.min() >= 0
    headcount = np.bincount(world.table.destination, world.table.count, len(world.zones))
    assert np.array_equal(np.bincount(found.destination, found.count, len(world.zones)), headcount)
    assert world.score(found).area_to_area > AT_LEAST[method]


def test_errors_are_kept_as_numbers_and_as_a_plot(alternatives, world, tmp_path, capsys):
    few = ["synthmap, planned, decay as given", "prior alone"]
    chosen = argparse.Namespace(draws=2, delta=1e-5, epsilon=[1.0, 4.0], method=few, output=tmp_path / "out")
    alternatives._run(world, chosen, tmp_path)
    assert few[0] in capsys.readouterr().out
    rows = json.loads((tmp_path / "out" / "alternatives-made-up.json").read_text())
    told = [(row["method"], row["epsilon"]) for row in rows if row["method"] == few[0]]
    assert told == [(few[0], 1.0), (few[0], 4.0)]
    plot = image.imread(tmp_path / "out" / "alternatives-made-up.png")
    assert len(np.unique(plot.reshape(-1, plot.shape[2]), axis=0)) > 50  # lines, markers and letters


def test_who_gets_a_worker_more_does_not_hang_on_the_order_of_areas(alternatives):
    """Whole noisy counts leave equal remainders, and a worker more went to the areas that come first."""
    rows = np.repeat([[2.0, 1, 1, 1, -1], [1, 1, 2, 1, -3]], 2_000, axis=0)  # nearest: 1.5, 0.5, 0.5, 0.5 and 0
    headcount = np.full(4_000, 3)
    counts = alternatives.others.projected(rows, headcount, np.random.default_rng(1))
    assert np.array_equal(counts.sum(axis=1), headcount)
    assert np.allclose(counts[:2_000].mean(axis=0), [1.5, 0.5, 0.5, 0.5, 0], atol=0.06)  # five standard deviations
    assert np.allclose(counts[2_000:].mean(axis=0), [0.5, 0.5, 1.5, 0.5, 0], atol=0.06)


def test_remainders_that_differ_by_rounding_alone_are_equal(alternatives):
    rows = np.tile([901.0, 1, 1], (2_000, 1))
    counts = alternatives.others.projected(rows, np.full(2_000, 902), np.random.default_rng(1))
    assert np.allclose(counts.mean(axis=0), [900 + 2 / 3, 2 / 3, 2 / 3], atol=0.06)


def test_the_largest_remainder_is_rounded_up(alternatives):
    rows = np.array([[2.4, 0.9, -1.0, 0.2], [0.0, 0.0, 7.0, 0.0]])
    counts = alternatives.others.projected(rows, np.array([3, 4]), np.random.default_rng(1))
    assert counts.tolist() == [[2, 1, 0, 0], [0, 0, 4, 0]]


def test_a_top_down_release_pays_for_no_level_that_tells_nothing(alternatives, world, monkeypatch):
    """Where all areas lie in one unit, or in none, half of ρ was spent on asking for the headcount."""
    mechanism = pytest.importorskip("InfTDA").mechanism
    levels = []

    def hearing(told, *_):
        levels.append(told.index.nlevels)
        return told[told > 0]

    monkeypatch.setattr(mechanism, "inf_tda", hearing)
    coarsest = dataclasses.replace(world, level=list(units_by_level(world.zones))[-1])
    for asked, expected in ((world, 2), (coarsest, 1)):
        levels.clear()
        found = alternatives.METHODS["inf-tda top-down, tracts"](asked, 4.0, 1e-5, np.random.default_rng(1), None)
        assert set(levels) == {expected}
        assert asked.score(found).area_to_area > 0.95


@pytest.mark.parametrize("keep_largest", [False, True])
def test_zones_that_get_workers_do_not_hang_on_their_order(alternatives, world, keep_largest):
    equal = functools.partial(np.ones_like, dtype=float)
    found = alternatives.others._noisy_zones(world, equal, np.random.default_rng(1), keep_largest=keep_largest)
    assert np.array_equal(np.unique(found.destination), world.destinations)
    assert abs(np.average(found.origin, weights=found.count) / len(world.zones) - 0.5) < 0.05  # 3,000 workers


@pytest.mark.parametrize("floating", [False, True])
def test_noise_on_zones_has_the_law_of_opendp(alternatives, floating):
    pytest.importorskip("opendp")
    others, none = alternatives.others, np.zeros(20_000, np.int64)
    ours = others.numpy_noise(1.0, np.random.default_rng(1), floating=floating)(none)
    theirs = others.opendp_noise(none, 1.0, floating=floating)
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-6
