"""The expected error of sums of flows, from public parameters alone: the one place that is asked for it."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.published.expected import planned_variance
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

Trust = Literal["exact", "signal", "weak", "noise"]
Numbers = NDArray[np.float64]

EXPLAINED = (
    "expected_error is the root mean square error of a figure, in workers, that is to be expected of this release's "
    "noise, drawing and prior. It is computed from public parameters (headcounts, α, prior share), never from the "
    "confidential table, and allows for a prior that is wrong for the figure as a whole. Areas smaller than the cells "
    "between which the release tells origins apart follow the prior more than it says. A figure is weak where its "
    "expected error is above half of it, and noise where it is at least the figure itself."
)


class Sums(NamedTuple):
    """Sums over destinations by set and class, each of shape (sets, groups): m, m²·v, workers drawn from the prior."""

    size: Numbers
    spread: Numbers
    prior: Numbers


@dataclass(frozen=True)
class FigureErrors:
    """What the errors of a release's figures are made of, for every code of a zone as a destination.

    Attributes
    ----------
    headcount, size : ndarray of float64, shape (codes,)
        n and m, workers; 0 where nobody works.
    spread : ndarray of float64, shape (codes,)
        m²·v, so that √(q·(1 − q)·m²·v) is the expected error of a share q of the destination (`share_variance`).
    prior : ndarray of float64, shape (codes,)
        Expected synthetic workers that are drawn from the prior.
    group : ndarray of uint8, shape (codes,)
        Class of headcount, in powers of 2, in which shares are estimated together.
    """

    headcount: Numbers
    size: Numbers
    spread: Numbers
    prior: Numbers
    group: NDArray[np.uint8]

    @property
    def groups(self) -> int:
        """How many classes there are."""
        return int(self.group.max(initial=0)) + 1

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        return sum(one.nbytes for one in (self.headcount, self.size, self.spread, self.prior, self.group))

    def grouped(self, key: NDArray[np.integer], keys: int) -> "Sums":
        """Return m, m²·v and the workers drawn from the prior, summed by key and class.

        Parameters
        ----------
        key : ndarray of int, shape (codes,)
            Which set of destinations a code belongs to; -1 for none.
        keys : int
        """
        at = np.flatnonzero((key >= 0) & (self.size > 0))
        place = key[at].astype(np.int64) * self.groups + self.group[at]
        shape = (keys, self.groups)
        values = (np.bincount(place, one[at], keys * self.groups) for one in (self.size, self.spread, self.prior))
        return Sums(*(np.asarray(one, float).reshape(shape) for one in values))

    def expected(self, workers: NDArray[Any], sums: "Sums") -> Numbers:
        """Return the expected error of each figure, workers.

        Parameters
        ----------
        workers : ndarray, shape (figures, columns, groups)
            Synthetic workers of a figure (and its segments) by class of their destination.
        sums : Sums
            Of the destinations that each figure is about (`grouped`), those without any of its workers too; or of those
            that all are about.

        Returns
        -------
        ndarray of float64, shape (figures, columns)

        Notes
        -----
        Destinations are drawn independently, and the prior may fit each differently: those squares add up,
        ``Σ_d m²v·q(1 − q)``. The share q of a small destination cannot be told from its own draw; in each class it is
        ``X/M`` over all its destinations. As q(1 − q) is concave, that is never less than with each its own. A figure
        counts as at least half a worker, and at most half a worker less than all, since 0 is not known to be 0.

        Where the prior is wrong for the whole figure, that does not average out: of s·X workers drawn from it, s·X(1 −
        X/M) may be amiss, and their square is added. It is the most that a prior without the figure would take away.
        Against the truth of made-up regions with a much too flat prior the whole overstates the residents of an area
        up to threefold and understates those who also work there up to twofold.
        """
        m, s, prior = (one[:, None, :] for one in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight, share = np.where(m > 0, s / (m * m), 0.0), np.where(m > 0, prior / m, 0.0)
        x = np.minimum(workers, m)
        total = m.sum(axis=2, keepdims=True)
        least = m * 0.5 / np.where(total > 0, total, 1.0)
        variance = (x * (m - x) * weight).sum(axis=2)
        floor = (least * (m - least) * weight).sum(axis=2)
        some, every = x.sum(axis=2), total[:, :, 0]
        amiss = (x * share).sum(axis=2) * (1.0 - some / np.where(every > 0, every, 1.0))
        return np.asarray(np.sqrt(np.maximum(variance, floor) + amiss**2))

    def of_total(self, destinations: NDArray[np.bool_]) -> float:
        """Return the error of the workers at all of some destinations together: 0 where m = n."""
        return float(abs((self.size - self.headcount)[destinations].sum()))

    def prior_share(self, destinations: NDArray[np.bool_]) -> float | None:
        """Return the expected share of the workers at some destinations that are drawn from the prior."""
        workers = self.size[destinations].sum()
        return float(self.prior[destinations].sum() / workers) if workers else None


def trust(workers: NDArray[np.int64], error: Numbers) -> list[Trust]:
    """Return how far figures can be trusted."""
    signal = np.abs(workers)
    kinds = np.select([error == 0, error >= signal, 2 * error > signal], [0, 3, 2], 1)
    names: tuple[Trust, ...] = ("exact", "signal", "weak", "noise")
    return [names[kind] for kind in kinds.ravel().tolist()]


def figure_errors(opened: OpenedRelease) -> FigureErrors:
    """Return what the errors of a release's figures are made of, read once.

    Raises
    ------
    ReleaseCorruptError
        If the plan names a destination that is no zone, or cannot be read.
    """
    return opened.memory.get((opened.etag, "figure errors"), lambda: _read(opened))


def _read(opened: OpenedRelease) -> FigureErrors:
    plan = opened.collect(
        opened.plan.select(
            "destination", "headcount", "synthetic_size", "prior_share", "prior_strength", "share_variance"
        )
    )
    zones = units_of(opened, ZONE)
    codes, known = zones.find(plan["destination"].cast(pl.String))
    if not known.all():
        raise ReleaseCorruptError(f"release {opened.id}: plan.parquet must name zones of the release; verify it")
    n, m = plan["headcount"].to_numpy(), plan["synthetic_size"].to_numpy()
    share = plan["prior_share"].to_numpy()
    variance = planned_variance(plan)

    def placed(values: NDArray[Any]) -> Numbers:
        out = np.zeros(len(zones))
        out[codes] = values
        return out

    group = np.zeros(len(zones), np.uint8)
    group[codes] = np.log2(n).astype(np.uint8)
    return FigureErrors(placed(n), placed(m), placed(m.astype(float) ** 2 * variance), placed(m * share), group)
