"""A destination's origins, and what resampling does inside a cell."""

import numpy as np
import pytest

from synthmap.analysis.cell_tables import STEPS, cell_tables
from synthmap.analysis.prior_cells import Resampled, domain_of, inside
from synthmap.analysis.urns import dropped
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable, mass_below, prior_from


def test_inside_a_cell_true_workers_are_binomial_and_synthetic_ones_are_spread():
    n, k, alpha, point = 7, 2, 0.3, 12
    tables = cell_tables(np.array([n]), np.array([k]), np.array([alpha]), np.ones(1))
    t = (point / STEPS) ** 2
    part = t * k / n
    assert 0 < part < 0.5
    spread = t * tables.value[0, point, 1]
    binomial = n / k * part * (1 - part)
    assert inside(n, 1 / k, 1 / k, part, 1.0, tables, 0) == pytest.approx(binomial + spread)
    assert inside(n, 1 / k, 1 / k, 1 - part, 1.0, tables, 0) == pytest.approx(binomial + spread)
    assert inside(n, 1 / k, 1 / k, part, 1000.0, tables, 0) == pytest.approx(2 * binomial)  # as if each were drawn
    assert inside(n, 1 / k, 1 / k, 1.0, 1.0, tables, 0) == 0


@pytest.mark.parametrize(("with_table", "keep"), [(False, 1.0), (True, 1.0), (False, 0.4), (True, 0.4)])
def test_shares_of_zones_are_those_of_the_prior(town, with_table, keep):
    first = np.zeros(401, np.int64)
    first[51:] = 3
    table = PriorTable(first, np.array([7, 80, 400], np.int32), np.array([4, 1, 2])) if with_table else NO_TABLE
    model = PriorModel(4.0, 2.0, 0.1, 0.5 if with_table else 0.0, 5.0, table)
    places = np.array([50], np.int32)
    points = town.points(places)
    prior = prior_from(town.tree, model, points[0], 50)
    below = np.array([mass_below(prior, town.tree.cumulative, rank) for rank in range(402)])
    plan, alpha, keeps = np.array([[12, 12, -1, 30]]), np.array([0.5]), np.array([keep])
    tables = cell_tables(np.array([30]), np.array([12]), alpha, keeps)
    found = domain_of(Resampled(town.tree, model, points, places, plan, alpha, keeps, tables), 0)
    assert found.share == pytest.approx(np.diff(below) / below[-1], abs=1e-15)
    assert (found.bounds[0], found.bounds[-1]) == (0, 401)
    assert (found.number[:-1] == 1).all()
    assert found.number[-1] == max(1, round(12 * found.share[-1]))  # everywhere else: with the table it is two cells
    assert found.number.sum() == 12
    assert np.add.reduceat(found.share, found.bounds[:-1]) == pytest.approx(found.prior)
    assert found.drawn.sum() == pytest.approx(1)
    if keep == 1:
        assert found.drawn == pytest.approx((30 * found.prior + 0.5 * found.number) / 36)
    else:
        gone = np.array([dropped(30, share, keep)[0] for share in found.prior])
        gone[-1] += (found.number[-1] - 1) * (1 - keep)  # of the cells that are always empty
        assert found.urn.alpha == pytest.approx(0.5, rel=0.01)
        assert found.urn.total == pytest.approx(30 + 0.5 * (12 - gone.sum()), rel=0.01)
        pseudo = found.urn.total * found.drawn - 30 * found.prior
        assert pseudo == pytest.approx(found.urn.alpha * (found.number - gone))
