"""Moments of errors of workers by length, against many worlds in which the prior is the truth."""

import numpy as np
import pytest
from publishedplan import published_plan

from synthmap.analysis.cell_tables import cell_tables
from synthmap.analysis.length_errors import (
    CLASS_KM,
    LengthErrors,
    classes_of,
    common_part_and_wasserstein_km,
    length_errors,
)
from synthmap.analysis.prior_cells import Resampled
from synthmap.analysis.prior_world import Setting, prior_world
from synthmap.analysis.table import pair_km
from synthmap.geography.prior import NO_TABLE, PriorModel

PLACES = np.array([50, 200], np.int32)
WORLDS = 2000


@pytest.fixture
def compared(town):
    """Return moments in closed form and, of every world, errors of workers nearer than the ends of classes and away."""

    def make(cells, elsewhere, keep=1.0):
        at = Setting(town.tree, PriorModel(4.0, 2.0, elsewhere, 0.0, 5.0, NO_TABLE), town.points(PLACES), PLACES,
                     keep_by_prior=False, segments=1, strength_inside=160.0, agreement=False)  # fmt: skip
        pseudo = 1 if keep == 1 else 4
        plan = published_plan(PLACES, [150, 60] if keep == 1 else [40, 9], cells_asked=cells, cells=cells,
                              alpha_numerator=pseudo, keep_units=round(2**16 * keep))  # fmt: skip
        alpha, keeps = np.full(2, float(pseudo)), np.full(2, keep)
        columns = np.stack([plan.cells_asked, plan.cells, plan.finest, plan.headcount], axis=1)
        tables = cell_tables(plan.headcount, plan.cells, alpha, keeps)
        classes = classes_of(town.tree)
        of = Resampled(at.tree, at.model, at.points, PLACES, columns, alpha, keeps, tables)
        found = length_errors(of, classes, np.zeros(1, int))
        nearer, away = np.zeros((WORLDS, classes)), np.zeros(WORLDS)
        for seed in range(WORLDS):
            for table, sign in zip(prior_world(at, plan, seed), (-1, 1), strict=True):
                km = pair_km(table.origin, table.destination, town.zones)
                away[seed] += sign * np.isnan(km).sum()
                band = (km[~np.isnan(km)] / CLASS_KM).astype(int)
                nearer[seed] += sign * np.cumsum(np.bincount(band, minlength=classes))
        return found, nearer, away

    return make


@pytest.mark.parametrize(
    ("cells", "elsewhere", "keep"), [(1, 0.0, 1.0), (1, 0.3, 1.0), (8, 0.3, 1.0), (6, 0.05, 1.0), (16, 0.3, 0.25)]
)
def test_moments_are_those_of_many_worlds(compared, cells, elsewhere, keep):
    found, nearer, away = compared(cells, elsewhere, keep)
    looked_at = found.below[:, 2] > 2.0
    looked_at[1:] &= np.diff(found.below[:, 0]) > 0.1  # each class once
    assert looked_at.sum() > 20
    off = nearer.mean(axis=0) - found.below[:, 1]
    assert (np.abs(off) < 4.5 * nearer.std(axis=0) / np.sqrt(WORLDS) + 1e-9).all()
    ratio = found.below[looked_at, 2] / nearer.var(axis=0)[looked_at]
    assert 0.95 < ratio.mean() < 1.12  # ranges of ranks do not vary quite independently
    assert ratio == pytest.approx(np.ones(ratio.size), abs=0.5)
    assert found.away[2] == pytest.approx(away.var(), rel=0.15, abs=1e-9)
    together = (nearer * away[:, None]).mean(axis=0) - nearer.mean(axis=0) * away.mean()
    noise = 5 * np.sqrt(nearer.var(axis=0) * away.var() / WORLDS)
    assert (np.abs(found.below[:, 3] - together) < noise + 0.1 * np.abs(together) + 1e-9).all()
    if elsewhere > 0.1:
        assert (found.below[-1, 3] < -2 * noise[-1]).all()


def test_the_whole_map_errs_by_what_elsewhere_does_the_other_way(compared):
    found, _, _ = compared(8, 0.3)
    assert found.below[-1, 1] == pytest.approx(-found.away[1])
    assert found.below[-1, 2] == pytest.approx(found.away[2], rel=0.01)
    assert found.below[-1, 3] == pytest.approx(-found.away[2], rel=0.01)
    assert found.below[-1, 0] + found.away[0] == pytest.approx(210)
    assert found.within[:, 0].sum() == pytest.approx(found.below[-1, 0])


def test_an_error_of_the_map_as_a_whole_is_none_of_its_distribution():
    """All lengths are 0: one worker more or less changes no share, though D has a variance."""
    below = np.array([[10.0, 0.0, 4.0, -4.0]] * 3)
    within = np.array([[10.0, 0.0, 4.0]])
    part, distance = common_part_and_wasserstein_km(LengthErrors(below, within, np.array([5.0, 0.0, 4.0])))
    assert distance == 0
    assert part == pytest.approx(1 - 1.5232 / 20, abs=1e-3)
