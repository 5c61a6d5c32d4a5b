"""Read published releases: zones, table and plan."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.analysis.table import ODTable
from synthmap.errors import ReleaseCorruptError
from synthmap.geography.canonical import canonical
from synthmap.geography.zones import ELSEWHERE, Zones
from synthmap.release.manifest import Manifest

_TABLE = ["origin", "destination", "count"]
_OF_ONE_MECHANISM = {
    "alpha_numerator": 0, "alpha_denominator": 1, "keep_units": 2**16,
    "groups_asked": 1, "groups": 1, "noise_units": 0, "group_noise_units": 0, "gaussian_units": 0,
    "common_part": np.nan,
}  # fmt: skip


@dataclass(frozen=True)
class PublishedPlan:
    """What a release says about its destinations; arrays of equal length, destinations ascending by rank.

    Attributes
    ----------
    destination : ndarray of int32
        Rank.
    headcount, size : ndarray of int64
        n(d) and m(d).
    cells_asked, cells : ndarray of int64
        Cells that coarsening was asked for, and those it made, k(d).
    prior_share : ndarray of float64
        How much of what is published is prior, not data.
    predicted_km : ndarray of float64
        Predicted root mean square error of the average commute; NaN where the plan has none.
    finest : ndarray of int64
        Coarsening: −1 by prior mass, else by distance down to this level.
    alpha_numerator, alpha_denominator, keep_units : ndarray of int64
        Of Dirichlet resampling: α of a cell and segment, workers; smallest keep probability in 1/2^16. Else 0, 1, 2^16.
    groups_asked, groups, noise_units, group_noise_units, gaussian_units : ndarray of int64
        Of the histogram, see `synthmap.mechanism.histogram_plan`. Else 1, 1, 0, 0, 0.
    common_part : ndarray of float64
        Expected common part of true and published origins by the level that the histogram was planned for. Else NaN.
    """

    destination: NDArray[np.int32]
    headcount: NDArray[np.int64]
    size: NDArray[np.int64]
    cells_asked: NDArray[np.int64]
    cells: NDArray[np.int64]
    predicted_km: NDArray[np.float64]
    prior_share: NDArray[np.float64]
    finest: NDArray[np.int64]
    alpha_numerator: NDArray[np.int64]
    alpha_denominator: NDArray[np.int64]
    keep_units: NDArray[np.int64]
    groups_asked: NDArray[np.int64]
    groups: NDArray[np.int64]
    noise_units: NDArray[np.int64]
    group_noise_units: NDArray[np.int64]
    gaussian_units: NDArray[np.int64]
    common_part: NDArray[np.float64]

    @property
    def resampled(self) -> bool:
        """Whether real counts were resampled, as Dirichlet resampling does; else noise was added to them."""
        return not (self.noise_units.any() or self.gaussian_units.any())

    def mass(self, segments: int) -> NDArray[np.float64]:
        """Return A = Σα over cells and segments, workers."""
        return self.alpha_numerator / self.alpha_denominator * self.cells * segments


def read_zones_of(directory: Path, manifest: Manifest) -> Zones:
    """Return the zones of a release, in canonical order."""
    levels = manifest.zones.levels
    table = _read(directory / "zones.parquet", ["id", *levels, "weight", "longitude", "latitude"])
    ids = table["id"].cast(pa.string()).combine_chunks()
    inside = np.asarray(ids.to_numpy(zero_copy_only=False) != ELSEWHERE)
    table = table.filter(pa.array(inside))
    return canonical(
        ids=_text(table, "id"),
        longitude=table["longitude"].to_numpy(),
        latitude=table["latitude"].to_numpy(),
        weight=table["weight"].to_numpy(),
        levels=tuple(levels),
        parents=tuple(_text(table, level) for level in levels),
        vintage=manifest.zones.vintage,
    )


def read_od(directory: Path, manifest: Manifest, zones: Zones) -> ODTable:
    """Return the table of a release over `zones`; an id that is not one of them is an error.

    Raises
    ------
    UnknownZoneError
        If an id of the table is not a zone.
    """
    blocks = [
        _ranks(_read(directory / name, _TABLE), zones, name)
        for name in sorted(manifest.files)
        if name.startswith("od/")
    ]
    if not blocks:
        raise ReleaseCorruptError(f"release {manifest.release}: od/ must hold the table")
    origin, destination, count = zip(*blocks, strict=True)
    return ODTable(np.concatenate(origin), np.concatenate(destination), np.concatenate(count))


def _ranks(table: pa.Table, zones: Zones, name: str) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return (origin, destination, count) of a part of the table; only distinct ids are looked up."""
    ranks = []
    for column in ("origin", "destination"):
        coded = _text(table, column).dictionary_encode()
        known = zones.find(coded.dictionary).copy()
        if column == "origin":
            known[np.asarray(coded.dictionary.to_numpy(zero_copy_only=False) == ELSEWHERE)] = len(zones)
        if (known < 0).any():
            zones.ranks(coded.dictionary.filter(pa.array(known < 0)), table=name, column=column)
        ranks.append(known[coded.indices.to_numpy()])
    return ranks[0], ranks[1], table["count"].to_numpy().astype(np.int64)


def read_plan(directory: Path, zones: Zones) -> PublishedPlan:
    """Return the plan of a release."""
    names = (
        "destination",
        "headcount",
        "synthetic_size",
        "cells_asked",
        "cells",
        "predicted_km",
        "prior_share",
        "finest",
    )
    path = directory / "plan.parquet"
    own = [name for name in _OF_ONE_MECHANISM if name in _columns(path)]
    table = _read(path, [*names, *own])
    rank = zones.ranks(_text(table, "destination"), table="plan.parquet", column="destination")
    order = np.argsort(rank)
    found = [table[name].to_numpy()[order] for name in names[1:]]
    for name, usual in _OF_ONE_MECHANISM.items():
        found.append(table[name].to_numpy()[order] if name in own else np.full(order.size, usual))
    return PublishedPlan(rank[order], *found)


def _text(table: pa.Table, name: str) -> pa.StringArray:
    column = table[name].cast(pa.string()).combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _columns(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise ReleaseCorruptError(f"{path} must be a Parquet file") from None


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns, partitioning=None)
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError):
        raise ReleaseCorruptError(f"{path} must be a Parquet file with the columns {', '.join(columns)}") from None
