"""The plan: for each destination its cells, noise and keep probability, all from public data.

Planning spends nothing: it reads headcounts, zones, the prior and the spec, never an origin.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.errors import ConfigurationError, PrivacyParameterError
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.mechanism.predict import predicted_errors, survey
from synthmap.privacy.calibration import Calibration, minimum_alpha
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec

LADDER = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
_HEAVIEST_PRIOR_SHARE = 0.98  # domains where the prior weighs more are next to never better than coarser ones
_FIRST_LOOK = 2  # cells for each worker (and 32 more) that are looked at first; more only where those do best
_TO_CELLS = 2**24  # more than cells can be
_FEWEST_BY_DISTANCE = 16  # distance cells that stand beside those by prior mass have at least as many


@dataclass(frozen=True)
class PlanSettings:
    """The public choices that shape a plan, apart from headcounts and geography.

    Attributes
    ----------
    epsilon, delta : float
        For one job at one destination.
    rule : Rule
        The certificate.
    cells : int
        Origin cells wanted; 0 means that the planner chooses.
    finest : int
        Coarsening: −1 by prior mass, else by distance down to this level (index in `ZoneTree.level_start`).
    keep : float
        Smallest keep probability wanted.
    keep_by_prior : bool
        Heavier empty cells are kept more often.
    segments : int
        Segments synthesised, at least 1.
    scale_km, power, elsewhere_share, strength : float
        Of the prior, see `synthmap.spec.PriorSpec`.
    mixing : float
        Largest share of a public table in the prior; 0 without one.
    either : bool
        Cells by prior mass are candidates beside those by distance.
    """

    epsilon: float
    delta: float
    rule: Rule
    cells: int
    finest: int
    keep: float
    keep_by_prior: bool
    segments: int
    scale_km: float
    power: float
    elsewhere_share: float
    strength: float
    mixing: float = 0.0
    either: bool = False


@dataclass(frozen=True)
class Plan:
    """One entry a destination, all public; arrays of equal length.

    Attributes
    ----------
    destination : ndarray of int32
        Rank of the zone.
    headcount, synthetic_size : ndarray of int64
        n(d) and m(d), workers.
    cells_asked, cells : ndarray of int64
        Origin cells that coarsening is asked for, and those it makes; with S segments the urn has cells·S.
    alpha_numerator, alpha_denominator : ndarray of int64
        α of each urn cell, workers.
    keep_units : ndarray of int64
        Smallest keep probability of an empty cell, in 1/2^16.
    epsilon, epsilon_dropping, delta : ndarray of float64
        Certified loss for one job: ε in total (0 for one cell), the part that dropping may take, and δ.
    predicted_km : ndarray of float64
        Predicted error (root mean square) of the destination's average commute, from public data.
    finest : ndarray of int64
        Coarsening: −1 by prior mass, else by distance down to this level (0 the coarsest; zones come after all).
    prior_strength : ndarray of float64
        How many workers the prior is worth: more than `PlanSettings.strength` where a public table is part of it.
    """

    destination: NDArray[np.int32]
    headcount: NDArray[np.int64]
    synthetic_size: NDArray[np.int64]
    cells_asked: NDArray[np.int64]
    cells: NDArray[np.int64]
    alpha_numerator: NDArray[np.int64]
    alpha_denominator: NDArray[np.int64]
    keep_units: NDArray[np.int64]
    epsilon: NDArray[np.float64]
    epsilon_dropping: NDArray[np.float64]
    delta: NDArray[np.float64]
    predicted_km: NDArray[np.float64]
    finest: NDArray[np.int64]
    prior_strength: NDArray[np.float64]

    def __len__(self) -> int:
        return self.destination.size

    def to_table(self) -> pa.Table:
        """Return the plan as an Arrow table."""
        return pa.table({field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def from_table(cls, table: pa.Table) -> "Plan":
        """Return the plan in an Arrow table made by `to_table`."""
        return cls(*(table[field.name].to_numpy() for field in fields(cls)))

    def alpha(self) -> NDArray[np.float64]:
        """Return α as floats, for reports."""
        return self.alpha_numerator / self.alpha_denominator

    def prior_share(self, segments: int) -> NDArray[np.float64]:
        """Return A/(n + A): the share of a destination's synthetic workers that comes from the prior."""
        mass = self.alpha() * self.cells * segments
        return np.where(self.cells == 1, 1.0, mass / (self.headcount + mass))


def settings_of(spec: Spec, region: Region) -> PlanSettings:
    """Return the settings in `spec`.

    Raises
    ------
    ConfigurationError
        If `plan.finest` is not a level of the zones, or distance coarsening has no parent level to use.
    """
    levels = region.zones.levels
    finest = -1
    if spec.plan.coarsening != "prior-mass":
        names = (*levels, "zone")
        wanted = spec.plan.finest or (levels[-1] if levels else "zone")
        if wanted not in names:
            raise ConfigurationError(f"plan.finest ({wanted}) must be one of {', '.join(names)}")
        finest = names.index(wanted)
    elif spec.plan.finest is not None:
        raise ConfigurationError('plan.finest must be left out unless plan.coarsening is "distance" or "auto"')
    keep = spec.plan.keep_floor if spec.plan.keep == "prior" else spec.plan.keep
    return PlanSettings(
        epsilon=spec.privacy.epsilon,
        delta=spec.privacy.delta,
        rule=spec.privacy.rule,
        cells=0 if spec.plan.cells == "auto" else spec.plan.cells,
        finest=finest,
        keep=1.0 if keep == "auto" else keep,  # dropping never leaves less noise: proofs/dropping.md, "Does it pay?"
        keep_by_prior=spec.plan.keep == "prior",
        segments=max(1, len(spec.segment_columns)),
        scale_km=spec.prior.scale_km,
        power=spec.prior.power,
        elsewhere_share=spec.elsewhere_share,
        strength=spec.prior.strength,
        mixing=spec.prior.mixing if spec.prior.public else 0.0,
        either=spec.plan.coarsening == "auto",
    )


