"""What the numbers in exported files are expected to be off by."""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.geography.zones import ELSEWHERE
from synthmap.published.exports.rows import Chunk
from synthmap.published.figure_errors import figure_errors
from synthmap.published.od_errors import DIGITS, ERROR
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

COUNT_ERROR = (
    f"{ERROR} is the root mean square error of count that is to be expected of noise, drawing and prior, in workers, "
    "from public data alone; where it is at least the count itself, read nothing into that."
)
_CELLS = 65_536  # whose errors are worked out together


def errors_of_flows(opened: OpenedRelease) -> Callable[[Chunk], pl.Series]:
    """Return what gives the expected errors of the counts of a chunk, workers.

    Raises
    ------
    ReleaseCorruptError
        If the plan cannot be read.
    """
    errors, code = figure_errors(opened), codes_of(opened, ZONE)

    def find(chunk: Chunk) -> pl.Series:
        return _rounded(errors.of_flows(chunk.table["count"].to_numpy(), code[chunk.origin], code[chunk.destination]))

    return find


def errors_of_residents(opened: OpenedRelease, residents: NDArray[np.int64]) -> pl.Series:
    """Return the expected errors of those who live in each zone and, last, everywhere else: as in tiles.

    Parameters
    ----------
    opened : OpenedRelease
    residents : ndarray of int64, shape (zones + 1,)
        In the order of the release's places.
    """
    code = codes_of(opened, ZONE)
    workers = np.zeros(len(units_of(opened, ZONE)), np.int64)
    workers[code[:-1]] = residents[:-1]
    if code[-1] >= 0:
        workers[code[-1]] = residents[-1]
    found = figure_errors(opened).of_residents(workers, np.arange(workers.size))
    return _rounded(np.where(code >= 0, found[code], 0.0))


def errors_between(
    opened: OpenedRelease, level: str, rows: NDArray[np.int64], columns: NDArray[np.int64], count: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the expected errors of flows between units of a level, workers, as ``/od`` tells them.

    Parameters
    ----------
    opened : OpenedRelease
    level : str
    rows, columns, count : ndarray of int64, shape (flows,)
        Origins, destinations (units in the order of ids, everywhere else the last) and workers.
    """
    units, errors, code = units_of(opened, level), figure_errors(opened), codes_of(opened, level)
    out = np.empty(count.size)
    for start in range(0, count.size, _CELLS):
        at = slice(start, start + _CELLS)
        flows = (count[at], code[rows[at]], code[columns[at]])
        found = errors.of_flows(*flows) if level == ZONE else errors.of_units(*flows, units.of, units.of)
        out[at] = _rounded(found).to_numpy()
    return out


def codes_of(opened: OpenedRelease, level: str) -> NDArray[np.int64]:
    """Return the code of each unit of a level in the order of ids and, last, of everywhere else; -1 if it has none."""
    units = units_of(opened, level)
    codes = np.arange(len(units))
    if opened.manifest.zones.elsewhere is None:
        return np.append(codes, -1)
    away = int(units.codes((ELSEWHERE,), "origin")[0])
    return np.append(np.delete(codes, away), away)


def _rounded(error: NDArray[np.float64]) -> pl.Series:
    return pl.Series(error).round_sig_figs(DIGITS)
