"""Agreement of two tables in commute lengths. Origins elsewhere have no length and are left out.

Lengths are great-circle distances between internal points in km; a flow within a zone has length 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.table import Paired

BIN_KM = 2.0


@dataclass(frozen=True)
class MeanLengths:
    """The average commute of each destination in two tables.

    Attributes
    ----------
    destination : ndarray of int32, shape (destinations,)
        Rank, ascending.
    headcount : ndarray of int64
        Workers in the reference, those from elsewhere included: the weights of worker-weighted figures.
    reference, other : ndarray of float64
        Average commute in km, at least 0; NaN where nobody comes from the map.
    """

    destination: NDArray[np.int32]
    headcount: NDArray[np.int64]
    reference: NDArray[np.float64]
    other: NDArray[np.float64]

    @property
    def error(self) -> NDArray[np.float64]:
        """Signed error in km, other − reference: above 0 where commutes are overstated; NaN where one is unknown."""
        return self.other - self.reference


def mean_lengths(paired: Paired, km: NDArray[np.float64]) -> MeanLengths:
    """Return the average commute of each destination, ``Σ_o count(o, d)·km(o, d) / Σ_o count(o, d)``.

    Parameters
    ----------
    paired : Paired
        At zone level.
    km : ndarray of float64, shape (pairs,)
        `synthmap.analysis.table.pair_km` of the pairs.

    References
    ----------
    The utility measure of OnTheMap: Machanavajjhala, Kifer, Abowd, Gehrke, Vilhuber, "Privacy: Theory meets Practice
    on the Map", ICDE 2008, section 6.
    """
    starts = paired.starts
    if not starts.size:
        return MeanLengths(paired.destination, paired.reference, np.zeros(0), np.zeros(0))
    known = ~np.isnan(km)
    length = np.where(known, km, 0.0)

    def mean(count: NDArray[np.int64]) -> NDArray[np.float64]:
        workers = np.add.reduceat(np.where(known, count, 0), starts)
        total = np.add.reduceat(count * length, starts)
        out = np.full(starts.size, np.nan)
        np.divide(total, workers, out=out, where=workers > 0)
        return out

    return MeanLengths(
        destination=paired.destination[starts],
        headcount=np.add.reduceat(paired.reference, starts),
        reference=mean(paired.reference),
        other=mean(paired.other),
    )


def wasserstein_km(paired: Paired, km: NDArray[np.float64]) -> float:
    """Return the Wasserstein distance of the two distributions of commute lengths over all workers.

    Returns
    -------
    float
        In km, at least 0, and at least the difference of the two mean commutes; NaN without workers.

    Notes
    -----
    ``∫ |F_a(x) − F_b(x)| dx``: how far a worker's commute must be stretched or shrunk on average to turn one
    distribution into the other. Exact; equal to `scipy.stats.wasserstein_distance`.

    References
    ----------
    Ramdas, Garcia Trillos, Cuturi, "On Wasserstein two-sample testing", Entropy 19 (2017).
    """
    known = ~np.isnan(km)
    one = np.zeros(int(known.sum()), np.int32)
    found = _wasserstein(one, km[known], paired.reference[known], paired.other[known])
    return float(found[0]) if found.size else float("nan")


def wasserstein_by_destination_km(paired: Paired, km: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `wasserstein_km` of each destination, in the order of `paired.starts`; NaN where one has no workers."""
    out = np.full(paired.starts.size, np.nan)
    known = ~np.isnan(km)
    place = np.cumsum(np.diff(paired.destination, prepend=-1) != 0)[known] - 1
    if place.size:
        found = _wasserstein(place, km[known], paired.reference[known], paired.other[known])
        out[np.unique(place)] = found
    return out


def _wasserstein(
    group: NDArray[np.integer],
    km: NDArray[np.float64],
    reference: NDArray[np.int64],
    other: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the distance in each group, groups ascending; NaN where a side has no workers."""
    if not group.size:
        return np.zeros(0)
    order = np.lexsort([km, group])
    group, km = group[order], km[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    rows = np.diff(np.append(starts, group.size))
    gap = np.append(np.diff(km), 0.0)
    gap[np.append(starts[1:], group.size) - 1] = 0.0
    difference = np.zeros(group.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        for side, sign in ((reference[order], 1.0), (other[order], -1.0)):
            running = np.cumsum(side)  # exact integers
            total = np.add.reduceat(side, starts)
            before = running[starts] - side[starts]
            difference += sign * (running - np.repeat(before, rows)) / np.repeat(total, rows)
        return np.asarray(np.add.reduceat(np.abs(difference) * gap, starts))


def common_part_of_lengths(paired: Paired, km: NDArray[np.float64], *, bin_km: float = BIN_KM) -> float:
    """Return the common part of distances, CPL: `common_part` of workers by class of commute length.

    Parameters
    ----------
    bin_km : float
        Width of a class, [0, bin), [bin, 2·bin), …

    Returns
    -------
    float
        In [0, 1], 1 is best; NaN without workers.

    Notes
    -----
    ``2 Σ_k min(a_k, b_k) / (Σ_k a_k + Σ_k b_k)`` with a_k, b_k the workers whose commute lies in class k.

    References
    ----------
    Lenormand, Huet, Gargiulo, Deffuant, "A universal model of commuting networks", PLoS ONE 7 (2012).
    """
    known = ~np.isnan(km)
    if not known.any():
        return float("nan")
    band = (km[known] / bin_km).astype(np.int64)
    a = np.bincount(band, paired.reference[known])
    b = np.bincount(band, paired.other[known])
    total = a.sum() + b.sum()
    return float(2.0 * np.minimum(a, b).sum() / total) if total else float("nan")


@dataclass(frozen=True)
class LengthError:
    """Errors of destinations' average commutes.

    Attributes
    ----------
    destinations, workers : int
        What is counted; destinations with an unknown average are not.
    true_km : float
        Worker-weighted mean of the reference's averages.
    mae_km, mae_km_unweighted : float
        Mean absolute error, by worker and by destination.
    bias_km, bias_km_unweighted : float
        Mean signed error; above 0 means overstated.
    rmse_km : float
        Root mean square error, by worker.
    """

    destinations: int
    workers: int
    true_km: float
    mae_km: float
    mae_km_unweighted: float
    bias_km: float
    bias_km_unweighted: float
    rmse_km: float


def length_error(lengths: MeanLengths, inside: NDArray[np.bool_] | None = None) -> LengthError | None:
    """Return the errors of the destinations `inside` (all by default), None if there are none to judge."""
    error = lengths.error
    chosen = ~np.isnan(error) if inside is None else inside & ~np.isnan(error)
    if not chosen.any():
        return None
    error, weight, true = error[chosen], lengths.headcount[chosen], lengths.reference[chosen]
    workers = int(weight.sum())
    if workers == 0:
        return None
    return LengthError(
        destinations=int(chosen.sum()),
        workers=workers,
        true_km=float(np.average(true, weights=weight)),
        mae_km=float(np.average(np.abs(error), weights=weight)),
        mae_km_unweighted=float(np.abs(error).mean()),
        bias_km=float(np.average(error, weights=weight)),
        bias_km_unweighted=float(error.mean()),
        rmse_km=float(np.sqrt(np.average(error**2, weights=weight))),
    )
