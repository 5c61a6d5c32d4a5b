"""Bands of distance in kilometres or miles, and the sectors of the compass."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import QueryError
from synthmap.geography.sphere import arc_km, unit_vectors
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

KM = {"km": 1.0, "mi": 1.609344}
ONTHEMAP = (10.0, 25.0, 50.0)  # miles
SECTORS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
MOST = 20  # bands
_LONGEST_KM = math.pi * 6371.0088


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

    def of(self, km: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the band of each distance."""
        return np.asarray(np.searchsorted(np.array(self.ends) * KM[self.units], km, side="right"), np.int64)

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
        self._sin, self._cos = (np.stack([f(east), f(north)]) for f in (np.sin, np.cos))

    def km(self, a: NDArray[np.integer], b: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return great-circle distances between zones."""
        return arc_km(self._points[a], self._points[b])

    def sector(self, start: NDArray[np.integer], end: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return in which of the eight sectors of the compass `end` lies, seen from `start` along the great circle.

        0 is north; each sector reaches 22.5° to both sides of its direction.
        """
        target = self._points[end]
        (sin_east, sin_north), (cos_east, cos_north) = self._sin[:, start], self._cos[:, start]
        x = cos_east * target[:, 1] - sin_east * target[:, 0]
        y = cos_north * target[:, 2] - sin_north * (cos_east * target[:, 0] + sin_east * target[:, 1])
        turned = np.nan_to_num(np.degrees(np.arctan2(x, y)) + 22.5) % 360.0
        return np.asarray(np.minimum(turned // 45.0, 7.0).astype(np.int64))
