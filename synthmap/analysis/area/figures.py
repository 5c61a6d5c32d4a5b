"""Figures of an analysis: synthetic workers, by segment too, each with its expected error."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synthmap.errors import QueryError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.areas.area import Area
from synthmap.published.figure_errors import FigureErrors
from synthmap.published.figure_variance import Parts, Shapes
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of


@dataclass(frozen=True)
class Figures:
    """Some figures; columns are all workers, then each segment.

    Attributes
    ----------
    workers : ndarray of int64, shape (figures, columns)
    error : ndarray of float64, shape (figures, columns)
        Expected error, workers; 0 where a figure is exact.
    prior : ndarray of float64, shape (figures, columns)
        Share of a figure that follows the prior, not data.
    """

    workers: NDArray[np.int64]
    error: NDArray[np.float64]
    prior: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.workers.shape[0])

    def take(self, rows: Any) -> "Figures":
        """Return some of the figures."""
        return Figures(self.workers[rows], self.error[rows], self.prior[rows])

    def columns(self, number: int) -> "Figures":
        """Return the first columns."""
        return Figures(self.workers[:, :number], self.error[:, :number], self.prior[:, :number])

    def minus(self, other: "Figures") -> "Figures":
        """Return differences of figures whose errors are independent."""
        error = np.hypot(self.error, other.error)
        return Figures(self.workers - other.workers, error, np.maximum(self.prior, other.prior))

    def known(self, column: int, error: float) -> "Figures":
        """Return the figures, one column of which is published with this error."""
        errors, prior = self.error.copy(), self.prior.copy()
        errors[:, column], prior[:, column] = error, 0.0
        return Figures(self.workers, errors, prior)

    def where(self, possible: ArrayLike) -> "Figures":
        """Return the figures, of which those that are not `possible` are exact: no origin belongs to them.

        0 workers are no estimate there, which would be told as off by some.
        """
        some = np.reshape(possible, (-1, 1))
        return Figures(self.workers, np.where(some, self.error, 0.0), np.where(some, self.prior, 0.0))


def joined(*parts: Figures) -> Figures:
    """Return figures one after the other."""
    return Figures(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("workers", "error", "prior")))


def estimated(
    errors: FigureErrors,
    tallied: NDArray[np.int64],
    sums: Parts,
    shapes: Shapes | None = None,
    alike: NDArray[np.int64] | None = None,
) -> Figures:
    """Return the figures of a tally, with the errors that its destinations make (see `FigureErrors.expected`)."""
    return Figures(tallied.sum(axis=2), *errors.expected(tallied, sums, shapes, alike))


def total_of(errors: FigureErrors, tallied: NDArray[np.int64], destinations: NDArray[np.bool_]) -> Figures:
    """Return all workers at some destinations as one figure: their number is an invariant, their segments are not.

    Parameters
    ----------
    tallied : ndarray of int64, shape (keys, columns, groups)
        All flows into the destinations, whatever the keys.
    """
    sums = errors.grouped(np.where(destinations, 0, -1), 1)
    found = estimated(errors, tallied.sum(axis=0, keepdims=True), sums)
    return found.known(0, errors.of_total(destinations))


def parts_of(figures: Figures, whole: Figures, possible: ArrayLike) -> Figures:
    """Return figures that add up to a whole, with errors that agree with it.

    A part alone is the whole. Two parts of an exact whole are off by as much as each other: what one has too many the
    other lacks; both have the larger of their estimates.

    Parameters
    ----------
    figures, whole : Figures
        The parts, and one figure.
    possible : sequence of bool, shape (figures,)
        Whether any origin belongs to a part.
    """
    found = figures.where(possible)
    error, prior, rows = found.error.copy(), found.prior.copy(), np.flatnonzero(possible)
    if rows.size == 1:
        error[rows], prior[rows] = whole.error, whole.prior
    elif rows.size == 2:
        error[rows] = np.where(whole.error == 0, error[rows].max(axis=0), error[rows])
    return Figures(figures.workers, error, prior)


def elsewhere_code(opened: OpenedRelease) -> int:
    """Return the code of everywhere else; -1 where the release has none."""
    if opened.manifest.zones.elsewhere is None:
        return -1
    return int(units_of(opened, ZONE).codes((ELSEWHERE,), "origin")[0])


def shares(figures: Figures) -> list[float | None]:
    """Return each figure's share of the last, the total."""
    total = int(figures.workers[-1, 0])
    return [None if total == 0 else int(one) / total for one in figures.workers[:, 0]]


def same_release(opened: OpenedRelease, *areas: Area) -> None:
    """Refuse areas of another release.

    Raises
    ------
    QueryError
        If an area has another number of zones than the release.
    """
    if any(area.zones.size != len(units_of(opened, ZONE)) for area in areas):
        raise QueryError("area must be one of the release that is analysed; make it again with that release")
