"""Zones: the units of a user's geography, in one canonical order that everything else counts in.

The order, see `canonical`, is depth first through the parent levels, neighbours in space next to each other, so that
every parent, and every cell of a coarsened domain, is a contiguous range of ranks.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.errors import UnknownZoneError

ELSEWHERE = "elsewhere"
_SAME_DEGREES = 1e-7  # a centimetre: other versions of GEOS and PROJ round otherwise


@dataclass(frozen=True)
class Zones:
    """All possible origins and destinations inside the map, in canonical order. Public.

    Attributes
    ----------
    ids : pyarrow.StringArray
        Opaque, unique ids; the position of an id is its *rank*.
    by_id : ndarray of int32
        The ranks in the order of ids, by UTF-8 bytes.
    longitude, latitude : ndarray of float64
        Internal points, degrees, WGS 84.
    weight : ndarray of int64
        Public mass (for instance population), at least 0.
    levels : tuple of str
        Names of the parent levels, coarsest first; may be empty.
    parents : tuple of pyarrow.StringArray
        For each level, the parent's id of every zone.
    vintage : str
        Which edition of the geography the ids belong to.
    shapes : pyarrow.BinaryArray or None
        WKB in WGS 84 to draw the zones by; None where only their points are known.
    """

    ids: pa.StringArray
    by_id: NDArray[np.int32]
    longitude: NDArray[np.float64]
    latitude: NDArray[np.float64]
    weight: NDArray[np.int64]
    levels: tuple[str, ...]
    parents: tuple[pa.StringArray, ...]
    vintage: str
    shapes: pa.BinaryArray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def ranks(self, ids: pa.StringArray, *, table: str, column: str) -> NDArray[np.int32]:
        """Return the rank of each id.

        Raises
        ------
        UnknownZoneError
            If an id is not a zone; names up to ten of them and how many distinct ones there are.
        """
        found = self.find(ids)
        if (found < 0).any():
            raise UnknownZoneError(unknown_message(ids.filter(pa.array(found < 0)), table, column))
        return found

    def find(self, ids: pa.StringArray) -> NDArray[np.int32]:
        """Return the rank of each id, −1 where it is not a zone.

        Each distinct id is searched among the sorted ones, so that a block costs no more in a country than in a town.
        """
        coded = ids.dictionary_encode()
        distinct = pl.Series(coded.dictionary, dtype=pl.String)
        order = distinct.arg_sort()  # one neighbour after the other is searched in half the time
        distinct = distinct.gather(order)
        place = np.minimum(self._sorted.search_sorted(distinct).to_numpy(), len(self) - 1)
        known = (self._sorted.gather(place) == distinct).to_numpy()
        ranks = np.empty(order.len(), np.int32)
        ranks[order.to_numpy()] = np.where(known, self.by_id[place], -1)
        found: NDArray[np.int32] = np.append(ranks, np.int32(-1))[
            coded.indices.fill_null(ranks.size).to_numpy(zero_copy_only=False)
        ]
        return found

    @cached_property
    def _sorted(self) -> pl.Series:
        return pl.Series(self.ids.take(pa.array(self.by_id)), dtype=pl.String)


def same_ids(zones: Zones, others: Zones) -> bool:
    """Return whether two sets of zones have the same ids."""
    return len(zones) == len(others) and bool((zones.find(others.ids) >= 0).all())


def difference(zones: Zones, others: Zones) -> str:
    """Return in words what `others` have otherwise than `zones`; nothing if all that a release depends on is the same.

    Points are the same if they are within a centimetre. Shapes, which are only drawn, and the vintage do not matter.
    """
    if not same_ids(zones, others):
        return "ids"
    if zones.levels != others.levels:
        return f"levels ({', '.join(others.levels) or 'none'})"
    place = zones.find(others.ids)
    columns = {
        f"parents at level {level}": np.asarray(pc.not_equal(own.take(pa.array(place)), other))
        for level, own, other in zip(zones.levels, zones.parents, others.parents, strict=True)
    }
    columns["weights"] = zones.weight[place] != others.weight
    columns["points"] = np.maximum(
        np.abs(zones.longitude[place] - others.longitude), np.abs(zones.latitude[place] - others.latitude)
    ) > _SAME_DEGREES  # fmt: skip
    for name, differs in columns.items():
        if differs.any():
            return f"{name}, at {int(differs.sum()):,} of {len(zones):,} zones"
    return ""


def unknown_message(unknown: pa.StringArray, table: str, column: str) -> str:
    """Return the message for ids of `column` in file `table` that are not among the zones."""
    distinct = sorted(pc.unique(unknown.drop_null()).to_pylist())
    shown = ", ".join(repr(i) for i in distinct[:10]) + (", …" if len(distinct) > 10 else "")
    hint = ""
    if distinct and all(i.isdigit() for i in distinct):
        hint = "; if a leading zero is missing, the ids were read as numbers somewhere before"
    return (
        f"{table}: every id of column {column} must be one of the zones; {len(distinct)} distinct "
        f"id{' is' if len(distinct) == 1 else 's are'} not: {shown}{hint}"
    )


def some_of(ids: pa.Array) -> str:
    """Return up to ten ids as text."""
    return ", ".join(repr(i) for i in ids[:10].to_pylist()) + (", …" if len(ids) > 10 else "")
