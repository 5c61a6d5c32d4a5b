"""OMX: a zone by zone matrix in HDF5, for transport models, with the ids of its rows and columns."""

from pathlib import Path

import h5py
import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.geography.zones import ELSEWHERE
from synthmap.published.exports.about import about
from synthmap.published.exports.errors import COUNT_ERROR, errors_between
from synthmap.published.exports.layers import unique
from synthmap.published.exports.limits import check_omx
from synthmap.published.exports.rows import chunks
from synthmap.published.od_errors import ERROR
from synthmap.published.store import OpenedRelease

_CELLS = 131_072  # of a chunk of the file: 1 MB


def write_omx(opened: OpenedRelease, path: Path, level: str) -> None:
    """Write origins (rows) by destinations (columns), one matrix for count, for each segment and for errors.

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
        If there are more than a matrix may have.
    """
    check_omx(opened, level)
    names, of_zone = _units(opened, level)
    rows, columns, values = _sums(opened, of_zone)
    errors = errors_between(opened, level, rows, columns, values[:, 0])
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
        *workers, error = unique(_matrix(one) for one in ("count", *opened.manifest.segments, ERROR))
        for place, name in enumerate(workers):
            _fill(data, name, f"synthetic workers: {name}", occur.size, rows, columns, values[:, place])
        _fill(data, error, f"{COUNT_ERROR} Only where count is not 0.", occur.size, rows, columns, errors)


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
    for chunk in chunks(opened):
        ends = pl.DataFrame({"row": of_zone[chunk.origin], "column": of_zone[chunk.destination]})
        numbers = chunk.table.select(pl.col(name).alias(str(i)) for i, name in enumerate(values))
        parts.append(ends.hstack(numbers).group_by("row", "column").sum())
    table = pl.concat(parts).group_by("row", "column").sum().sort("row", "column")
    return table["row"].to_numpy(), table["column"].to_numpy(), table.drop("row", "column").to_numpy()


def _fill(
    data: h5py.Group,
    name: str,
    description: str,
    size: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64] | NDArray[np.float64],
) -> None:
    """Write one matrix, a chunk of whole rows at a time; `rows` ascend."""
    height = min(size, max(1, _CELLS // size))
    matrix = data.create_dataset(
        name, (size, size), np.float64, chunks=(height, size), compression="gzip", compression_opts=1, shuffle=True
    )
    matrix.attrs["description"] = np.bytes_(description.encode())
    for start in range(0, size, height):
        end = min(start + height, size)
        inside = slice(*np.searchsorted(rows, (start, end)))
        block = np.zeros((end - start, size))
        block[rows[inside] - start, columns[inside]] = values[inside]
        matrix[start:end] = block
