"""The plan: for each destination its cells, noise and keep probability, all from what is public.

Planning spends nothing: it reads headcounts, zones, the prior and the spec, never an origin. Where the prior's decay
was fitted to lengths measured with noise, these were paid for before.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synthmap.errors import ConfigurationError
from synthmap.geography.coarsening import cells_for
from synthmap.geography.prior import PriorModel, PriorTable
from synthmap.geography.region import Region
from synthmap.privacy.composition import round_up
from synthmap.privacy.rule import Rule
from synthmap.spec import Spec


@dataclass(frozen=True)
class PlanSettings:
    """The public choices that shape a plan, apart from headcounts and geography.

    Attributes
    ----------
    epsilon, delta : float
        For one job at one destination, what measured lengths take left out.
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
    edges_km, scales_km : tuple of float
        Decay by class of destination, see `synthmap.geography.prior.PriorModel`.
    mixing : float
        Largest share of a public table in the prior; 0 without one.
    either : bool
        Cells by prior mass are candidates beside those by distance.
    mechanism : str
        See `synthmap.mechanism.chosen`; "auto" until one has been chosen.
    agreement : bool
        Of noisy counts, publish the likeliest units rather than the posterior means.
    strength_inside : float
        How well the prior fits inside a group of neighbouring cells, in workers of a destination.
    gaussian : bool
        Noisy counts get Gaussian noise, for all jobs of a person together, rather than two-sided geometric noise.
    jobs : int
        Jobs of a person at most; only Gaussian noise depends on it.
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
    mechanism: str = "dirichlet"
    agreement: bool = False
    strength_inside: float = 400.0
    gaussian: bool = False
    jobs: int = 1
    edges_km: tuple[float, ...] = ()
    scales_km: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plan(ABC):
    """One entry a destination, all public; arrays of equal length. A mechanism adds what is its own.

    Attributes
    ----------
    destination : ndarray of int32
        Rank of the zone.
    headcount, synthetic_size : ndarray of int64
        n(d) and m(d), workers.
    cells_asked, cells : ndarray of int64
        Origin cells that coarsening is asked for, and those it makes.
    finest : ndarray of int64
        Coarsening: −1 by prior mass, else by distance down to this level (0 the coarsest; zones come after all).
    epsilon, delta : ndarray of float64
        Certified loss for one job; ε = 0 for one cell.
    predicted_km : ndarray of float64
        Predicted error (root mean square) of the destination's average commute, from public data.
    prior_share : ndarray of float64
        How much of what is published is prior, not data, in [0, 1].
    prior_strength : ndarray of float64
        How many workers the prior is worth, see `synthmap.geography.prior.worth`.
    scale_km : ndarray of float64
        Of the decay in the prior.
    """

    destination: NDArray[np.int32]
    headcount: NDArray[np.int64]
    synthetic_size: NDArray[np.int64]
    cells_asked: NDArray[np.int64]
    cells: NDArray[np.int64]
    finest: NDArray[np.int64]
    epsilon: NDArray[np.float64]
    delta: NDArray[np.float64]
    predicted_km: NDArray[np.float64]
    prior_share: NDArray[np.float64]
    prior_strength: NDArray[np.float64]
    scale_km: NDArray[np.float64]

    def __len__(self) -> int:
        return self.destination.size

    @abstractmethod
    def summary(self, settings: PlanSettings) -> dict[str, float | str]:
        """Return what else a manifest says about the plan."""

    def to_table(self) -> pa.Table:
        """Return the plan as an Arrow table."""
        return pa.table({field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Return the plan in an Arrow table made by `to_table`."""
        return cls(*(table[field.name].to_numpy() for field in fields(cls)))


def coarsening_of(spec: Spec) -> str:
    """Return how origins are coarsened: as `spec` says, or as suits the mechanism."""
    if spec.plan.coarsening is not None:
        return spec.plan.coarsening
    return "prior-mass" if spec.plan.mechanism == "dirichlet" else "auto"


def settings_of(spec: Spec, region: Region) -> PlanSettings:
    """Return the settings in `spec`.

    Raises
    ------
    ConfigurationError
        If `plan.finest` is not a level of the zones, or by distance there could only be one cell.
    """
    levels = region.zones.levels
    finest = -1
    coarsening = coarsening_of(spec)
    if coarsening != "prior-mass":
        names = (*levels, "zone")
        wanted = spec.plan.finest or (levels[-1] if levels else "zone")
        if wanted not in names:
            raise ConfigurationError(f"plan.finest ({wanted}) must be one of {', '.join(names)}")
        finest = names.index(wanted)
    elif spec.plan.finest is not None:
        raise ConfigurationError('plan.finest must be left out unless plan.coarsening is "distance" or "auto"')
    if coarsening == "distance" and spec.plan.mechanism == "dirichlet":
        _refuse_one_cell(spec, region, finest)
    keep = spec.plan.keep_floor if spec.plan.keep == "prior" else spec.plan.keep
    return PlanSettings(
        epsilon=table_epsilon(spec),
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
        strength=spec.strength,
        mixing=spec.prior.mixing if spec.prior.public else 0.0,
        either=coarsening == "auto",
        mechanism=spec.plan.mechanism,
        agreement=spec.plan.reading == "agreement",
        strength_inside=spec.prior.strength_inside,
        gaussian=spec.plan.noise == "gaussian",
        jobs=spec.privacy.max_jobs_per_worker,
        edges_km=tuple(spec.prior.class_edges_km),
        scales_km=tuple(spec.prior.class_scales_km),
    )


def table_epsilon(spec: Spec) -> float:
    """Return the ε of one job that is left for the table, rounded down, after that of measured lengths."""
    whole, lengths = spec.privacy.epsilon, spec.lengths_epsilon
    return -round_up(Fraction(lengths) - Fraction(whole)) if lengths else whole


def _refuse_one_cell(spec: Spec, region: Region, finest: int) -> None:
    """Refuse fewer cells than the coarsest level has units: all would be one cell, the prior alone at full price."""
    cells = spec.plan.cells
    if cells == "auto" or cells == 1:
        return
    names = (*region.zones.levels, "zone")
    sizes = [starts.size - 1 for starts in region.tree.level_start[: finest + 1]]
    level = next((level for level, size in enumerate(sizes) if size > 1), None)
    if level is None:
        raise ConfigurationError(f"plan.finest ({names[finest]}) must have more than one unit")
    needed = cells_for(sizes[level], spec.elsewhere_share)
    if cells < needed:
        raise ConfigurationError(
            f'plan.cells ({cells}) must be at least {needed} where plan.coarsening is "distance": level '
            f'{names[level]} has {sizes[level]} units, and there are cells for all of them or none; or leave it "auto"'
        )


def model_of(settings: PlanSettings, table: PriorTable) -> PriorModel:
    """Return the prior that `settings` and a public table make."""
    return PriorModel(
        settings.scale_km,
        settings.power,
        settings.elsewhere_share,
        settings.mixing,
        settings.strength,
        table,
        np.array(settings.edges_km, np.float64),
        np.array(settings.scales_km, np.float64),
    )
