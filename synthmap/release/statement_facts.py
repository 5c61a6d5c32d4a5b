"""What a statement says in figures: copied or computed from the manifest and the plan of a release, nothing else."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from synthmap.release.manifest import LengthsSummary, Loss, Manifest, Privacy, ProbabilisticLoss

PRIORS = (0.001, 0.01, 0.1, 0.5)
MOSTLY = 0.5  # from this share on, more of the workers are drawn from the prior than from data
_UP = Context(prec=6, rounding=ROUND_CEILING)
_LARGEST = 700.0  # exp of more is no float; such a factor bounds nothing

Form = Literal["pure", "probabilistic", "approximate"]


def _is_none(value: object) -> bool:
    return value is None


class Fact(BaseModel):
    """A part of a statement; it never changes, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Belief(Fact):
    """How likely a worker's true home seemed before, and at most seems after."""

    prior: float
    posterior: float = Field(description="Rounded up.")


class Odds(Fact):
    """A bound on what one worker's part in the release can teach an attacker who knows where all others live.

    But for a chance of at most `chance`, the odds that the attacker gives to the truth grow by at most `factor`.
    """

    jobs: int = Field(description="Jobs of the worker about which the attacker guesses together.")
    epsilon: float
    delta: float
    factor: float | None = Field(description="Rounded up; null: too large to mean anything.")
    chance: float
    beliefs: list[Belief]


class PriorShare(Fact):
    """Destinations of a class of headcounts, both ends included, and the share of their workers that is prior."""

    headcount_from: int
    headcount_to: int
    destinations: int
    workers: int
    cells: float = Field(
        description="Median number of areas between which the origins of a destination are told apart."
    )
    prior_share: float


class MostlyPrior(Fact):
    """Where more than half of a destination's synthetic workers are expected to be drawn from the prior."""

    below: int | None = Field(
        description="From this headcount on every destination takes most of its workers from data; null: all do."
    )
    destinations: int = Field(description="Destinations that are mostly prior.")
    workers_share: float = Field(description="Share of all workers who work there.")
    largest: float = Field(description="The largest share at any destination.")


class Lengths(Fact):
    """Commute lengths that were measured with noise before the table was planned, to fit the prior's decay to."""

    epsilon: float = Field(description="Of one job, all classes together; a part of the ε that is promised.")
    classes: int = Field(description="Classes of destinations with a mean length each; sums stand in the manifest.")
    cap_km: float = Field(description="Longer commutes count as this long.")


class Facts(Fact):
    """The guarantee of a release in figures and in the manifest's own words."""

    release: str
    private: bool
    warning: str | None
    mechanism: str
    rule: str
    form: Form = Field(
        description="pure: δ = 0; probabilistic: OnTheMap's, which bounds beliefs; approximate: (ε, δ)-DP only."
    )
    unit: str
    adjacency: str
    max_jobs_per_worker: int
    dp: Loss
    pdp_cells: ProbabilisticLoss | None
    certified_per_job: Loss
    invariants: list[str]
    workers: int
    destinations: int
    segments: list[str]
    assumptions: list[str]
    odds: list[Odds] = Field(description="For all jobs of a worker together; where these are several, also for one.")
    prior_share: float = Field(description="Of all workers.")
    prior_shares: list[PriorShare]
    mostly_prior: MostlyPrior | None = Field(description="Null where the plan does not tell.")
    lengths: Lengths | None = Field(
        default=None, exclude_if=_is_none, description="Left out where no lengths were measured."
    )


def make_facts(manifest: Manifest, plan: pa.Table) -> Facts:
    """Return the facts of a release.

    Parameters
    ----------
    manifest : Manifest
    plan : pyarrow.Table
        ``plan.parquet``.
    """
    privacy = manifest.privacy
    return Facts(
        release=manifest.release,
        private=manifest.private,
        warning=manifest.warning,
        mechanism=manifest.plan.mechanism,
        rule=privacy.rule,
        form=form_of(privacy),
        unit=privacy.unit,
        adjacency=privacy.adjacency,
        max_jobs_per_worker=privacy.max_jobs_per_worker,
        dp=privacy.dp,
        pdp_cells=privacy.pdp_cells,
        certified_per_job=privacy.certified_per_job,
        invariants=list(manifest.invariants.statements),
        workers=manifest.invariants.workers,
        destinations=manifest.invariants.destinations,
        segments=list(manifest.segments),
        assumptions=list(privacy.assumptions),
        odds=_odds(privacy),
        prior_share=manifest.plan.prior_share_mean,
        prior_shares=[
            PriorShare(
                headcount_from=one.headcount_from,
                headcount_to=one.headcount_to,
                destinations=one.destinations,
                workers=one.workers,
                cells=one.cells_median,
                prior_share=one.prior_share_mean,
            )
            for one in manifest.plan.classes
        ],
        mostly_prior=_mostly_prior(plan),
        lengths=_lengths(manifest.prior.lengths),
    )


