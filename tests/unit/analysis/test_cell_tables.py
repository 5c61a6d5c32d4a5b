"""Tables of parts and unions of cells, against enumeration of every outcome."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from synthmap.analysis.absolute import mean_absolute
from synthmap.analysis.cell_tables import END, STEPS, cell_tables, joint_counts, place_of, read
from synthmap.analysis.urns import dropped, urn_of

N, K, ALPHA = 7, 2, 0.3


def tables(n=N, k=K, alpha=ALPHA, keep=1.0):
    return cell_tables(np.array([n]), np.array([k]), np.array([alpha]), np.array([keep]))


def outcomes(part):
    """Yield (true workers of a part of a cell, synthetic ones, those of the cell, both, and their chance)."""
    for x, y, here in product(range(N + 1), repeat=3):
        chance = binom.pmf(x, N, 1 / K) * betabinom.pmf(y, N, x + ALPHA, N - x + (K - 1) * ALPHA)
        chance *= binom.pmf(here, x, part)
        low = int(np.floor(y * part))
        yield here, low, x, y, chance * (1 - y * part + low)
        yield here, low + 1, x, y, chance * (y * part - low)


@pytest.mark.parametrize("point", [4, 12, 24])
def test_parts_are_exact_where_they_are_told(point):
    t = (point / STEPS) ** 2
    part = t * K / N
    true, drawn, x, y, chance = np.array(list(outcomes(part))).T
    assert chance.sum() == pytest.approx(1)
    off = drawn - true
    variance = chance @ off**2 - (chance @ off) ** 2
    value = tables().value[0, point]
    assert value[0] * mean_absolute(0.0, variance) == pytest.approx(chance @ np.abs(off), rel=1e-6)
    assert value[1] * t == pytest.approx(chance @ (drawn - y * part) ** 2, rel=1e-6)
    assert value[2] * t == pytest.approx(chance @ (drawn > 0), rel=1e-6)
    alone = (chance @ (drawn > 0)) * (chance @ (true > 0))
    assert value[3] * alone == pytest.approx(chance @ ((drawn > 0) & (true > 0)), rel=1e-6)
    assert tables().value[0, 0, 3] == pytest.approx(chance @ (x * y) * (K / N) ** 2)  # of very small parts


def test_unions_of_cells_are_exact_where_they_are_told():
    n, k, alpha, point = 9, 8, 0.2, 32  # 4 of 9 workers, so 32/9 cells
    t = (point / STEPS) ** 2
    share, pseudo = t / n, k * alpha * t / n
    x, y = (one.ravel() for one in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    chance = binom.pmf(x, n, share) * betabinom.pmf(y, n, x + pseudo, n - x + k * alpha - pseudo)
    value = tables(n, k, alpha).value[0, point]
    expected = mean_absolute(0.0, chance @ (y - x) ** 2.0)
    assert value[0] * expected == pytest.approx(chance @ np.abs(y - x), rel=1e-6)
    assert value[2] * t == pytest.approx(chance @ (y > 0), rel=1e-6)
    alone = (chance @ (x > 0)) * (chance @ (y > 0))
    assert value[3] * alone == pytest.approx(chance @ ((x > 0) & (y > 0)), rel=1e-6)


@pytest.mark.parametrize(("point", "exact"), [(6, 1e-6), (32, 1e-6), (7, 0.01), (0, 1e-5)])
def test_whole_cells_of_any_mass_are_exact_where_they_are_told(point, exact):
    n, k, alpha = 9, 8, 2.0
    t = max(1e-6, (point / STEPS) ** 2)
    x, y = (one.ravel() for one in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    chance = binom.pmf(x, n, t / n) * betabinom.pmf(y, n, x + alpha, n - x + (k - 1) * alpha)
    value = tables(n, k, alpha).value[0, point, 4:]
    mean = chance @ (y - x)
    expected = mean_absolute(mean, chance @ (y - x) ** 2.0 - mean**2)
    assert value[0] * expected == pytest.approx(chance @ np.abs(y - x), rel=exact)
    assert value[1] == pytest.approx(chance @ (y > 0), rel=exact)
    alone = (chance @ (x > 0)) * (chance @ (y > 0))
    assert value[2] * alone == pytest.approx(chance @ ((x > 0) & (y > 0)), rel=exact)


def test_a_cell_that_is_dropped_gives_nobody():
    n, k, alpha, keep = 9, 8, 2.0, 0.3
    gone, varies, together = dropped(n, 1 / k, keep)
    urn = urn_of(n, alpha, keep, k * (1 - gone), k * varies, k * together)
    total = urn.total + urn.alpha * gone
    x, y, chance = joint_counts(n, 1 / k, urn.alpha, total, keep)
    assert chance.sum() == pytest.approx(1)
    assert chance.sum(axis=1) == pytest.approx(binom.pmf(x, n, 1 / k), abs=1e-9)
    kept = betabinom.pmf(y, n, urn.alpha, total - urn.alpha)
    assert chance[0] == pytest.approx(binom.pmf(0, n, 1 / k) * (keep * kept + (1 - keep) * (y == 0)), abs=1e-9)
    assert chance[2] == pytest.approx(
        binom.pmf(2, n, 1 / k) * betabinom.pmf(y, n, 2 + urn.alpha, total - 2 - urn.alpha), abs=1e-9
    )
    assert (chance @ y).sum() == pytest.approx(n / k, rel=0.02)
    assert tables(n, k, alpha, keep).value[0, :, 5].min() < 0.6 * tables(n, k, alpha).value[0, :, 5].min()


@pytest.mark.parametrize(("n", "alpha"), [(20_000, 600.0), (1_000_000, 3_000.0)])
@pytest.mark.parametrize("t", [1e-6, 0.5, 2.0])
def test_a_light_cell_among_heavy_ones_is_dropped_as_often_as_any_empty_one(n, alpha, t):
    """Of its many synthetic workers every second, third … value is summed over: that it has none is no such value."""
    keep = 0.3
    none = (1 - keep) * binom.pmf(0, n, t / n)  # a cell that is kept has synthetic workers all but surely
    x, y, chance = joint_counts(n, t / n, alpha, n + 10 * alpha, keep)
    assert y[1] > 1
    assert chance[x == 0].sum() == pytest.approx(binom.pmf(0, n, t / n), rel=1e-3)
    assert chance[:, y == 0].sum() == pytest.approx(none, rel=1e-3)
    assert np.isfinite(tables(n, 10, alpha, keep).value).all()


def test_one_cell_holds_all():
    x, y, chance = joint_counts(5, 1.0, 1.0, 6.0, 1.0)
    assert (x.tolist(), y.tolist(), chance.tolist()) == ([5], [5], [[1]])
    point = 16  # one worker of five: spread as 0 or 1, always 1
    found = tables(5, 1, 3.0).value[0]
    assert found[point, 1] == pytest.approx(0, abs=1e-9)
    assert np.isfinite(found).all()


def test_counts_of_many_workers_keep_mean_and_variance():
    n, k, alpha = 40_000, 20, 3.0  # more values than are summed over
    x, y, chance = joint_counts(n, 1 / k, alpha, n + k * alpha, 1.0)
    assert x.size < 500
    assert y.size < 500
    total = n + k * alpha
    off = y - x[:, None]
    variance = (total - n) ** 2 / total**2 * n * 0.05 * 0.95 + n * (n + total) / (1 + total) * 0.05 * 0.95 * (
        1 - n / total**2
    )
    assert (chance * off).sum() == pytest.approx(0, abs=0.01)
    assert (chance * off**2).sum() == pytest.approx(variance, rel=1e-3)


def test_equal_destinations_share_a_row_and_reading_goes_along_lines():
    found = cell_tables(np.array([3, 40, 3]), np.array([4, 8, 4]), np.array([0.5, 0.5, 0.5]), np.ones(3))
    assert found.case.tolist() == [0, 1, 0]
    assert found.value.shape[0] == 2
    assert found.cells.tolist() == [4, 8]
    halfway = ((5 + 0.5) / STEPS) ** 2
    assert read(found, 1, place_of(found, halfway), 2) == pytest.approx(found.value[1, 5:7, 2].mean())
    assert read(found, 1, place_of(found, 0.0), 3) == found.value[1, 0, 3]
    assert read(found, 1, place_of(found, 3 * END), 0) == found.value[1, -1, 0]


def test_no_more_tables_are_made_once_it_is_stopped():
    assert (
        cell_tables(np.array([9]), np.array([8]), np.array([0.5]), np.ones(1), np.ones(1, np.int64)).value == 1
    ).all()
