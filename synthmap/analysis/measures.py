"""Agreement of two tables as tables: common part, total variation, pairs, marginals by residence.

All take a `Paired`; the tables need not have the same number of workers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.table import Paired


def common_part(paired: Paired) -> float:
    """Return the common part of commuters, CPC.

    Returns
    -------
    float
        In [0, 1]; 1 for identical tables, 0 if no pair has workers in both. NaN without workers.

    Notes
    -----
    ``2 Σ min(a, b) / (Σ a + Σ b)`` over pairs (Sørensen's index). With equal totals it is the share of workers that
    both tables put on the same pair. It is symmetric, and merging units never lowers it.

    References
    ----------
    Lenormand, Bassolas, Ramasco, "Systematic comparison of trip distribution laws and models", Journal of Transport
    Geography 51 (2016).
    """
    total = int(paired.reference.sum() + paired.other.sum())
    return 2.0 * int(np.minimum(paired.reference, paired.other).sum()) / total if total else float("nan")


def total_variation(paired: Paired) -> NDArray[np.float64]:
    """Return the total variation distance of the origins of each destination, in the order of `paired.starts`.

    Returns
    -------
    ndarray of float64, shape (destinations,)
        In [0, 1]; 0 for equal shares, 1 if no origin is shared; NaN where one of the tables has no workers.

    Notes
    -----
    ``½ Σ_o |a(o)/a − b(o)/b|``; elsewhere is an origin like any other. Where the two tables have the same workers at
    a destination it is 1 − (its common part).

    References
    ----------
    Levin, Peres, "Markov Chains and Mixing Times", section 4.1.
    """
    starts = paired.starts
    if not starts.size:
        return np.zeros(0)
    rows = np.diff(np.append(starts, paired.origin.size))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [
            side / np.repeat(np.add.reduceat(side, starts), rows).astype(float)
            for side in (paired.reference, paired.other)
        ]
        return np.asarray(0.5 * np.add.reduceat(np.abs(shares[0] - shares[1]), starts))


def weighted_mean(values: NDArray[np.float64], weights: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return the weighted mean of the values that are not NaN; NaN if there are none with weight."""
    known = ~np.isnan(values)
    total = float(weights[known].sum())
    return float((values[known] * weights[known]).sum() / total) if total > 0 else float("nan")


@dataclass(frozen=True)
class PairCounts:
    """Pairs with workers, and how many occur in one table only.

    Attributes
    ----------
    reference, other, common : int
        Pairs with workers in either table and in both.
    missing_share, spurious_share : float
        Of the reference's pairs, those without workers in the other; of the other's, those without in the reference.
    missing_workers_share, spurious_workers_share : float
        Workers on such pairs, of all workers of that table. All shares lie in [0, 1].
    """

    reference: int
    other: int
    common: int
    missing_share: float
    spurious_share: float
    missing_workers_share: float
    spurious_workers_share: float


def count_pairs(paired: Paired) -> PairCounts:
    """Return how many pairs occur in one table and not in the other."""
    a, b = paired.reference > 0, paired.other > 0
    reference, other, common = int(a.sum()), int(b.sum()), int((a & b).sum())

    def share(part: int, whole: int) -> float:
        return part / whole if whole else float("nan")

    return PairCounts(
        reference=reference,
        other=other,
        common=common,
        missing_share=share(reference - common, reference),
        spurious_share=share(other - common, other),
        missing_workers_share=share(int(paired.reference[~b].sum()), int(paired.reference.sum())),
        spurious_workers_share=share(int(paired.other[~a].sum()), int(paired.other.sum())),
    )


@dataclass(frozen=True)
class MarginalError:
    """How well the workers living in each unit of a level agree.

    Attributes
    ----------
    units : int
        Units in which somebody lives in either table, elsewhere included.
    relative_error : float
        ``Σ |b − a| / Σ a``: at least 0, 0 is best; 2 if the tables share no unit and have equal totals.
    median, p90 : float
        Median and 90th percentile of ``|b − a| / a`` over the units with a > 0, each unit once.
    bias_largest : float
        ``(b − a) / a`` of the unit with the most workers in the reference; signed.
    """

    units: int
    relative_error: float
    median: float
    p90: float
    bias_largest: float


def marginal_error(paired: Paired, unit: NDArray[np.int32]) -> MarginalError:
    """Return how well workers by area of residence agree; `unit` gives the unit of every origin.

    Notes
    -----
    These totals are not published exactly: only the destinations' are. A worker drawn from the prior instead of the
    data moves from where people work to where the public weight is.
    """
    size = int(unit.max()) + 1
    code = unit[paired.origin]
    a = np.bincount(code, paired.reference, size)
    b = np.bincount(code, paired.other, size)
    some = a > 0
    if not some.any():
        nan = float("nan")
        return MarginalError(int((b > 0).sum()), nan, nan, nan, nan)
    relative = np.abs(b - a)[some] / a[some]
    largest = int(a.argmax())
    return MarginalError(
        units=int((some | (b > 0)).sum()),
        relative_error=float(np.abs(b - a).sum() / a.sum()),
        median=float(np.median(relative)),
        p90=float(np.quantile(relative, 0.9)),
        bias_largest=float((b[largest] - a[largest]) / a[largest]),
    )
