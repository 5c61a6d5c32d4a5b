"""Bands of distance in kilometres or miles, and the sectors of the compass."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.geography.sphere import EARTH_KM, unit_vectors
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

KM = {"km": 1.0, "mi": 1.609344}
ONTHEMAP = (10.0, 25.0, 50.0)  # miles
SECTORS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
MOST = 20  # bands
_LONGEST_KM = math.pi * EARTH_KM
_AROUND = (1, 7, 3, 5)  # sectors between north and east, north and west, south and east, south and west
_SECTOR_OF = np.array([*_AROUND, 0, 0, 4, 4, 2, 6, 2, 6, 0, 0, 4, 4])  # by west, south, upright and flat, bit by bit
_EDGE = math.tan(math.pi / 8.0)  # of the sector that lies around an axis


@dataclass(frozen=True)
class Bands:
    """Upper ends of bands but for the last, which is open: from one end (included) to the next (not included)."""

    ends: tuple[float, ...] = ONTHEMAP
    units: str = "mi"

    def __post_init__(self) -> None:
        if self.units not in KM:
            raise QueryError(f"units ({self.units}) must be one of {', '.join(KM)}")
        rising = all(a < b for a, b in zip((0.0, *self.ends), self.ends, strict=False))
        if not 1 <= len(self.ends) <= MOST or not rising or not self.ends[-1] * KM[self.units] < _LONGEST_KM:
            raise QueryError(
                f"bands must be at most {MOST} rising distances above 0, below half around the globe, such as 10,25,50"
            )

    def __len__(self) -> int:
        return len(self.ends) + 1

    def edges(self) -> list[tuple[float, float | None]]:
        """Return where each band starts and ends."""
        return list(zip((0.0, *self.ends), (*self.ends, None), strict=True))

    def label(self, band: int) -> str:
        """Return a band in words."""
        start, end = self.edges()[band]
        if end is None:
            return f"{start:g} {self.units} and more"
        return f"under {end:g} {self.units}" if start == 0 else f"{start:g} to under {end:g} {self.units}"

    @property
    def parameters(self) -> dict[str, object]:
        """What they were made from."""
        return {"units": self.units, "bands": list(self.ends)}


class Compass:
    """Distances and directions between the points of a release's zones, by code; NaN from and to everywhere else."""

    def __init__(self, opened: OpenedRelease) -> None:
        zones = units_of(opened, ZONE)
        east, north = np.radians(zones.longitude), np.radians(zones.latitude)
        self._points = unit_vectors(zones.longitude, zones.latitude)
        self._east = np.stack([-np.sin(east), np.cos(east)], axis=1)  # its third coordinate is 0
        tilt = -np.sin(north)
        self._north = np.stack([tilt * np.cos(east), tilt * np.sin(east), np.cos(north)], axis=1)

    def band(self, bands: Bands, a: NDArray[np.integer], b: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the band of the great-circle distance between zones; compared as squares of chords, which is quicker.

        NaN is in the last.
        """
        step = self._points[a]
        step -= self._points[b]
        ends = np.array(bands.ends) * (KM[bands.units] / (2.0 * EARTH_KM))
        return np.asarray(np.searchsorted((2.0 * np.sin(ends)) ** 2, _products(step, step), side="right"), np.int64)

    def sector(self, start: NDArray[np.integer], end: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return in which of the eight sectors of the compass `end` lies, seen from `start` along the great circle.

        0 is north; each sector reaches 22.5° to both sides of its direction. NaN is in any.
        """
        target = self._points[end]
        x = _products(self._east[start], target[:, :2])
        y = _products(self._north[start], target)
        west, south = (x < 0).view(np.uint8), (y < 0).view(np.uint8)
        np.abs(x, out=x)
        np.abs(y, out=y)
        upright, flat = (x <= _EDGE * y).view(np.uint8), (y <= _EDGE * x).view(np.uint8)
        return np.asarray(_SECTOR_OF[west | south << 1 | upright << 2 | flat << 3])


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the dot product of each pair of rows."""
    return np.asarray(np.einsum("ij,ij->i", a, b))
