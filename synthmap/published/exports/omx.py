"""OMX: a zone by zone matrix in HDF5, for transport models, with the ids of its rows and columns."""

from pathlib import Path

import h5py
import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ExportError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.exports import matrix
from synthmap.published.exports.about import about
from synthmap.published.exports.layers import unique
from synthmap.published.exports.rows import chunks
from synthmap.published.store import OpenedRelease

ZONES = 10_000  # of a matrix at most: a model that opens it needs 800 MB for each
_CELLS = 131_072  # of a chunk of the file: 1 MB


def write_omx(opened: OpenedRelease, path: Path, level: str) -> None:
    """Write origins (rows) by destinations (columns), one matrix for count and for each segment.

    Only zones that occur are in it, in the order of ids; everywhere else, if it occurs, is the last.

    Parameters
    ----------
    opened : OpenedRelease
    path : Path
    level : str
        What a row is: ``zone`` or a parent level.

    Raises
    ------
    ExportError
        If there are more than `ZONES`.
    """
    names, of_zone = _units(opened, level)
    rows, columns, values = _sums(opened, of_zone)
    occur = np.union1d(rows, columns)
    rows, columns = np.searchsorted(occur, rows), np.searchsorted(occur, columns)
    ids = [names[unit].encode() for unit in occur]
    with h5py.File(path, "w", track_order=True) as file:
        file.attrs["OMX_VERSION"] = np.bytes_(b"0.2")
        file.attrs["SHAPE"] = np.array([occur.size] * 2, np.int32)
        for name, value in (about(opened) | {"level": level}).items():
            file.attrs[name] = np.bytes_(value.encode())
        lookup, data = file.create_group("lookup"), file.create_group("data")
        width = max(map(len, ids))
        lookup.create_dataset("zone_id", data=np.array(ids, h5py.string_dtype("utf-8", width)))
        lookup.create_dataset("zone_number", data=np.arange(1, occur.size + 1, dtype=np.int32))
        for place, name in enumerate(unique(_matrix(one) for one in ("count", *opened.manifest.segments))):
            _fill(data, name, occur.size, rows, columns, values[:, place])


def _check(opened: OpenedRelease, zones: int) -> None:
    """Refuse more zones than a matrix may have, and say which levels have fewer."""
    if zones > ZONES:
        fits = [matrix(name) for name in opened.places.levels if opened.places.table[name].n_unique() < ZONES]
        advice = f"take {' or '.join(fits)}" if fits else "take another format"
        raise ExportError(f"zones of an OMX matrix (here more) must be at most {ZONES:,}; {advice}")


def _matrix(name: str) -> str:
    """Return the name of a matrix: HDF5 takes a slash for a group and a dot for this one."""
    return name.replace("/", "_") if name.strip(".") else "_" * len(name)


def _units(opened: OpenedRelease, level: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of what is summed to, ascending, everywhere else last, and that of each zone; -1 is the last."""
    column = opened.places.table[opened.places.level(level)]
    names = column.unique().sort()
    of_zone = column.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    return unique_last([*names.to_list(), ELSEWHERE]), np.append(of_zone, len(names))


def unique_last(names: list[str]) -> list[str]:
    """Return `names`, the last one changed if it is among the others."""
    while names[-1] in names[:-1]:
        names[-1] += "_"
    return names


def _sums(
    opened: OpenedRelease, of_zone: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return row, column and values (cells, 1 + segments) of the cells that are not 0, ascending."""
    values = ["count", *opened.manifest.segments]
    parts = []
    seen = np.zeros(of_zone.max() + 1, bool)
    for chunk in chunks(opened):
        seen[of_zone[chunk.origin]] = seen[of_zone[chunk.destination]] = True
        _check(opened, int(seen.sum()))
        ends = pl.DataFrame({"row": of_zone[chunk.origin], "column": of_zone[chunk.destination]})
        numbers = chunk.table.select(pl.col(name).alias(str(i)) for i, name in enumerate(values))
        parts.append(ends.hstack(numbers).group_by("row", "column").sum())
    table = pl.concat(parts).group_by("row", "column").sum().sort("row", "column")
    return table["row"].to_numpy(), table["column"].to_numpy(), table.drop("row", "column").to_numpy()


def _fill(
    data: h5py.Group,
    name: str,
    size: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
) -> None:
    """Write one matrix, a chunk of whole rows at a time; `rows` ascend."""
    height = min(size, max(1, _CELLS // size))
    matrix = data.create_dataset(
        name, (size, size), np.float64, chunks=(height, size), compression="gzip", compression_opts=1, shuffle=True
    )
    matrix.attrs["description"] = np.bytes_(f"synthetic workers: {name}".encode())
    for start in range(0, size, height):
        end = min(start + height, size)
        inside = slice(*np.searchsorted(rows, (start, end)))
        block = np.zeros((end - start, size))
        block[rows[inside] - start, columns[inside]] = values[inside]
        matrix[start:end] = block
