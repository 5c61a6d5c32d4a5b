"""The canonical order of zones, made after checking ids, coordinates and parents."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.errors import GeographyError
from synthmap.geography.zones import ELSEWHERE, Zones, some_of


def canonical(
    *,
    ids: pa.StringArray,
    longitude: NDArray[np.float64],
    latitude: NDArray[np.float64],
    weight: NDArray[np.int64],
    levels: tuple[str, ...],
    parents: tuple[pa.StringArray, ...],
    vintage: str,
    shapes: pa.BinaryArray | None = None,
) -> Zones:
    """Return the zones in canonical order, after checking ids and coordinates.

    Within each parent, children are ordered by the Hilbert index of their weighted mean point, ties
    by id, so the order does not depend on that of the input.

    Raises
    ------
    GeographyError
        If there are no zones, an id is missing or twice there, a coordinate is missing or out of
        range, a weight is negative, a parent is missing, or one lies in two parents of the next
        coarser level.
    """
    _check_ids(ids)
    _check_numbers(ids, longitude, latitude, weight)
    codes = [_codes(ids, level, names) for level, names in zip(levels, parents, strict=True)]
    for upper in range(len(levels) - 1):
        _check_nesting(levels, parents, codes, upper)
    by_id = np.asarray(pc.array_sort_indices(ids).to_numpy(), dtype=np.int64)
    order = _order(by_id, longitude, latitude, weight, codes)
    rank = np.empty(order.size, np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    take = pa.array(order)
    return Zones(
        ids=ids.take(take),
        by_id=rank[by_id],
        longitude=longitude[order],
        latitude=latitude[order],
        weight=weight[order].astype(np.int64),
        levels=levels,
        parents=tuple(p.take(take) for p in parents),
        vintage=vintage,
        shapes=None if shapes is None else shapes.take(take),
    )


def _check_ids(ids: pa.StringArray) -> None:
    """Refuse no zones, empty ids, double ids and the reserved word."""
    if len(ids) == 0:
        raise GeographyError("zones (0) must be at least one; the zones file has only a header")
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        raise GeographyError("every zone must have an id; at least one is empty")
    if pl.Series(ids, dtype=pl.String).n_unique() < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        raise GeographyError(f"zone ids must be unique; {len(twice)} occur more than once: {some_of(twice)}")
    if pc.any(pc.equal(ids, ELSEWHERE)).as_py():
        raise GeographyError(f"zone id ({ELSEWHERE}) must be another word: it names origins off the map")


def _check_numbers(
    ids: pa.StringArray,
    longitude: NDArray[np.float64],
    latitude: NDArray[np.float64],
    weight: NDArray[np.int64],
) -> None:
    """Refuse coordinates off the globe or missing, and negative weights."""
    inside = (np.abs(longitude) <= 180) & (np.abs(latitude) <= 90)  # False for NaN
    if not inside.all():
        faulty = ids.filter(pa.array(~inside))
        raise GeographyError(
            f"zone coordinates must be longitude −180…180 and latitude −90…90; "
            f"{len(faulty)} zones have none or others: {some_of(faulty)}"
        )
    if (weight < 0).any():
        faulty = ids.filter(pa.array(weight < 0))
        raise GeographyError(f"zone weights must be at least 0; not so for {some_of(faulty)}")


def _codes(ids: pa.StringArray, level: str, names: pa.StringArray) -> NDArray[np.int64]:
    """Return integer codes of the parents `names`, in the sorted order of the distinct names."""
    missing = pc.or_kleene(pc.is_null(names), pc.equal(names, ""))
    if pc.any(missing).as_py():
        raise GeographyError(
            f"every zone must have a parent at level {level}; missing for {some_of(ids.filter(missing))}"
        )
    distinct = pc.unique(names).sort()
    if ELSEWHERE in distinct.to_pylist():
        raise GeographyError(f"no {level} may be called {ELSEWHERE}: that is what lies outside all zones")
    return np.asarray(pc.index_in(names, value_set=distinct).to_numpy(), dtype=np.int64)


def _check_nesting(
    levels: tuple[str, ...],
    parents: tuple[pa.StringArray, ...],
    codes: list[NDArray[np.int64]],
    upper: int,
) -> None:
    """Refuse a parent of level `upper` + 1 that lies in two parents of level `upper`."""
    coarse, fine = codes[upper], codes[upper + 1]
    claimed = np.empty(int(fine.max()) + 1, np.int64)
    claimed[fine] = coarse
    torn = claimed[fine] != coarse
    if torn.any():
        faulty = pc.unique(parents[upper + 1].filter(pa.array(torn))).sort()
        raise GeographyError(
            f"every {levels[upper + 1]} must lie in one {levels[upper]}; "
            f"{len(faulty)} lie in several: {some_of(faulty)}"
        )


def _order(
    by_id: NDArray[np.int64],
    longitude: NDArray[np.float64],
    latitude: NDArray[np.float64],
    weight: NDArray[np.int64],
    codes: list[NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return the permutation into canonical order; `by_id` is that into the order of ids.

    Everything is first put in the order of ids, so that neither ties nor the rounding of the mean
    points depend on the order of the input.
    """
    x, y, mass = longitude[by_id], latitude[by_id], weight[by_id] + 1.0
    place = np.zeros(by_id.size, np.int64)
    for unsorted in codes:
        code = unsorted[by_id]
        total = np.bincount(code, mass)
        curve = hilbert(np.bincount(code, mass * x) / total, np.bincount(code, mass * y) / total)
        above = np.empty(total.size, np.int64)
        above[code] = place
        rank = np.empty(total.size, np.int64)
        rank[np.lexsort((curve, above))] = np.arange(total.size)
        place = rank[code]
    return by_id[np.lexsort((hilbert(x, y), place))]


@compiled
def hilbert(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index along a Hilbert curve of order 24 over the whole globe.

    Notes
    -----
    Each step takes one bit of either coordinate, most significant first, and turns the rest of the
    cell so that the curve leaves one quadrant where it enters the next: coordinates swapped, both flipped, or both.

    References
    ----------
    Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
    """
    last = 2**24 - 1
    out = np.empty(longitude.size, np.int64)
    for i in range(out.size):
        x = np.int64(min(max((longitude[i] + 180.0) / 360.0 * 2**24, 0.0), float(last)))
        y = np.int64(min(max((latitude[i] + 90.0) / 180.0 * 2**24, 0.0), float(last)))
        index = swapped = flipped = np.int64(0)
        for bit in range(23, -1, -1):  # without branches, which a processor would guess wrong half the time
            right, upper = x >> bit & 1, y >> bit & 1
            turned = flipped ^ ((right ^ upper) & swapped)
            right, upper = right ^ turned, upper ^ turned
            index = 4 * index + (3 * right ^ upper)
            swapped, flipped = swapped ^ 1 ^ upper, flipped ^ (right & ~upper)
        out[i] = index
    return out
