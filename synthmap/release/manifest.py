"""The manifest: what a release states about itself. Everything in it is public."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError

MANIFEST = "manifest.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Loss(_Part):
    """An (ε, δ); ε is a natural logarithm."""

    epsilon: float
    delta: float


class ProbabilisticLoss(_Part):
    """(ε, δ)-probabilistic DP of the table of cells, for one destination and for all together."""

    epsilon: float
    delta_destination: float
    delta_table: float


class Steps(_Part):
    """What each step of the mechanism takes, for one job, at the destination where it takes most.

    They need not be of the same destination, so they need not add up to the total. Dropping never fails: all of δ
    belongs to resampling. Noisy counts of cells and of groups of cells are the steps of the histogram. Lengths are
    measured before a table is planned; every destination pays for them.
    """

    resampling_epsilon: float = 0.0
    resampling_delta: float = 0.0
    dropping_epsilon: float = 0.0
    dropping_delta: float = 0.0
    cells_epsilon: float = 0.0
    cells_delta: float = 0.0
    groups_epsilon: float = 0.0
    lengths_epsilon: float = 0.0


class Privacy(_Part):
    """The promise.

    `dp` is what is promised for everything derived from the table, all jobs of a worker together; `pdp_cells` is the
    same at cell level in OnTheMap's form. `certified_per_job` is what the noise was computed to cost the dearest
    destination: times the jobs never more than `dp`, but for Gaussian noise, which is certified for all jobs together.
    """

    unit: str
    adjacency: str
    rule: Literal["pdp", "adp", "pure"]
    max_jobs_per_worker: int
    dp: Loss
    pdp_cells: ProbabilisticLoss | None
    certified_per_job: Loss
    steps: Steps
    assumptions: list[str]


class Invariants(_Part):
    """Figures published exactly."""

    statements: list[str]
    workers: int
    destinations: int


class HeadcountClass(_Part):
    """How the plan treats destinations whose headcount lies in a class.

    α is that of Dirichlet resampling, in workers. The histogram's noise has a standard deviation, in workers, and
    `groups_share` of the destinations have noisy counts of groups of cells as well.
    """

    headcount_from: int
    headcount_to: int
    destinations: int
    workers: int
    cells_median: float
    alpha_smallest: float | None = None
    alpha_median: float | None = None
    alpha_largest: float | None = None
    noise_sd_median: float | None = None
    groups_share: float | None = None
    prior_share_mean: float
    predicted_km_median: float | None

    @property
    def noise(self) -> float:
        """Median noise: α, or the standard deviation of the noise on a count; NaN where the manifest tells neither."""
        found = self.alpha_median if self.noise_sd_median is None else self.noise_sd_median
        return float("nan") if found is None else found


class PlanSummary(_Part):
    """How origins were coarsened and noise was chosen.

    `choice` says why this mechanism, where the planner chose it; `reading` is how noisy counts became a table, and
    `noise_law` what noise they have where it is not two-sided geometric. With an
    `interval` every row of the table says between which counts, low and high, the true one is with that probability.
    """

    mechanism: Literal["dirichlet", "histogram"]
    choice: str = ""
    reading: Literal["", "means", "agreement"] = ""
    noise_law: Literal["", "gaussian"] = ""
    interval: float | None = None
    coarsening: str
    finest: str
    cells: str
    keep: str
    keep_smallest: float = 1.0
    synthetic_size_rule: str
    prior_share_mean: float
    classes: list[HeadcountClass]

    @property
    def noise(self) -> str:
        """What the noise of a class is."""
        told = {
            "dirichlet": "noise is α, the pseudo-count of each cell",
            "histogram": "noise is the standard deviation of what is added to the count of each cell",
        }
        return told[self.mechanism]


class PriorSource(_Part):
    """A public table of flows that is part of the prior.

    `sha256` is that of the earlier release's manifest, or of the user's file; a destination with c of its `workers`
    takes the share mixing·c/(c + strength) of its prior from there. `private` is what an earlier release says of
    itself.
    """

    kind: Literal["release", "table"]
    name: str
    sha256: str
    vintage: str
    private: bool
    mixing: float
    workers: int
    statement: str


class LengthsSummary(_Part):
    """Commute lengths as they were measured, by class of destination; ε is for one job, all classes together.

    `noisy_sums` are sums of lengths in thousandths of `cap_km`, the longest that counts, with two-sided geometric noise
    of `noise_units` in 1/2^32; `mean_km` is what the decay was fitted to: those means, weighed against the public ones.
    """

    epsilon: float
    cap_km: float
    noise_units: int
    workers: list[int]
    noisy_sums: list[int]
    mean_km: list[float]


class PriorSummary(_Part):
    """The public prior and where it comes from.

    With `class_scales_km` the decay has a scale of its own for each class of destinations, instead of `scale_km`: what
    that expects of their commutes, between `class_edges_km`, tells the class. `class_source` is what the curator says
    that they were fitted to; None where they were fitted to `lengths`, and in releases made before it was asked for.
    """

    formula: str
    weight: str
    scale_km: float
    power: float
    elsewhere_share: float
    strength: float
    strength_inside: float | None = None
    source: PriorSource | None = None
    class_edges_km: list[float] = []
    class_scales_km: list[float] = []
    class_source: str | None = None
    lengths: LengthsSummary | None = None


class ZonesSummary(_Part):
    """The geography of origins and destinations."""

    vintage: str
    zones: int
    levels: list[str]
    elsewhere: str | None


class Software(_Part):
    """What made the release."""

    synthmap: str
    source: str
    python: str
    packages: dict[str, str]


class FileRecord(_Part):
    """A file of the release."""

    sha256: str
    bytes: int


class Manifest(_Part):
    """A release's statement of itself."""

    format: Literal["synthmap-release-1"] = "synthmap-release-1"
    release: str
    name: str
    title: str
    curator: str = ""
    year: int | None
    created: str
    private: bool
    warning: str | None
    segments: list[str]
    privacy: Privacy
    invariants: Invariants
    plan: PlanSummary
    prior: PriorSummary
    zones: ZonesSummary
    software: Software
    files: dict[str, FileRecord]


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of the release in `directory`.

    Raises
    ------
    ReleaseNotFoundError
        If there is none.
    ReleaseCorruptError
        If it cannot be read as one.
    """
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ReleaseNotFoundError(f"release ({directory}) must hold a {MANIFEST}") from None
    except NotADirectoryError:
        raise ReleaseNotFoundError(f"release ({directory}) must be a directory") from None
    except (OSError, ValidationError, ValueError):
        raise ReleaseCorruptError(f"{path} must be a manifest of format synthmap-release-1") from None
