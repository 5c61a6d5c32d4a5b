"""The plan: for each destination its cells, noise and keep probability, all from public data.

Planning spends nothing: it reads headcounts, zones, the prior and the spec, never an origin.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.errors import ConfigurationError, PrivacyParameterError
from synthmap.geography.coarsening import has_own_cell, split_by_distance, split_by_mass
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import prior_from
from synthmap.geography.region import Region
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.privacy.calibration import Calibration, minimum_alpha
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec

LADDER = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
_HEAVIEST_PRIOR_SHARE = 0.85  # domains where the prior weighs more are never better than coarser ones
_NEGLIGIBLE = 0.02  # of the sampling error: finer cells are not looked at when less is left inside
_ALONG = 0.5  # share of a cell's squared spread along the way to the destination


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
        Predicted error (root mean square) of the destination's average commute, from public data; NaN
        where it was not needed.
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
    if spec.plan.coarsening == "distance":
        names = (*levels, "zone")
        wanted = spec.plan.finest or (levels[-1] if levels else "zone")
        if wanted not in names:
            raise ConfigurationError(f"plan.finest ({wanted}) must be one of {', '.join(names)}")
        finest = names.index(wanted)
    elif spec.plan.finest is not None:
        raise ConfigurationError('plan.finest must be left out unless plan.coarsening is "distance"')
    by_prior = spec.plan.keep == "prior"
    return PlanSettings(
        epsilon=spec.privacy.epsilon,
        delta=spec.privacy.delta,
        rule=spec.privacy.rule,
        cells=0 if spec.plan.cells == "auto" else spec.plan.cells,
        finest=finest,
        keep=spec.plan.keep_floor if spec.plan.keep == "prior" else spec.plan.keep,
        keep_by_prior=by_prior,
        segments=max(1, len(spec.segment_columns)),
        scale_km=spec.prior.scale_km,
        power=spec.prior.power,
        elsewhere_share=spec.elsewhere_share,
        strength=spec.prior.strength,
    )


def plan_destinations(
    region: Region,
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    settings: PlanSettings,
) -> Plan:
    """Return the plan for the destinations of the given ranks and public headcounts.

    With ``settings.cells == 0`` each destination gets the number of cells with the smallest predicted error among
    `LADDER`, one cell (the prior alone, which costs nothing) included: a plan is never predicted to be worse than
    the prior.

    Raises
    ------
    PrivacyParameterError
        If no noise level meets the settings.
    """
    points = region.points(destination)
    every = len(region.zones) + 1
    inhabited = int(np.count_nonzero(region.zones.weight))
    asked = np.array([settings.cells] if settings.cells else sorted({min(k, every) for k in LADDER}))
    cells = np.broadcast_to([_made_by_mass(k, inhabited, settings) for k in asked], (destination.size, asked.size))
    unresolved = None
    if settings.finest >= 0:
        cells, unresolved = _survey_by_distance(
            region.tree, points, settings.scale_km, settings.power, settings.elsewhere_share, settings.finest, asked
        )
    pairs, inverse = np.unique(np.stack([np.repeat(headcount, asked.size), cells.ravel()]), axis=1, return_inverse=True)
    found = [_calibrate(settings, n, k) for n, k in pairs.T.tolist()]
    inverse = inverse.reshape(cells.shape)
    choice = np.zeros(destination.size, np.int64)
    predicted = np.full(destination.size, np.nan)
    if asked.size > 1:
        alpha = np.array([float(calibration.alpha) for calibration, _ in found])[inverse]
        mass = alpha * cells * float(settings.segments)
        errors = predicted_errors(region.tree, points, headcount, cells, mass, unresolved, settings)
        choice = errors.argmin(axis=1)
        predicted = errors.min(axis=1)
    pick = np.take_along_axis(inverse, choice[:, None], axis=1)[:, 0]
    calibrations = [calibration for calibration, _ in found]
    return Plan(
        destination=destination.astype(np.int32),
        headcount=headcount.astype(np.int64),
        synthetic_size=headcount.astype(np.int64),
        cells_asked=asked[choice],
        cells=np.take_along_axis(cells, choice[:, None], axis=1)[:, 0],
        alpha_numerator=np.array([c.alpha.numerator for c in calibrations], np.int64)[pick],
        alpha_denominator=np.array([c.alpha.denominator for c in calibrations], np.int64)[pick],
        keep_units=np.array([units for _, units in found], np.int64)[pick],
        epsilon=np.array([c.epsilon_total for c in calibrations])[pick],
        epsilon_dropping=np.array([c.epsilon_dropping for c in calibrations])[pick],
        delta=np.array([c.certified_delta for c in calibrations])[pick],
        predicted_km=predicted,
    )


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


def _made_by_mass(asked: int, inhabited: int, settings: PlanSettings) -> int:
    """Return how many cells coarsening by prior mass makes when asked for `asked`."""
    own = bool(has_own_cell(settings.elsewhere_share, asked))
    return min(asked - own, inhabited) + own


@compiled
def _survey_by_distance(
    tree: ZoneTree,
    points: NDArray[np.float64],
    scale_km: float,
    power: float,
    elsewhere_share: float,
    finest: int,
    asked: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (cells made, mean squared spread inside cells in km²) for each destination and number asked for."""
    cells = np.empty((len(points), asked.size), np.int64)
    unresolved = np.empty((len(points), asked.size))
    for d in range(len(points)):
        prior = prior_from(tree, points[d], scale_km, power, elsewhere_share)
        for i in range(asked.size):
            own = 1 if has_own_cell(elsewhere_share, asked[i]) else 0
            boundaries, left = split_by_distance(tree, prior, points[d], finest, asked[i] - own)
            cells[d, i] = boundaries.size + 1 + own
            unresolved[d, i] = left
    return cells, unresolved


