"""Classes and lengths by which a release is measured in public: made from the release alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.classes import density_edges, jobs_per_km2
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import ODTable, pair_km
from synthmap.errors import ConfigurationError
from synthmap.geography.zones import Zones
from synthmap.published.expected import LENGTH_EDGES_KM

BANDS = len(LENGTH_EDGES_KM) - 1
_EDGES_M = np.asarray(LENGTH_EDGES_KM[1:-1]) * 1000.0
_MOST_M = 2**52  # sums of metres stay exact


@dataclass(frozen=True)
class MeasuredClasses:
    """What is public of a measurement.

    Attributes
    ----------
    zones : Zones
    plan : PublishedPlan
    cap_m : int
        Lengths count up to here, in metres; elsewhere counts as this.
    density_edges : tuple of float
        Workers per km², ends of the density classes.
    density : ndarray of int64, shape (destinations,)
        Density class of each destination of the plan.
    length : ndarray of int64, shape (destinations,)
        Band of the release's own average commute there, lengths cut off at the cap.
    synthetic_counts : ndarray of int64, shape (density classes, BANDS + 1)
        Synthetic workers by density class and band of commute; the last band is elsewhere.
    synthetic_m : ndarray of int64, shape (destinations,)
        Sum of the synthetic workers' lengths.
    """

    zones: Zones
    plan: PublishedPlan
    cap_m: int
    density_edges: tuple[float, ...]
    density: NDArray[np.int64]
    length: NDArray[np.int64]
    synthetic_counts: NDArray[np.int64]
    synthetic_m: NDArray[np.int64]

    @property
    def densities(self) -> int:
        """Number of density classes."""
        return len(self.density_edges) - 1


def make_classes(plan: PublishedPlan, synthetic: ODTable, zones: Zones, cap_m: int) -> MeasuredClasses:
    """Return the classes of a release.

    Parameters
    ----------
    plan : PublishedPlan
    synthetic : ODTable
        The release's table.
    zones : Zones
    cap_m : int
        In metres, at least 1.

    Raises
    ------
    ConfigurationError
        If the release has other numbers of workers than the table it was made from, or too many for exact sums.
    """
    if not np.array_equal(plan.size, plan.headcount):
        raise ConfigurationError(
            "synthetic_size must be the headcount at every destination: sums of lengths of other numbers of workers "
            "cannot be compared"
        )
    if int(plan.headcount.sum()) * cap_m > _MOST_M:
        raise ConfigurationError(f"cap ({cap_m} m) must be less for so many workers: sums would not be exact")
    jobs = jobs_per_km2(plan.destination, plan.headcount, zones)
    edges = density_edges(jobs)
    density = _class(jobs, np.asarray(edges[1:-1]))
    row, band, metres = look_up(synthetic, plan, zones, cap_m)
    synthetic_m = add_up(row, metres * synthetic.count, plan.destination.size)
    mean_m = synthetic_m / np.maximum(plan.headcount, 1)
    counts = add_up(density[row] * (BANDS + 1) + band, synthetic.count, (len(edges) - 1) * (BANDS + 1))
    return MeasuredClasses(
        zones, plan, cap_m, edges, density, _class(mean_m, _EDGES_M), counts.reshape(-1, BANDS + 1), synthetic_m
    )


def look_up(
    table: ODTable, plan: PublishedPlan, zones: Zones, cap_m: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return of each row of a table: its destination's place in the plan, the band of its length, its metres.

    Metres are whole and at most `cap_m`; an origin elsewhere has the cap and the last band.
    """
    row = np.searchsorted(plan.destination, table.destination).astype(np.int64)
    metres = pair_km(table.origin, table.destination, zones) * 1000.0
    away = np.isnan(metres)
    band = np.where(away, BANDS, _class(metres, _EDGES_M))
    cut = np.where(away, cap_m, np.minimum(np.floor(metres), cap_m)).astype(np.int64)
    return row, band, cut


def add_up(place: NDArray[np.int64], values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the sums of `values` by place, exact."""
    out = np.zeros(size, np.int64)
    np.add.at(out, place, values)
    return out


def _class(values: NDArray[np.float64], inner_edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class of each value: class i is [edge i, edge i + 1)."""
    return np.asarray(np.searchsorted(inner_edges, values, side="right"), dtype=np.int64)