def form_of(privacy: Privacy) -> Form:
    """Return the form of differential privacy that a release promises."""
    if privacy.dp.delta == 0:
        return "pure"
    return "probabilistic" if privacy.rule == "pdp" and privacy.pdp_cells is not None else "approximate"


def bound_beliefs(form: Form, epsilon: float, delta: float, jobs: int = 1) -> Odds:
    """Return what an attacker can come to believe of the truth about one worker.

    Under the forms ``pure`` and ``probabilistic`` the odds grow by at most exp(ε), but for a chance of δ. Plain
    (ε, δ)-DP does not bound how often they grow by that; it does for twice the factor and twice the chance.

    Parameters
    ----------
    form : {'pure', 'probabilistic', 'approximate'}
    epsilon : float
        Natural-log ε.
    delta : float
    jobs : int
        Jobs that ε and δ cover together.

    Notes
    -----
    Proof: privacy/proofs/beliefs.md.

    Examples
    --------
    >>> bound_beliefs("pure", 4.0, 0.0).factor, bound_beliefs("approximate", 4.0, 1e-6).chance
    (54.5982, 2e-06)
    """
    times = 2.0 if form == "approximate" else 1.0
    factor = None if epsilon > _LARGEST else _up(times * math.exp(epsilon))
    return Odds(
        jobs=jobs,
        epsilon=epsilon,
        delta=delta,
        factor=factor,
        chance=min(1.0, times * delta),
        beliefs=[
            Belief(prior=prior, posterior=1.0 if factor is None else min(1.0, _up(posterior_at_most(prior, factor))))
            for prior in PRIORS
        ],
    )


def _lengths(measured: LengthsSummary | None) -> Lengths | None:
    if measured is None:
        return None
    return Lengths(epsilon=measured.epsilon, classes=len(measured.noisy_sums), cap_km=measured.cap_km)


def _odds(privacy: Privacy) -> list[Odds]:
    form, one = form_of(privacy), privacy.certified_per_job
    found = [bound_beliefs(form, privacy.dp.epsilon, privacy.dp.delta, privacy.max_jobs_per_worker)]
    if privacy.max_jobs_per_worker > 1:
        found.append(bound_beliefs(form, one.epsilon, one.delta))
    return found


def posterior_at_most(prior: float, factor: float) -> float:
    """Return how likely anything can become that was `prior` likely, where its odds grow by at most `factor`.

    Examples
    --------
    >>> round(posterior_at_most(0.01, 99.0), 12)
    0.5
    """
    return prior * factor / (prior * factor + 1.0 - prior)


def _up(value: float) -> float:
    """Return a number of six digits that is not below `value`, the same on every machine."""
    return float(_UP.create_decimal(Decimal(value)))


def _mostly_prior(plan: pa.Table) -> MostlyPrior | None:
    if "prior_share" not in plan.column_names or not plan.num_rows:
        return None
    share, headcount = plan["prior_share"].to_numpy(), plan["headcount"].to_numpy()
    if not np.isfinite(share).all():
        return None
    mostly = share > MOSTLY
    return MostlyPrior(
        below=mostly_prior_below(headcount, share),
        destinations=int(mostly.sum()),
        workers_share=float(headcount[mostly].sum() / max(1, headcount.sum())),
        largest=float(share.max()),
    )


def mostly_prior_below(headcount: np.ndarray, prior_share: np.ndarray) -> int | None:
    """Return the headcount from which on no destination is mostly prior, or None if none is at all."""
    mostly = prior_share > MOSTLY
    return int(headcount[mostly].max()) + 1 if mostly.any() else None
