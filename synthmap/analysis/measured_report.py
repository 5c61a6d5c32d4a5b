"""Published measurements from noisy whole numbers and public figures; nothing confidential comes here."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cache

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.classes import DENSITY_NAMES
from synthmap.analysis.measured_classes import BANDS, MeasuredClasses
from synthmap.geography.zones import ELSEWHERE
from synthmap.privacy.noise import half_width
from synthmap.published.expected import LENGTH_EDGES_KM
from synthmap.published.measured import AverageError, BandShare, DensityClass, Estimate

ALL = "all"


@dataclass(frozen=True)
class NoisyVector:
    """Whole numbers with discrete Laplace noise of a scale, in the order of `confidential.measurements.measure`."""

    values: NDArray[np.int64]
    scale: float


@dataclass(frozen=True)
class _Sum:
    """A sum of noisy entries, and how far its noise reaches."""

    value: int
    reach: int

    def estimate(self, factor: float, base: float = 0.0, floor: float = -math.inf) -> Estimate:
        """Return ``base + factor·sum`` with its interval, none below `floor`."""
        value = max(floor, base + factor * self.value)
        low, high = sorted(
            max(floor, base + factor * end) for end in (self.value - self.reach, self.value + self.reach)
        )
        return Estimate(value=_round(value, ROUND_HALF_EVEN), low=_round(low, ROUND_FLOOR),
                        high=_round(high, ROUND_CEILING))  # fmt: skip


def _round(value: float, way: str) -> float:
    """Return a value of six digits; ends of intervals are rounded outwards."""
    return float(Context(prec=6, rounding=way).create_decimal(Decimal(value)))


def density_classes(classes: MeasuredClasses) -> list[DensityClass]:
    """Return the classes of destinations by density; those without destinations are left out."""
    found = []
    for place, name in enumerate(_names(classes)):
        inside = classes.density == place
        low, high = classes.density_edges[place], classes.density_edges[place + 1]
        if inside.any():
            found.append(
                DensityClass(
                    name=name,
                    per_km2_from=low,
                    per_km2_to=high if math.isfinite(high) else None,
                    destinations=int(inside.sum()),
                    workers=int(classes.plan.headcount[inside].sum()),
                )
            )
    return found


def band_shares(classes: MeasuredClasses, counts: NoisyVector, coverage: float, *, elsewhere: bool) -> list[BandShare]:
    """Return the shares of bands of length, for all destinations and by density.

    Parameters
    ----------
    counts : NoisyVector
        Workers by density class and band.
    coverage : float
        Of each interval.
    elsewhere : bool
        Whether origins may lie off the map.
    """
    noisy = counts.values.reshape(classes.densities, BANDS + 1)
    reach = _reaches(counts.scale, coverage)
    found = []
    for name, rows in _groups(classes):
        workers = int(classes.plan.headcount[np.isin(classes.density, rows)].sum())
        if not workers:
            continue
        for band in range(BANDS + elsewhere):
            synthetic = int(classes.synthetic_counts[rows, band].sum())
            total = _Sum(int(noisy[rows, band].sum()), reach(len(rows)))
            low, high = (None, None) if band == BANDS else _band(band)
            found.append(
                BandShare(
                    density=name,
                    km_from=low,
                    km_to=high,
                    origin=ELSEWHERE if band == BANDS else None,
                    synthetic_workers=synthetic,
                    workers=total.estimate(1.0, floor=0.0),
                    share_error=total.estimate(-1.0 / workers, synthetic / workers),
                )
            )
    return found


def average_errors(
    classes: MeasuredClasses, absolute: NoisyVector, signed: NoisyVector, coverage: float
) -> list[AverageError]:
    """Return the errors of destinations' average commutes by length and by density; classes nobody is in left out.

    Parameters
    ----------
    absolute, signed : NoisyVector
        Sums of metres by class (length, density).
    """
    shape = (BANDS, classes.densities)
    here = np.zeros(shape, np.int64)
    np.add.at(here, (classes.length, classes.density), 1)
    workers = np.zeros(shape, np.int64)
    np.add.at(workers, (classes.length, classes.density), classes.plan.headcount)
    reaches = [_reaches(one.scale, coverage) for one in (absolute, signed)]
    found = []
    for name, columns in _groups(classes):
        for rows in [list(range(BANDS)), *([band] for band in range(BANDS))]:
            block = np.ix_(rows, columns)
            some = here[block] > 0  # the others hold noise only
            if not some.any():
                continue
            sums = [
                _Sum(int(one.values.reshape(shape)[block][some].sum()), reach(int(some.sum())))
                for one, reach in zip((absolute, signed), reaches, strict=True)
            ]
            n = int(workers[block].sum())
            low, high = _band(rows[0]) if len(rows) == 1 else (None, None)
            found.append(
                AverageError(
                    density=name,
                    km_from=low,
                    km_to=high,
                    destinations=int(here[block].sum()),
                    workers=n,
                    mean_absolute_error_km=sums[0].estimate(1.0 / n / 1000.0, floor=0.0),
                    mean_error_km=sums[1].estimate(1.0 / n / 1000.0),
                )
            )
    return found


def _names(classes: MeasuredClasses) -> list[str]:
    if classes.densities == len(DENSITY_NAMES):
        return list(DENSITY_NAMES)
    return [f"density {place + 1}" for place in range(classes.densities)]


def _groups(classes: MeasuredClasses) -> Iterator[tuple[str, list[int]]]:
    """Yield (name, density classes): all together first."""
    yield ALL, list(range(classes.densities))
    if classes.densities > 1:
        for place, name in enumerate(_names(classes)):
            yield name, [place]


def _band(band: int) -> tuple[float, float | None]:
    high = LENGTH_EDGES_KM[band + 1]
    return LENGTH_EDGES_KM[band], high if math.isfinite(high) else None


def _reaches(scale: float, coverage: float) -> Callable[[int], int]:
    """Return a function from a number of terms to the half width of their sum."""
    return cache(lambda terms: half_width(scale, terms, coverage))