def predicted_errors(
    tree: ZoneTree,
    points: NDArray[np.float64],
    headcount: NDArray[np.int64],
    cells: NDArray[np.int64],
    mass: NDArray[np.float64],
    unresolved: NDArray[np.float64] | None,
    settings: PlanSettings,
) -> NDArray[np.float64]:
    """Return the predicted root mean square error of each destination's average commute, in km.

    Parameters
    ----------
    headcount : ndarray of int64, shape (D,)
    cells, mass : ndarray, shape (D, L)
        For each destination and candidate: k and A = Σα.
    unresolved : ndarray of float64, shape (D, L), optional
        Mean squared spread inside cells, km²; found by splitting by prior mass where it is left out.

    Notes
    -----
    With σ² the prior's variance of distance, ω² the part inside cells, s = A/(n + A) the prior's share, N = n + A and
    h = 1/(1 + strength) + 1/n (how far a destination's true mean may be from its prior's):

        E² = (s²·(σ² − ω²) + ω²)·h + (σ² − ω²)/m·(m + N)/(1 + N) + ω²/m

    The first term is bias (the prior pulls all of it, the cell only what lies inside), the others are
    the sampling of an urn between cells and of the prior inside. One cell gives the prior alone.
    """
    size = headcount[:, None].astype(float)
    doubt = 1.0 / (1.0 + settings.strength) + 1.0 / size
    share = mass / (size + mass)
    useful = np.where((share <= _HEAVIEST_PRIOR_SHARE) & (unresolved is None), cells, 1)
    within, variance = _survey_by_mass(
        tree,
        points,
        settings.scale_km,
        settings.power,
        settings.elsewhere_share,
        useful,
        _NEGLIGIBLE * 2.0 / size[:, 0] / doubt[:, 0] / _ALONG,
    )
    if unresolved is not None:
        within = unresolved
    total = size + mass
    inside = np.minimum(within * _ALONG, variance[:, None])
    inside = np.where(cells == 1, variance[:, None], inside)
    between = variance[:, None] - inside
    squared = (share**2 * between + inside) * doubt + between / size * (size + total) / (1.0 + total) + inside / size
    squared = np.where((share > _HEAVIEST_PRIOR_SHARE) & (cells > 1), np.inf, squared)
    return np.sqrt(squared)


@compiled
def _survey_by_mass(
    tree: ZoneTree,
    points: NDArray[np.float64],
    scale_km: float,
    power: float,
    elsewhere_share: float,
    cells: NDArray[np.int64],
    enough: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (mean squared spread inside cells for each candidate, variance of distance), km²."""
    unresolved = np.empty(cells.shape)
    variance = np.empty(len(points))
    for d in range(len(points)):
        prior = prior_from(tree, points[d], scale_km, power, elsewhere_share)
        variance[d] = prior.variance_km2
        _, left = split_by_mass(tree, prior, cells[d].max(), enough[d] * prior.variance_km2)
        for i in range(cells.shape[1]):
            most = cells[d, i] - (1 if has_own_cell(elsewhere_share, cells[d, i]) else 0)
            unresolved[d, i] = left[min(most, left.size) - 1]
    return unresolved, variance
