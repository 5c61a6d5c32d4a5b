"""The planner's choices on a real table, Leeds 2011, judged by what is drawn: nothing fixed errs clearly less."""

import functools
import importlib

import pytest

from pipelines.release import release

NOISE = 1.15  # an error over these draws, times another
FIXED = (1, 4, 32, 96)


@pytest.fixture(scope="module")
def error_km(repository, data_folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository))
        worlds = importlib.import_module("tests.benchmarks.worlds")
        patch.setattr(worlds, "release", functools.partial(release, scheduler="threads"))
        world = worlds.world(worlds.LEEDS, tmp_path_factory.mktemp("leeds"))

        @functools.cache
        def found(epsilon: float, cells: int | str, lengths: bool) -> float:
            """Return the mean error of average commutes, worker-weighted, over some draws."""
            options = {"epsilon": epsilon, "delta": 1e-5, "cells": cells, "lengths": lengths}
            tables = [world.released(tmp_path_factory.mktemp("store"), seed=seed, **options) for seed in range(3)]
            return sum(world.score(table).mae_km for table in tables) / len(tables)

        yield found


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_no_number_of_cells_and_no_prior_alone_is_better_than_planned(error_km, epsilon):
    planned = error_km(epsilon, "auto", True)
    fixed = {(cells, lengths): error_km(epsilon, cells, lengths) for cells in FIXED for lengths in (False, True)}
    assert planned <= NOISE * min(fixed.values()), (planned, fixed)
    assert planned < max(fixed.values()) / 1.5  # the choice matters


def test_measured_lengths_make_up_for_a_decay_that_does_not_fit(error_km):
    assert error_km(0.5, "auto", True) < 0.8 * error_km(0.5, "auto", False)
