"""The gravity model fitted to two tables over the same units, each with its own workers as masses of destinations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.table import ZONE, Paired, aggregate
from synthmap.geography.distance import EARTH_KM, unit_vectors
from synthmap.geography.zones import Zones

LARGEST = 1_000_000  # pairs of units, zero flows included
_NEAREST_KM = 0.1
_ROUNDS = 60


@dataclass(frozen=True)
class Gravity:
    """Coefficients of ``log λ = a + b·log(origin weight) + c·log(workers at destination) − γ·log(km)``.

    Attributes
    ----------
    intercept, origin, destination : float
        a, b and c.
    distance : float
        γ; above 0 where flows fall with distance.
    pairs, destinations, workers : int
        What it was fitted to: pairs of units, zero flows included; units with workers; workers on flows between
        different units.
    """

    intercept: float
    origin: float
    destination: float
    distance: float
    pairs: int
    destinations: int
    workers: int


@dataclass(frozen=True)
class GravityFit:
    """The model at one level, fitted to both tables."""

    level: str
    reference: Gravity
    other: Gravity


def gravity(paired: Paired, zones: Zones, units: Mapping[str, NDArray[np.int32]]) -> GravityFit | None:
    """Return the gravity model of both tables at the finest parent level with at most `LARGEST` pairs of units.

    Parameters
    ----------
    paired : Paired
        At zone level.
    units : mapping
        `units_by_level`; the zones themselves are used if they are the only level.

    Returns
    -------
    GravityFit or None
        None where the model is not identified: too many units at every level, fewer than three, or an explaining
        variable that does not vary.

    Notes
    -----
    Maximum likelihood under a Poisson distribution (consistent whatever the true variance), by iteratively
    reweighted least squares over *all* ordered pairs of different units whose masses are above 0, those without
    flow included. The masses are public: weights of the zones, and the workers at each destination in the table that is
    fitted. So a table's coefficients do not depend on the one beside it, nor on which is the reference; only the level
    does, where one of them cannot be fitted at a finer one. Distance is between weighted mean points, at least 0.1 km.
    Flows within a unit have no distance of their own and are left out, as are origins elsewhere.

    References
    ----------
    Santos Silva, Tenreyro, "The log of gravity", Review of Economics and Statistics 88 (2006).
    """
    parents = [level for level in units if level != ZONE] or [ZONE]
    for level in parents:
        flows = aggregate(paired, units[level], units[level])
        weight, middle = _units(zones, units[level])
        reference = _fit(flows.origin, flows.destination, flows.reference, weight, middle)
        other = None if reference is None else _fit(flows.origin, flows.destination, flows.other, weight, middle)
        if reference is not None and other is not None:
            return GravityFit(level, reference, other)
    return None


def gravity_of(
    level: str,
    destination: NDArray[np.int32],
    reference: NDArray[np.float64],
    other: NDArray[np.float64],
    zones: Zones,
    unit: NDArray[np.int32],
) -> GravityFit | None:
    """Return the gravity model of two tables of flows that need not be whole, None where it is not identified.

    Parameters
    ----------
    level : str
    destination : ndarray of int32, shape (destinations,)
        Units of destinations.
    reference, other : ndarray of float64, shape (destinations, units)
        Workers by unit of origin, the last elsewhere.
    unit : ndarray of int32
        Unit of every rank at `level`.
    """
    weight, middle = _units(zones, unit)
    to, origin = np.repeat(destination, reference.shape[1]), np.tile(np.arange(reference.shape[1]), destination.size)
    fits = [_fit(origin, to, table.ravel(), weight, middle) for table in (reference, other)]
    return None if fits[0] is None or fits[1] is None else GravityFit(level, fits[0], fits[1])


def _units(zones: Zones, unit: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight of each unit and the unit vector of its weighted mean point."""
    inside = unit[:-1]
    size = int(inside.max()) + 1
    vectors = unit_vectors(zones.longitude, zones.latitude) * (zones.weight + 1.0)[:, None]
    middle = np.stack([np.bincount(inside, vectors[:, i], size) for i in range(3)], axis=1)
    return np.bincount(inside, zones.weight, size).astype(float), middle / np.linalg.norm(middle, axis=1, keepdims=True)


def _fit(
    origin: NDArray[Any],
    destination: NDArray[Any],
    count: NDArray[Any],
    weight: NDArray[np.float64],
    middle: NDArray[np.float64],
) -> Gravity | None:
    """Return the model of one table, whose workers from units to units are `count`, or None."""
    size = weight.size
    workers = np.bincount(destination, count, size)
    origins, destinations = np.flatnonzero(weight > 0), np.flatnonzero(workers > 0)
    if origins.size * destinations.size > LARGEST:
        return None
    o, d = np.repeat(origins, destinations.size), np.tile(destinations, origins.size)
    apart = o != d
    o, d = o[apart], d[apart]
    if not o.size:
        return None
    chord = np.linalg.norm(middle[o] - middle[d], axis=1)
    km = np.maximum(_NEAREST_KM, 2.0 * EARTH_KM * np.arcsin(np.minimum(1.0, chord / 2.0)))
    design = np.column_stack([np.ones(o.size), np.log(weight[o]), np.log(workers[d]), -np.log(km)])
    place, key = o * size + d, origin.astype(np.int64) * size + destination
    row = np.minimum(np.searchsorted(place, key), place.size - 1)
    row[(origin == size) | (place[row] != key)] = -1
    flow = np.bincount(row[row >= 0], count[row >= 0], o.size).astype(float)
    coefficients = poisson_regression(design, flow)
    if coefficients is None:
        return None
    a, b, c, fall = coefficients.tolist()
    return Gravity(a, b, c, fall, int(o.size), int(destinations.size), round(float(flow.sum())))


def poisson_regression(design: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the coefficients of ``log E[count] = design·β`` by maximum likelihood, None if not identified.

    Columns after the first (ones) are centred and scaled before solving, which does not change the estimate.
    """
    rows, width = design.shape
    if rows <= width or count.sum() <= 0:
        return None
    centre, scale = design[:, 1:].mean(axis=0), design[:, 1:].std(axis=0)
    if (scale < 1e-9).any():
        return None
    x = np.column_stack([design[:, 0], (design[:, 1:] - centre) / scale])
    if np.linalg.matrix_rank(x.T @ x / rows, tol=1e-9) < width:
        return None
    mean = (count + count.mean()) / 2.0
    eta = np.log(mean)
    beta = np.zeros(width)
    for _ in range(_ROUNDS):
        weighted = x * mean[:, None]
        try:
            new = np.linalg.solve(weighted.T @ x, weighted.T @ (eta + (count - mean) / mean))
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(new).all():
            return None
        change, beta = float(np.abs(new - beta).max()), new
        eta = np.clip(x @ beta, -50.0, 50.0)
        mean = np.exp(eta)
        if change < 1e-9:
            break
    else:
        return None
    slope = beta[1:] / scale
    return np.append(beta[0] - float(slope @ centre), slope)