def model_of(settings: PlanSettings, table: PriorTable) -> PriorModel:
    """Return the prior that `settings` and a public table make."""
    return PriorModel(
        settings.scale_km, settings.power, settings.elsewhere_share, settings.mixing, settings.strength, table
    )


def plan_destinations(
    region: Region,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    table: PriorTable = NO_TABLE,
) -> Plan:
    """Return the plan for the destinations of the given ranks and public headcounts.

    With ``settings.cells == 0`` each destination gets the candidate with the smallest predicted error: by prior mass,
    by distance or by either, any number of cells of `LADDER`. One cell (the prior alone, which costs nothing) is among
    them: a plan is never predicted to be worse than the prior.

    Parameters
    ----------
    table : PriorTable
        Public; part of the prior.

    Raises
    ------
    PrivacyParameterError
        If no noise level meets the settings.
    """
    asked, finest = _candidates(settings, len(region.zones) + 1)
    most = _most(settings, headcount, asked)
    model = model_of(settings, table)
    first = most
    if settings.finest < 0 and not settings.cells:
        first = np.minimum(most, asked[np.searchsorted(asked, _FIRST_LOOK * (headcount + 32), side="right") - 1])
    plan = _best(region, model, destination, headcount, settings, asked, finest, first)
    edge = np.flatnonzero((first < most) & (plan.cells_asked == first))
    if not edge.size:
        return plan
    finer = _best(region, model, destination[edge], headcount[edge], settings, asked, finest, most[edge])
    columns = {field.name: getattr(plan, field.name).copy() for field in fields(Plan)}
    for name, column in columns.items():
        column[edge] = getattr(finer, name)
    return Plan(**columns)


def _best(
    region: Region,
    model: PriorModel,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
    asked: NDArray[np.int64],
    finest: NDArray[np.int64],
    most: NDArray[np.int64],
) -> Plan:
    """Return for each destination the candidate of at most `most` cells that is predicted to err least."""
    found = survey(region.tree, model, region.points(destination), destination, asked, finest, most)
    distinct, inverse = np.unique(headcount[:, None] * _TO_CELLS + found.cells, return_inverse=True)
    calibrated = [_calibrate(settings, *divmod(pair, _TO_CELLS)) for pair in distinct.tolist()]
    inverse = inverse.reshape(found.cells.shape)
    alpha = np.array([float(calibration.alpha) for calibration, _ in calibrated])[inverse]
    errors = predicted_errors(headcount, alpha * found.cells * float(settings.segments), found)
    choice = errors.argmin(axis=1)
    chosen = (np.arange(destination.size), choice)
    pick = inverse[chosen]
    calibrations = [calibration for calibration, _ in calibrated]
    return Plan(
        destination=destination.astype(np.int32),
        headcount=headcount.astype(np.int64),
        synthetic_size=headcount.astype(np.int64),
        cells_asked=asked[choice],
        cells=found.cells[chosen],
        alpha_numerator=np.array([c.alpha.numerator for c in calibrations], np.int64)[pick],
        alpha_denominator=np.array([c.alpha.denominator for c in calibrations], np.int64)[pick],
        keep_units=np.array([units for _, units in calibrated], np.int64)[pick],
        epsilon=np.array([c.epsilon_total for c in calibrations])[pick],
        epsilon_dropping=np.array([c.epsilon_dropping for c in calibrations])[pick],
        delta=np.array([c.certified_delta for c in calibrations])[pick],
        predicted_km=errors[chosen],
        finest=finest[choice],
        prior_strength=found.strength,
    )


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


def _most(settings: PlanSettings, headcount: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each destination the most cells worth a look: beyond, nearly all workers would be the prior's."""
    ladder = np.unique(asked)
    distinct, inverse = np.unique(headcount, return_inverse=True)
    most = np.full(distinct.size, ladder[0])
    for place, n in enumerate(distinct.tolist()):
        for cells in ladder[1:].tolist():
            mass = float(_calibrate(settings, n, cells)[0].alpha) * cells * settings.segments
            if mass / (mass + n) > _HEAVIEST_PRIOR_SHARE:
                break
            most[place] = cells
    return most[inverse]


def _keeps(wanted: float) -> Iterator[int]:
    """Yield keep probabilities in 1/2^16, from `wanted` (rounded up) towards 1."""
    units = min(KEEP_UNITS, -int(-Fraction(wanted) * KEEP_UNITS // 1))
    while KEEP_UNITS - units > KEEP_UNITS // 64:
        yield units
        units = (units + KEEP_UNITS) // 2
    yield KEEP_UNITS


def _calibrate(settings: PlanSettings, headcount: int, cells: int) -> tuple[Calibration, int]:
    """Return the noise for one destination and its keep probability in 1/2^16.

    Where dropping as wished costs more than ε, the keep probability moves towards 1 until it does not.
    """
    for units in _keeps(settings.keep):
        try:
            found = minimum_alpha(
                epsilon=settings.epsilon,
                delta=settings.delta,
                headcount=headcount,
                cells=cells * settings.segments,
                keep=units / KEEP_UNITS,
                keep_most=1.0 if settings.keep_by_prior else units / KEEP_UNITS,
                rule=settings.rule,
            )
        except PrivacyParameterError:
            if units == KEEP_UNITS:
                raise
        else:
            return found, units
    raise AssertionError("unreachable: the last keep probability is 1")
