"""What layers of features have in common, and values by which features are chosen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.published.features_region import Region
from synthmap.published.store import OpenedRelease

Kind = Literal["string", "number", "boolean"]


@dataclass(frozen=True)
class Property:
    """A property of features: its JSON type and what it means."""

    type: Literal["string", "integer", "number"]
    description: str


class Stretch(Protocol):
    """Some consecutive features of a layer, looked at together."""

    def __len__(self) -> int:
        """Features."""
        ...

    def codes(self, end: str) -> NDArray[np.uint32]:
        """Return, for every feature, which unit its `end` is."""
        ...

    def units(self, end: str) -> NDArray[np.uint32] | None:
        """Return which units its `end` can be, if that is known without looking at each feature."""
        ...


@dataclass(frozen=True)
class Operand:
    """Values of something that depends on features.

    Attributes
    ----------
    kind : str
        What it is.
    of : str
        What has one value each: ``row`` (every feature), ``constant``, or an end: every unit that features end at.
        What depends on one end alone is found once a unit, not once a feature.
    get : callable
        Values for the features of a stretch; an end's and constants do not depend on it.
    """

    kind: Kind
    of: str
    get: Callable[[Stretch], pl.Series]

    def rows(self, stretch: Stretch) -> pl.Series:
        """Return a value for every feature of a stretch."""
        values = self.get(stretch)
        if self.of == "constant":
            return values.new_from_index(0, len(stretch))
        return values if self.of == "row" else values.gather(stretch.codes(self.of))

    def true(self, stretch: Stretch) -> NDArray[np.bool_]:
        """Return for which features of a stretch it is true; quickly, where the ends show that it is of none."""
        units = stretch.units(self.of)
        if units is not None and not self.get(stretch).gather(units).any():
            return np.zeros(len(stretch), np.bool_)
        values = self.rows(stretch)
        return (values.fill_null(value=False) if values.null_count() else values).to_numpy()


class Layer(Protocol):
    """Features of a release in a fixed order; the id of a feature is its place in it, from 0."""

    opened: OpenedRelease
    kind: str

    @property
    def properties(self) -> dict[str, Property]:
        """Properties of its features by name."""
        ...

    def __len__(self) -> int:
        """Features."""
        ...

    def stretches(self) -> Iterator[Stretch]:
        """Yield all features in order."""
        ...

    def column(self, name: str) -> Operand:
        """Return the values of a property."""
        ...

    def meeting(self, region: Region) -> Operand:
        """Return which features meet a region; those without a geometry do not."""
        ...

    def read(self, rows: NDArray[np.int64], crs: str) -> tuple[pl.DataFrame, NDArray[np.object_]]:
        """Return properties and geometries (None where there is none) of the features at `rows`, ascending."""
        ...
