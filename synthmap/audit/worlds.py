"""Worlds to audit: a region, destinations with headcounts, settings; and every table that can be confidential there."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.geography.canonical import canonical
from synthmap.geography.prior import NO_TABLE, prior_from
from synthmap.geography.region import Region, make_region
from synthmap.kernels.destination import coarsen
from synthmap.mechanism.chosen import HISTOGRAM
from synthmap.mechanism.plan import Plan, PlanSettings, model_of
from synthmap.mechanism.table import Counts, SyntheticCounts
from synthmap.privacy.rule import Rule

Table = tuple[tuple[int, ...], ...]
"""For each destination the keys rank·S + segment of its workers, ascending."""
Outcome = tuple[int, ...]
"""Workers by (destination, origin, segment), everywhere else included, flat."""

SETTINGS = PlanSettings(
    epsilon=1.5,
    delta=0.02,
    rule=Rule.PDP,
    cells=3,
    finest=-1,
    keep=1.0,
    keep_by_prior=False,
    segments=1,
    scale_km=4.0,
    power=2.0,
    elsewhere_share=0.2,
    strength=20.0,
)


@dataclass(frozen=True)
class World:
    """What is public: where destinations lie, how many work there, what was asked for.

    Attributes
    ----------
    name : str
    region : Region
    places : tuple of int
        Rank of each destination.
    headcount : tuple of int
    settings : PlanSettings
    """

    name: str
    region: Region
    places: tuple[int, ...]
    headcount: tuple[int, ...]
    settings: PlanSettings

    @property
    def origins(self) -> int:
        """The number of origins, everywhere else included."""
        return len(self.region.zones) + 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """That of an outcome: (destinations, origins, segments)."""
        return len(self.places), self.origins, self.settings.segments

    @property
    def promised_delta(self) -> float:
        """The δ asked for, which is none under the pure rule and for the histogram without Gaussian noise."""
        noisy = self.settings.mechanism == HISTOGRAM.name and not self.settings.gaussian
        pure = self.settings.rule is Rule.PURE or noisy
        return 0.0 if pure else self.settings.delta

    def tables(self) -> Iterator[Table]:
        """Yield every confidential table."""
        keys = range(self.origins * self.settings.segments)
        yield from product(*(combinations_with_replacement(keys, n) for n in self.headcount))

    def neighbours(self, table: Table) -> Iterator[Table]:
        """Yield every table in which one worker of `table` has another origin or segment."""
        for d, here in enumerate(table):
            for i in range(len(here)):
                for key in set(range(self.origins * self.settings.segments)) - {here[i]}:
                    moved = tuple(sorted((*here[:i], *here[i + 1 :], key)))
                    yield (*table[:d], moved, *table[d + 1 :])

    def counts(self, table: Table, repeats: int) -> Counts:
        """Return `table` as a release would hand it to a mechanism, `repeats` times in a row."""
        rows, origins, workers = [], [], []
        for here in table:
            dense = np.bincount(here, minlength=self.origins * self.settings.segments)
            dense = dense.reshape(self.origins, self.settings.segments)
            occupied = np.flatnonzero(dense.sum(axis=1))
            rows.append(occupied.size)
            origins.append(occupied)
            workers.append(dense[occupied])
        return Counts(
            np.append(0, np.cumsum(np.tile(rows, repeats))).astype(np.int64),
            np.tile(np.concatenate(origins), repeats).astype(np.int32),
            np.tile(np.concatenate(workers), (repeats, 1)).astype(np.int64),
        )

    def copies(self, plan: Plan, repeats: int, *, first: int = 0) -> tuple[Region, Plan]:
        """Return a region and a plan with `repeats` copies of every destination, each with a number of its own.

        Each number draws from a stream of its own; copies of the whole world are counted from `first`.
        """
        tiled = replace(plan, **{field.name: np.tile(getattr(plan, field.name), repeats) for field in fields(plan)})
        numbers = np.arange(first * len(plan), (first + repeats) * len(plan), dtype=np.int32)
        region = _Copies(self.region.zones, self.region.tree, np.array(self.places, np.int32))
        return region, replace(tiled, destination=numbers)

    def outcomes(self, drawn: SyntheticCounts, repeats: int, *, first: int = 0) -> NDArray[np.int64]:
        """Return draws of `copies` as rows of workers by (destination, origin, segment)."""
        destinations = len(self.places)
        out = np.zeros((repeats * destinations, *self.shape[1:]), np.int64)
        out[drawn.destination - first * destinations, drawn.origin] = drawn.workers
        return out.reshape(repeats, -1)

    def cells(self, plan: Plan) -> NDArray[np.int64]:
        """Return for each figure of an outcome the number of its urn cell, counted over all destinations."""
        settings, found, before = self.settings, [], 0
        points = self.region.points(plan.destination)
        for d in range(len(plan)):
            prior = prior_from(self.region.tree, model_of(settings, NO_TABLE), points[d], int(plan.destination[d]))
            asked = int(plan.cells_asked[d])
            own = 1 if settings.mechanism == HISTOGRAM.name else asked
            bounds = coarsen(self.region.tree, points[d], prior, int(plan.finest[d]), asked, own)
            cell = np.searchsorted(bounds, np.arange(self.origins), side="right") - 1
            found.append(before + cell[:, None] * settings.segments + np.arange(settings.segments))
            before += int(plan.cells[d]) * settings.segments
        return np.concatenate(found).ravel()


@dataclass(frozen=True)
class _Copies(Region):
    """A region whose destinations are numbered copies of zones."""

    places: NDArray[np.int32]

    def points(self, ranks: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return where the copies lie."""
        return super().points(self.places[ranks % self.places.size])


def four_zones() -> Region:
    """Return a region of four zones in two counties 15 km apart."""
    return _region([0.0, 0.01, 0.2, 0.21], [50.0, 50.01, 50.0, 50.02], [1, 2, 1, 1], ["x", "x", "y", "y"])


def two_zones() -> Region:
    """Return a region of two zones."""
    return _region([0.0, 0.1], [50.0, 50.0], [1, 1], ["x", "y"])


def twelve_zones() -> Region:
    """Return a region of twelve zones in three counties."""
    places = np.arange(12)
    return _region(
        list(0.2 * (places // 4) + 0.02 * (places % 2)),
        list(50.0 + 0.02 * (places % 4)),
        list(1 + places % 3),
        [f"county {c}" for c in places // 4],
    )


def town_and_hamlet() -> Region:
    """Return a region of 48 zones in three counties, and 60 km away one small zone in a county of its own ("48")."""
    places = np.arange(48)
    return _region(
        [*(0.02 * (places % 8)), 0.9],
        [*(50.0 + 0.02 * (places // 8)), 50.0],
        [*(20 + places % 5), 1],
        [*(f"county {c}" for c in places // 16), "county 3"],
    )


def _region(longitude: list[float], latitude: list[float], weight: list[int], county: list[str]) -> Region:
    return make_region(
        canonical(
            ids=pa.array([f"{i:02}" for i in range(len(county))]),
            longitude=np.array(longitude),
            latitude=np.array(latitude),
            weight=np.array(weight),
            levels=("county",),
            parents=(pa.array(county),),
            vintage="audit",
        )
    )
