"""The units of a level, as the ends of flows: numbered in the order of their ids, with everywhere else among them."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import QueryError, ReleaseCorruptError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.places import ZONE, Places

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Units:
    """Units of one level. A unit's *code* is its place here; the code of a zone is that at the level `ZONE`.

    Attributes
    ----------
    level : str
    names : polars.Series of str
        Ids, ascending by UTF-8 bytes; `ELSEWHERE` is one of them where the release has it.
    of : ndarray of uint32, shape (codes of zones,)
        The unit of every zone; everywhere else is a unit of its own.
    longitude, latitude : ndarray of float64, shape (units,)
        Internal points of zones, mean points of units (see `Places.mean_points`), NaN for everywhere else.
    """

    level: str
    names: pl.Series
    of: NDArray[np.uint32]
    longitude: NDArray[np.float64]
    latitude: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory."""
        return int(self.names.estimated_size()) + self.of.nbytes + self.longitude.nbytes + self.latitude.nbytes

    def find(self, ids: pl.Series) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """Return the code of each id, and whether it is one."""
        order = ids.arg_sort().to_numpy()  # searching neighbours one after the other takes half the time
        codes = np.empty(order.size, np.uint32)
        codes[order] = np.minimum(self.names.search_sorted(ids.gather(order)).to_numpy(), len(self) - 1)
        return codes, (self.names.gather(codes) == ids).to_numpy()

    def codes(self, ids: tuple[str, ...], parameter: str) -> NDArray[np.uint32]:
        """Return the codes of `ids`.

        Raises
        ------
        QueryError
            If some are not units of this level; names up to ten of them.
        """
        codes = [bisect_left(self.names, name) for name in ids]  # text is ordered like its UTF-8
        unknown = [
            name for name, code in zip(ids, codes, strict=True) if self.names[code : code + 1].to_list() != [name]
        ]
        if unknown:
            shown = ", ".join(map(repr, unknown[:10])) + (", …" if len(unknown) > 10 else "")
            raise QueryError(
                f"{parameter} ({shown}) must be an id at level {self.level}; ids are text, so leading zeros matter"
            )
        return np.array(codes, np.uint32)

    def ids(self, codes: NDArray[np.uint32]) -> pl.Series:
        """Return the ids of codes."""
        return self.names[pl.Series(codes)]


def zones_as_units(places: Places, *, elsewhere: bool) -> Units:
    """Return the zones themselves as units; `elsewhere` says whether the release has everywhere else."""
    gap = _gap(places.ids, elsewhere)
    return Units(
        ZONE,
        _with_elsewhere(places.ids, gap),
        np.arange(len(places) + elsewhere, dtype=np.uint32),
        _with(places.longitude, gap, np.nan),
        _with(places.latitude, gap, np.nan),
    )


def parents_as_units(places: Places, level: str, *, elsewhere: bool) -> Units:
    """Return the units of a parent level."""
    column = places.table[level]
    names = column.unique().sort()
    if elsewhere and ELSEWHERE in names:
        raise ReleaseCorruptError(f"no unit of level {level} may be called {ELSEWHERE}; name it otherwise")
    gap = _gap(names, elsewhere)
    of = names.search_sorted(column).to_numpy().astype(np.uint32)
    longitude, latitude = places.mean_points(of, len(names))
    if gap is not None:
        of[of >= gap] += 1
    return Units(
        level,
        _with_elsewhere(names, gap),
        _with(of, _gap(places.ids, elsewhere), gap),
        _with(longitude, gap, np.nan),
        _with(latitude, gap, np.nan),
    )


def _gap(names: pl.Series, elsewhere: bool) -> int | None:
    """Return where everywhere else belongs among sorted names."""
    return int(names.search_sorted(ELSEWHERE)) if elsewhere else None


def _with(values: NDArray[Number], gap: int | None, value: float | None) -> NDArray[Number]:
    """Return `values` with one more at `gap`."""
    if gap is None or value is None:
        return values
    inserted: NDArray[Number] = np.insert(values, gap, value)
    return inserted


def _with_elsewhere(names: pl.Series, gap: int | None) -> pl.Series:
    """Return `names` with everywhere else at `gap`."""
    if gap is None:
        return names
    middle = pl.Series(names.name, [ELSEWHERE], dtype=pl.String)
    return pl.concat([names[:gap], middle, names[gap:]]).rechunk()
