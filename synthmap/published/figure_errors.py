"""The expected error of sums of flows, from public parameters alone: the one place that is asked for it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.privacy.gaussian import gaussian_variance
from synthmap.published.expected import planned_variance
from synthmap.published.figure_variance import Drawn, Expected, Parts, Shapes, expected_error
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

Trust = Literal["exact", "signal", "weak", "noise"]
Numbers = NDArray[np.float64]
UNITS = 2**32  # of noise, see `synthmap.privacy.histogram`
_TOGETHER = 10_000  # figures: bounds memory

EXPLAINED = (
    "expected_error is the root mean square error of a figure, in workers, that is to be expected of this release's "
    "noise, drawing and prior. It is computed from public parameters (headcounts, cells, noise, how well the prior is "
    "believed to fit), never from the confidential table. It allows for a prior that is wrong for the figure as a "
    "whole, and for areas smaller than the cells between which the release tells origins apart, whose figures are the "
    "prior's share of a cell. A figure is weak where its expected error is above half of it, and noise where it is at "
    "least the figure itself."
)


@dataclass(frozen=True)
class FigureErrors:
    """What the errors of a release's figures are made of, for every code of a zone as a destination.

    Attributes
    ----------
    headcount : ndarray of float64, shape (codes,)
        n, workers; 0 where nobody works.
    prior : ndarray of float64, shape (codes,)
        Expected synthetic workers that are drawn from the prior.
    parts : Parts
        Each of shape (codes,).
    drawn : Drawn
        How the release's mechanism works.
    group : ndarray of uint8, shape (codes,)
        Class of headcount, in powers of 2, in which shares are estimated together.
    unit : ndarray of uint32, shape (codes,), or None
        The unit of each zone that is a cell of its own for destinations of `Parts.by_unit`; None without such.
    weight : ndarray of float64, shape (codes,)
        Of zones in their unit.
    """

    headcount: Numbers
    prior: Numbers
    parts: Parts
    drawn: Drawn
    group: NDArray[np.uint8]
    unit: NDArray[np.uint32] | None
    weight: Numbers

    @property
    def groups(self) -> int:
        """How many classes there are."""
        return int(self.group.max(initial=0)) + 1

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        units = 0 if self.unit is None else self.unit.nbytes
        return sum(one.nbytes for one in (self.headcount, self.prior, *self.parts, self.group, self.weight)) + units

    def grouped(self, key: NDArray[np.integer], keys: int) -> Parts:
        """Return what makes errors, summed over destinations by key and class, each of shape (keys, groups).

        Parameters
        ----------
        key : ndarray of int, shape (codes,)
            Which set of destinations a code belongs to; -1 for none.
        keys : int
        """
        at = np.flatnonzero((key >= 0) & (self.parts.size > 0))
        place = key[at].astype(np.int64) * self.groups + self.group[at]
        sums = (np.bincount(place, one[at], keys * self.groups) for one in self.parts)
        return Parts(*(np.asarray(one, float).reshape(keys, self.groups) for one in sums))

    def shapes(self, key: NDArray[np.integer], keys: int) -> Shapes | None:
        """Return how the origins of figures lie among the units that are cells; None where no units are.

        Parameters
        ----------
        key : ndarray of int, shape (codes,)
            The figure that an origin belongs to; -1 for none.
        keys : int
        """
        if self.unit is None:
            return None
        at = np.flatnonzero(key >= 0)
        pairs, place = np.unique(key[at].astype(np.int64) * self.unit.size + self.unit[at], return_inverse=True)
        mine = np.bincount(place, self.weight[at], pairs.size)
        figure, unit = np.divmod(pairs, self.unit.size)
        every = np.bincount(self.unit, self.weight)[unit]
        whole = np.bincount(figure, mine * mine / every, keys)
        total = np.bincount(figure, mine, keys)
        cells = np.bincount(figure, minlength=keys)
        return Shapes(np.maximum(1.0, cells), np.where(total > 0, whole / np.where(total > 0, total, 1.0), 1.0))

    def expected(
        self, workers: NDArray[Any], sums: Parts, shapes: Shapes | None = None, alike: NDArray[Any] | None = None
    ) -> Expected:
        """Return the expected error of each figure.

        Parameters
        ----------
        workers : ndarray, shape (figures, columns, groups)
            Synthetic workers of a figure (and its segments) by class of their destination.
        sums : Parts
            Of the destinations that each figure is about (`grouped`), those without any of its workers too; or of those
            that all are about.
        shapes : Shapes, optional
            Of the origins that each figure, or all of them, are about; left out, they lie scattered.
        alike : ndarray, shape (columns,), optional
            Workers of whom figures by distance are parts: there the prior is off at all destinations alike.
        """
        return expected_error(workers, sums, shapes, self.drawn, alike)

    def of_flows(
        self, workers: NDArray[np.integer], origins: NDArray[np.integer], destinations: NDArray[np.integer]
    ) -> Numbers:
        """Return the expected error of flows between single zones, given by their codes, workers."""
        there, of = np.unique(destinations, return_inverse=True)
        sums = Parts(*(one[there][of, None] for one in self.parts))
        shapes = None
        if self.unit is not None:
            every = np.bincount(self.unit, self.weight)
            shapes = Shapes(np.ones(origins.size), self.weight[origins] / every[self.unit[origins]])
        return self.expected(workers.astype(float)[:, None, None], sums, shapes).error[:, 0]

    def of_units(
        self,
        workers: NDArray[np.integer],
        origins: NDArray[np.integer],
        destinations: NDArray[np.integer],
        homes: NDArray[np.integer],
        works: NDArray[np.integer],
    ) -> Numbers:
        """Return the expected error of flows between units, workers: as if each went evenly into its destination.

        Parameters
        ----------
        workers, origins, destinations : ndarray of int, shape (flows,)
            The ends are units.
        homes, works : ndarray of int, shape (codes,)
            The unit of each zone as an origin, and as a destination; -1 for none.
        """
        there, of = np.unique(destinations, return_inverse=True)
        sums = Parts(*(one[of] for one in self.grouped(_numbered(works, there), there.size)))
        here, at = np.unique(origins, return_inverse=True)
        shapes = self.shapes(_numbered(homes, here), here.size)
        if shapes is not None:
            shapes = Shapes(*(one[at] for one in shapes))
        every = np.maximum(sums.size.sum(axis=1), 1.0)
        parted = (workers / every)[:, None] * sums.size
        return self.expected(parted[:, None, :], sums, shapes).error[:, 0]

    def of_residents(self, workers: NDArray[np.integer], unit: NDArray[np.integer]) -> Numbers:
        """Return the expected error of all who live in each unit, workers: as if they went evenly to all destinations.

        Parameters
        ----------
        workers : ndarray of int, shape (units,)
        unit : ndarray of int, shape (codes,)
            The unit of each zone; -1 for none.
        """
        sums = self.grouped(np.zeros(unit.size, np.int64), 1)
        even = sums.size / max(1.0, float(sums.size.sum()))
        known = np.stack([workers, *(self.shapes(unit, workers.size) or ())])
        kinds, of = np.unique(known, axis=1, return_inverse=True)  # many have as many residents as others
        found = np.empty(kinds.shape[1])
        for at in range(0, found.size, _TOGETHER):
            residents, *rest = kinds[:, at : at + _TOGETHER]
            parted = residents[:, None, None] * even
            found[at : at + _TOGETHER] = self.expected(parted, sums, Shapes(*rest) if rest else None).error[:, 0]
        return found[of]

    def of_total(self, destinations: NDArray[np.bool_]) -> float:
        """Return the error of the workers at all of some destinations together: 0 where m = n."""
        return float(abs((self.parts.size - self.headcount)[destinations].sum()))

    def prior_share(self, destinations: NDArray[np.bool_]) -> float | None:
        """Return the expected share of the workers at some destinations that are drawn from the prior."""
        workers = self.parts.size[destinations].sum()
        return float(self.prior[destinations].sum() / workers) if workers else None


def _numbered(unit: NDArray[np.integer], chosen: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the place among `chosen` units (ascending) of each zone's unit; -1 for others."""
    at = np.minimum(np.searchsorted(chosen, unit), max(0, chosen.size - 1))
    if not chosen.size:
        return np.full(unit.size, -1, np.int64)
    return np.where(chosen[at] == unit, at, -1).astype(np.int64)


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
    plan = opened.collect(opened.plan)
    zones = units_of(opened, ZONE)
    codes, known = zones.find(plan["destination"].cast(pl.String))
    if not known.all():
        raise ReleaseCorruptError(f"release {opened.id}: plan.parquet must name zones of the release; verify it")
    n, m = plan["headcount"].to_numpy(), plan["synthetic_size"].to_numpy().astype(float)
    strength = plan["prior_strength"].to_numpy()
    prior = opened.manifest.prior
    within = max(prior.strength, prior.strength_inside or 0.0)
    cells, finest = plan["cells"].to_numpy().astype(float), plan["finest"].to_numpy()
    level = int(finest.max(initial=-1))
    units = None
    if level >= 0:
        levels = (*opened.manifest.zones.levels, ZONE)
        units = units_of(opened, levels[min(level, len(levels) - 1)])
    variance = planned_variance(plan)
    noisy = bool(plan["share_variance"].is_not_null().any())
    pulled = plan["prior_share"].to_numpy()
    noise = plan["noise_units"].fill_null(0).to_numpy() / UNITS
    ratio = noise / (1.0 - noise)
    segments = max(1, len(opened.manifest.segments))
    with np.errstate(divide="ignore"):
        precision = np.where((ratio > 0) & (cells * segments > 1), (1.0 - ratio) ** 2 / (2.0 * ratio * segments), 0.0)
    gaussian = int(plan["gaussian_units"].max() or 0)  # type: ignore[arg-type]
    if gaussian:
        precision = np.where(cells * segments > 1, 1.0 / (gaussian_variance(gaussian) * segments), 0.0)
    by_unit = np.zeros(n.size) if units is None else (finest == level) & (cells >= len(units))
    parts = Parts(
        destinations=np.ones(n.size),
        size=m,
        spread=m**2 * variance,
        believed=m**2 * (1.0 / (1.0 + strength) + 1.0 / n),
        inside=m**2 * (1.0 / (1.0 + within) + 1.0 / n + 1.0 / m),
        per_cell=m / cells,
        pulled=m * pulled * (strength / (strength + n) if noisy else 1.0),
        doubt=m / np.sqrt(1.0 + strength),
        precision=precision,
        by_unit=np.asarray(by_unit, float),
    )

    def placed(values: NDArray[Any]) -> Numbers:
        out = np.zeros(len(zones))
        out[codes] = values
        return out

    group = np.zeros(len(zones), np.uint8)
    group[codes] = np.log2(n).astype(np.uint8)
    inside = zones.find(opened.places.ids)[0]
    weight = np.ones(len(zones))
    weight[inside] = np.maximum(opened.places.table["weight"].to_numpy(), 1e-6)
    drawn = Drawn(noisy=noisy, within=within)
    of = None if units is None or not by_unit.any() else units.of
    return FigureErrors(placed(n), placed(m * pulled), Parts(*map(placed, parts)), drawn, group, of, weight)
