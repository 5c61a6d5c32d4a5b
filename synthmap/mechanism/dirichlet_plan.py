"""The plan of Dirichlet resampling: for each destination its cells, α and keep probability, all from public data."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.errors import PrivacyParameterError
from synthmap.geography.coarsening import cells_for
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable, scales_at
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.mechanism.plan import Plan, PlanSettings, model_of
from synthmap.mechanism.predict import predicted_errors, survey
from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.rule import Rule

LADDER = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
_HEAVIEST_PRIOR_SHARE = 0.98  # domains where the prior weighs more are next to never better than coarser ones
_FIRST_LOOK, _FURTHER_LOOK = 64, 4  # cells looked at first, and times as many where the most of them do best
_TO_CELLS = 2**24  # more than cells can be
_FEWEST_BY_DISTANCE = 16  # distance cells that stand beside those by prior mass have at least as many


@dataclass(frozen=True)
class DirichletPlan(Plan):
    """The plan of Dirichlet resampling.

    Attributes
    ----------
    alpha_numerator, alpha_denominator : ndarray of int64
        α of each urn cell, workers; with S segments the urn has cells·S.
    keep_units : ndarray of int64
        Smallest keep probability of an empty cell, in 1/2^16.
    epsilon_dropping : ndarray of float64
        The part of ε that dropping may take.
    """

    alpha_numerator: NDArray[np.int64]
    alpha_denominator: NDArray[np.int64]
    keep_units: NDArray[np.int64]
    epsilon_dropping: NDArray[np.float64]

    def alpha(self) -> NDArray[np.float64]:
        """Return α as floats, for reports."""
        return self.alpha_numerator / self.alpha_denominator

    def summary(self, settings: PlanSettings) -> dict[str, float | str]:
        """Return the smallest keep probability."""
        return {"keep_smallest": float(self.keep_units.min() / KEEP_UNITS)}


def plan_destinations(
    region: Region,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    table: PriorTable = NO_TABLE,
    scale_km: NDArray[np.float64] | None = None,
) -> DirichletPlan:
    """Return the plan for the destinations of the given ranks and public headcounts.

    With ``settings.cells == 0`` each destination gets the candidate with the smallest predicted error: by prior mass,
    by distance or by either, any number of cells of `LADDER`. One cell (the prior alone, which costs nothing) is among
    them: a plan is never predicted to be worse than the prior.

    Parameters
    ----------
    table : PriorTable
        Public; part of the prior.
    scale_km : ndarray of float64, shape (D,)
        Of the prior's decay, where that is known already; default: found from the public zones once more.

    Raises
    ------
    PrivacyParameterError
        If no noise level meets the settings.
    """
    asked, finest = _candidates(settings, cells_for(len(region.zones), settings.elsewhere_share))
    model = model_of(settings, table)
    if scale_km is None:
        scale_km = scales_at(region.tree, model, region.points(destination))
    limit = _FIRST_LOOK if settings.finest < 0 and not settings.cells else int(asked.max())
    look = _most(settings, headcount, asked, limit)
    plan = _best(region, model, destination, scale_km, headcount, settings, asked, finest, look)
    while limit < asked.max():
        edge = np.flatnonzero((look == limit) & (plan.cells_asked == look))  # the most cells looked at do best
        looked, limit = limit, limit * _FURTHER_LOOK
        look[edge] = _most(settings, headcount[edge], asked, limit)
        edge = edge[look[edge] > looked]
        if not edge.size:
            break
        each = destination[edge], scale_km[edge], headcount[edge]
        finer = _best(region, model, *each, settings, asked, finest, look[edge])
        for field in fields(DirichletPlan):
            getattr(plan, field.name)[edge] = getattr(finer, field.name)
    return plan


def _best(
    region: Region,
    model: PriorModel,
    destination: NDArray[np.int32],
    scale_km: NDArray[np.float64],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    asked: NDArray[np.int64],
    finest: NDArray[np.int64],
    most: NDArray[np.int64],
) -> DirichletPlan:
    """Return for each destination the candidate of at most `most` cells that is predicted to err least."""
    asked, finest = (values[asked <= most.max()] for values in (asked, finest))
    points = region.points(destination)
    found = survey(region.tree, model, points, scale_km, destination, headcount, asked, finest, most)
    distinct, inverse = np.unique(headcount[:, None] * _TO_CELLS + found.cells, return_inverse=True)
    calibrate = _calibration(settings).calibrate
    calibrated = zip(*(calibrate(*divmod(pair, _TO_CELLS)) for pair in distinct.tolist()), strict=True)
    numerator, denominator, keep_units, epsilon, epsilon_dropping, delta = (np.array(column) for column in calibrated)
    inverse = inverse.reshape(found.cells.shape)
    alpha = (numerator / denominator)[inverse]
    errors = predicted_errors(headcount, alpha * found.cells * float(settings.segments), found)
    choice = errors.argmin(axis=1)
    chosen = (np.arange(destination.size), choice)
    pick = inverse[chosen]
    return DirichletPlan(
        destination=destination.astype(np.int32),
        headcount=headcount.astype(np.int64),
        synthetic_size=headcount.astype(np.int64),
        cells_asked=asked[choice],
        cells=found.cells[chosen],
        alpha_numerator=numerator[pick],
        alpha_denominator=denominator[pick],
        keep_units=keep_units[pick],
        epsilon=epsilon[pick],
        epsilon_dropping=epsilon_dropping[pick],
        delta=delta[pick],
        predicted_km=errors[chosen],
        prior_share=_prior_share(headcount, found.cells[chosen], alpha[chosen], settings.segments),
        prior_strength=found.strength,
        scale_km=scale_km,
        finest=finest[choice],
    )


def _prior_share(
    headcount: NDArray[np.int64], cells: NDArray[np.int64], alpha: NDArray[np.float64], segments: int
) -> NDArray[np.float64]:
    """Return A/(n + A): the share of a destination's synthetic workers that comes from the prior; 1 with one cell."""
    mass = alpha * cells * segments
    return np.where(cells == 1, 1.0, mass / (headcount + mass))


