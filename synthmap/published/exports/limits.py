"""What formats cannot hold, told before a file is made; listing needs it, so no library that writes files is here."""

from urllib.parse import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.errors import ExportError
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.exports.rows import count_rows
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import Table, units_of

ZONES = 10_000  # of a matrix at most: a model that opens it needs 800 MB for each
_TEXT, _BYTES = 254, 2**31 - 1  # of a field and of a file of a shapefile
_REAL = 24  # bytes that OGR gives a fraction: an error and a distance
_MARK = 1  # byte of a row
_ELSE = "take GeoPackage"


def matrix(level: str) -> str:
    """Return the name of the matrix of a level."""
    return "matrix.omx" if level == ZONE else f"matrix-{quote(level, safe='')}.omx"


def fits(opened: OpenedRelease, family: str, part: str) -> bool:
    """Return whether a format can hold a part of a release; its table is read only where that cannot be known else."""
    if family == "omx":
        return _matrix_fits(opened, part)
    try:
        check(opened, family, part)
    except ExportError:
        return False
    return True


def check(opened: OpenedRelease, family: str, part: str) -> None:
    """Refuse a part of a release that its format cannot hold.

    Raises
    ------
    ExportError
    """
    if family == "omx":
        check_omx(opened, part)
    elif family == "shapefile":
        check_shapefile(opened)


def check_omx(opened: OpenedRelease, level: str) -> None:
    """Refuse a matrix of more than `ZONES`, and say which levels have fewer.

    Raises
    ------
    ExportError
    """
    if _matrix_fits(opened, level):
        return
    fit = [matrix(name) for name in opened.manifest.zones.levels if _matrix_fits(opened, name)]
    advice = f"take {' or '.join(fit)}" if fit else "take another format"
    occur = _occurring(opened, level).size
    raise ExportError(f"zones of an OMX matrix (here {occur:,}) must be at most {ZONES:,}; {advice}")


def _matrix_fits(opened: OpenedRelease, level: str) -> bool:
    """Return whether a matrix can hold all units of a level that occur; the table is read only where it must be."""
    known = opened.manifest.zones
    if known.zones + (known.elsewhere is not None) <= ZONES:
        return True
    units = units_of(opened, level)
    if len(units) <= ZONES:
        return True
    destinations = opened.collect(opened.plan.select(pl.col("destination").cast(pl.String)))["destination"]
    codes = units_of(opened, ZONE).find(destinations)[0]
    return np.unique(units.of[codes]).size <= ZONES and _occurring(opened, level).size <= ZONES


def _occurring(opened: OpenedRelease, level: str) -> NDArray[np.uint32]:
    """Return the units of a level that are an end of a flow."""

    def find() -> NDArray[np.bool_]:
        table = Table(opened)
        seen = np.zeros(len(table.zones), np.bool_)
        for number in range(len(table)):
            block = table.block(number, keep=False)
            seen[block.origins] = seen[block.destinations] = True
        return seen

    seen = opened.memory.get((opened.etag, "zones that occur"), find)
    return np.asarray(np.unique(units_of(opened, level).of[seen]))


def check_shapefile(opened: OpenedRelease) -> None:
    """Refuse ids and tables that are larger than a shapefile holds.

    Raises
    ------
    ExportError
    """
    ids = text_bytes(opened, ["id"])
    text_bytes(opened, ["id", *opened.places.levels])
    numbers = 1 + len(opened.manifest.segments)
    size = count_rows(opened) * (2 * ids + digits(opened) * numbers + 2 * _REAL + _MARK)
    if size > _BYTES:
        raise ExportError(f"the table of a shapefile ({size / 1e9:.1f} GB) must be at most 2 GB; {_ELSE}")


def digits(opened: OpenedRelease) -> int:
    """Return how many digits the largest number of a layer can have."""
    return len(str(max(opened.manifest.invariants.workers, int(opened.places.table["weight"].to_numpy().max()))))


def text_bytes(opened: OpenedRelease, columns: list[str]) -> int:
    """Return how many bytes the longest text in columns of the zones has; refuse what would be cut without a word.

    Raises
    ------
    ExportError
    """
    width = len(ELSEWHERE)
    for name in columns:
        column = opened.places.table[name]
        longest = int(column.str.len_bytes().to_numpy().max())
        if longest > _TEXT:
            raise ExportError(f"text of {name} ({longest} bytes) must be at most {_TEXT} in a shapefile; {_ELSE}")
        if (column.str.strip_chars() != column).any():
            raise ExportError(f"text of {name} must not start or end with a space in a shapefile; {_ELSE}")
        width = max(width, longest)
    return width
