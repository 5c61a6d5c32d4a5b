"""Measures of whole flow tables in closed form, under Dirichlet resampling, if the prior is the truth. Public: no ε."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.cell_tables import cell_tables
from synthmap.analysis.flow_errors import Units, flow_errors
from synthmap.analysis.gravity import LARGEST, GravityFit, gravity_of
from synthmap.analysis.length_errors import classes_of, common_part_and_wasserstein_km, length_errors
from synthmap.analysis.prior_cells import Resampled
from synthmap.analysis.prior_distances import modelled
from synthmap.analysis.prior_world import Setting
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import ZONE, units_by_level
from synthmap.geography.zones import Zones
from synthmap.kernels.bounded import KEEP_UNITS

MOST_PAIRS = 1_000_000_000  # zones × destinations, which take some two minutes
MOST_FLOWS = 4 * LARGEST  # kept for the gravity model, units without weight included: some 300 MB


_LOOK_SECONDS = 0.1
R = TypeVar("R")


@dataclass(frozen=True)
class ExpectedPairs:
    """Fields of `PairCounts` with the same names: expected numbers, and these divided."""

    reference: float
    other: float
    common: float
    missing_share: float
    spurious_share: float


@dataclass(frozen=True)
class ExpectedFlows:
    """Expectations of fields of `Comparison` with the same names; fields of `Expected`.

    Attributes
    ----------
    tv, tv_unweighted : float
    tv_by_level, cpc : dict of str to float
    marginals : dict of str to float
        Relative error of workers by area of residence, by level: at least 0.
    pairs : dict of str to ExpectedPairs
        By ``level/level``; of zones alone where empty cells are dropped.
    cpc_cells, spurious_cells, missing_cells : float
        Of the tables of cells.
    cpl, length_wasserstein_km : float
        The latter in km.
    gravity : GravityFit or None
        Fitted to the expected flows of either table; None where it is not identified, and above `MOST_FLOWS`.
    """

    tv: float
    tv_unweighted: float
    tv_by_level: dict[str, float]
    cpc: dict[str, float]
    marginals: dict[str, float]
    pairs: dict[str, ExpectedPairs]
    cpc_cells: float
    spurious_cells: float
    missing_cells: float
    cpl: float
    length_wasserstein_km: float
    gravity: GravityFit | None


def expected_flows(
    setting: Setting, plan: PublishedPlan, zones: Zones, most_pairs: int = MOST_PAIRS
) -> ExpectedFlows | None:
    """Return what a release's measures are expected to be.

    Parameters
    ----------
    most_pairs : int
        Largest zones × destinations for which it is worked out; 25,181 × 8,358 take some 20 s.

    Returns
    -------
    ExpectedFlows or None
        None where noise is added to counts, empty cells of several segments are dropped, or light ones rather, a
        destination has not as many synthetic workers as true ones, cells are not those planned, or there are more pairs
        than `most_pairs`.

    Notes
    -----
    Mean and variance of the error D of each flow are those of its model (`flow_errors`), for any masses of cells; only
    spreading inside cells of unequal mass is that of cells all alike, and segments are drawn as one. E|D| is
    `mean_absolute` of the two, times what that is off by for a unit as large at a destination with as many cells, all
    alike, or for a whole cell as large (`cell_tables`). Means over many made-up worlds are met to 0.005 for shares of
    workers, 0.012 for pairs, 0.008 for destinations each counted once, 0.01 for workers by residence, and 4 % for the
    Wasserstein distance: of a town with 400 zones and 1,421 workers, by mass or by distance, and of 100 to 300 zones,
    a third as many cells up to as many, α from 0.25 to 20. Where nine in ten live elsewhere pairs are off by 0.02.
    Where empty cells are dropped, shares of workers are met to 0.009, destinations each counted once to 0.02. Of Rhode
    Island's shares are met to 0.001. Both tables of the gravity model are fitted to expected flows; these differ
    only as far as equal pseudo-counts in cells of unequal mass pull.
    """
    resampled = plan.resampled and bool(modelled(setting, plan).all() and (plan.size == plan.headcount).all())
    if not resampled or len(zones) * plan.destination.size > most_pairs:
        return None
    units = units_by_level(zones)
    alpha = plan.alpha_numerator / plan.alpha_denominator * setting.segments
    keep = plan.keep_units / KEEP_UNITS
    columns = np.stack([plan.cells_asked, plan.cells, plan.finest, plan.headcount], axis=1)
    laid_out = _laid_out(units, zones, plan.destination)
    stop = np.zeros(1, np.int64)
    with ThreadPoolExecutor(2) as pool:  # this thread waits, so that a signal is handled at once: see `flow_errors`
        try:
            tables = _result(pool.submit(cell_tables, plan.headcount, plan.cells, alpha, keep, stop))
            public = setting.tree, setting.model, setting.points, setting.destination
            of = Resampled(*public, columns, alpha, keep, tables)
            lengths = pool.submit(length_errors, of, classes_of(setting.tree), stop)
            flows = pool.submit(flow_errors, of, laid_out, stop)
            found, by_length = _result(flows), _result(lengths)
        finally:
            stop[0] = 1
    if not found.made:
        return None
    cpl, wasserstein = common_part_and_wasserstein_km(by_length)
    workers = int(plan.headcount.sum())
    cpc = {
        f"{origin}/{destination}": float(1.0 - found.absolute[row, column] / (2.0 * workers))
        for row, destination in enumerate(units)
        for column, origin in enumerate(units)
    }
    told = len(units) if (keep == 1.0).all() else 1
    of_cells, fit = _pairs(*found.cells[1:].tolist()), None
    if laid_out.fitted >= 0:
        level = list(units)[laid_out.fitted]
        places = np.unique(units[level][plan.destination])
        fit = gravity_of(level, places, found.flows[0], found.flows[0] + found.flows[1], zones, units[level])
    return ExpectedFlows(
        tv=1.0 - cpc[f"{ZONE}/{ZONE}"],
        tv_unweighted=float(found.variation / plan.destination.size),
        tv_by_level={level: 1.0 - cpc[f"{level}/{ZONE}"] for level in units},
        cpc=cpc,
        marginals={level: float(found.absolute[-1, column] / workers) for column, level in enumerate(units)},
        pairs={f"{level}/{level}": _pairs(*found.pairs[row].tolist()) for row, level in enumerate([*units][:told])},
        cpc_cells=float(1.0 - found.cells[0] / (2.0 * workers)),
        spurious_cells=of_cells.spurious_share,
        missing_cells=of_cells.missing_share,
        cpl=cpl,
        length_wasserstein_km=wasserstein,
        gravity=fit,
    )


def _pairs(true: float, drawn: float, both: float) -> ExpectedPairs:
    return ExpectedPairs(true, drawn, both, max(0.0, 1.0 - both / true), max(0.0, 1.0 - both / drawn))


def _result(future: Future[R]) -> R:
    """Return what a thread works out. The wait is short, again and again: libraries let Ctrl-C not end a long one."""
    while not wait([future], timeout=_LOOK_SECONDS).done:
        pass
    return future.result()


def _laid_out(units: Mapping[str, NDArray[np.int32]], zones: Zones, destination: NDArray[np.int32]) -> Units:
    """Return the units as `flow_errors` takes them; fitted is the level of `gravity`, or −1."""
    each = list(units.values())
    first = np.cumsum([0, *(int(unit[-1]) + 1 for unit in each)])
    closes = np.sum([np.diff(unit) != 0 for unit in each], axis=0)
    fitted = -1
    for level in range(1, len(each)) or [0]:
        places = np.unique(each[level][destination]).size
        if (np.bincount(each[level][:-1], zones.weight) > 0).sum() * places <= LARGEST:
            fitted = level if (first[level + 1] - first[level]) * places <= MOST_FLOWS else -1
            break
    place = np.unique(each[fitted][destination], return_inverse=True)[1]
    return Units(first.astype(np.int64), closes.astype(np.int64), fitted, place.astype(np.int64))