def _candidates(settings: PlanSettings, every: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells asked for, ascending within a coarsening, and the finest level (−1: prior mass) of each."""
    ladder = [settings.cells] if settings.cells else sorted({min(k, every) for k in LADDER})
    both = settings.either and settings.finest >= 0
    by_mass = ladder if both or settings.finest < 0 else []
    by_distance = ladder if settings.finest >= 0 else []
    if both and not settings.cells:
        by_distance = [k for k in ladder if k >= _FEWEST_BY_DISTANCE]
    finest = [-1] * len(by_mass) + [settings.finest] * len(by_distance)
    return np.array([*by_mass, *by_distance], np.int64), np.array(finest, np.int64)


def _most(
    settings: PlanSettings, headcount: NDArray[np.int64], asked: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    """Return for each destination the most cells worth a look, up to a limit: beyond, nearly all workers are prior."""
    ladder = tuple(sorted({cells for cells in asked.tolist() if cells <= limit}))
    distinct, inverse = np.unique(headcount, return_inverse=True)
    most = _calibration(settings).most
    return np.array([most(n, ladder) for n in distinct.tolist()])[inverse]


def _keeps(wanted: float) -> Iterator[int]:
    """Yield keep probabilities in 1/2^16, from `wanted` (rounded up) towards 1."""
    units = min(KEEP_UNITS, math.ceil(wanted * KEEP_UNITS))  # exact: a power of two
    while KEEP_UNITS - units > KEEP_UNITS // 64:
        yield units
        units = (units + KEEP_UNITS) // 2
    yield KEEP_UNITS


class _Noise(NamedTuple):
    """What of the settings calibration reads: not the prior, which measured lengths make another one every time."""

    epsilon: float
    delta: float
    rule: Rule
    keep: float
    keep_by_prior: bool
    segments: int


class _Calibrated(NamedTuple):
    """The noise of one destination: α as a rational, the keep probability in 1/2^16, and what that costs."""

    alpha_numerator: int
    alpha_denominator: int
    keep_units: int
    epsilon: float
    epsilon_dropping: float
    delta: float


class _Calibration(NamedTuple):
    """Calibration by headcount and cells, which remembers what it has done.

    Attributes
    ----------
    calibrate : callable
        See `_calibrate`.
    most : callable
        Returns the most cells of an ascending ladder that are worth a look, at a headcount.
    """

    calibrate: Callable[[int, int], _Calibrated]
    most: Callable[[int, tuple[int, ...]], int]


def _calibration(settings: PlanSettings) -> _Calibration:
    """Return the calibration for some settings; it is looked up once a plan."""
    return _remembering(_Noise(*(getattr(settings, name) for name in _Noise._fields)))


@lru_cache(maxsize=2)
def _remembering(noise: _Noise) -> _Calibration:
    calibrate = lru_cache(maxsize=400_000)(partial(_calibrate, noise))

    def most(headcount: int, ladder: tuple[int, ...]) -> int:
        found = ladder[0]
        for cells in ladder[1:]:
            alpha = calibrate(headcount, cells)
            mass = alpha.alpha_numerator / alpha.alpha_denominator * cells * noise.segments
            if mass / (mass + headcount) > _HEAVIEST_PRIOR_SHARE:
                break
            found = cells
        return found

    return _Calibration(calibrate, lru_cache(maxsize=400_000)(most))


def _calibrate(asked: _Noise, headcount: int, cells: int) -> _Calibrated:
    """Return the noise for one destination.

    Where dropping as wished costs more than ε, the keep probability moves towards 1 until it does not.
    """
    for units in _keeps(asked.keep):
        try:
            found = minimum_alpha(
                epsilon=asked.epsilon,
                delta=asked.delta,
                headcount=headcount,
                cells=cells * asked.segments,
                keep=units / KEEP_UNITS,
                keep_most=1.0 if asked.keep_by_prior else units / KEEP_UNITS,
                rule=asked.rule,
            )
        except PrivacyParameterError:
            if units == KEEP_UNITS:
                raise
        else:
            total, dropping, delta = found.epsilon_total, found.epsilon_dropping, found.certified_delta
            return _Calibrated(found.alpha.numerator, found.alpha.denominator, units, total, dropping, delta)
    raise AssertionError("unreachable: the last keep probability is 1")
