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

    The two need not be of the same destination, so they need not add up to the total. Dropping never fails: all of δ
    belongs to resampling.
    """

    resampling_epsilon: float
    resampling_delta: float
    dropping_epsilon: float
    dropping_delta: float


class Privacy(_Part):
    """The promise.

    `dp` is what is promised for everything derived from the table, all jobs of a worker together; `pdp_cells` is the
    same at cell level in OnTheMap's form. `certified_per_job` is what the noise was computed to cost the dearest
    destination, which is never more.
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
    """How the plan treats destinations whose headcount lies in a class."""

    headcount_from: int
    headcount_to: int
    destinations: int
    workers: int
    cells_median: float
    alpha_smallest: float
    alpha_median: float
    alpha_largest: float
    prior_share_mean: float
    predicted_km_median: float | None


class PlanSummary(_Part):
    """How origins were coarsened and noise was chosen."""

    mechanism: Literal["dirichlet"]
    coarsening: str
    finest: str
    cells: str
    keep: str
    keep_smallest: float
    synthetic_size_rule: str
    prior_share_mean: float
    classes: list[HeadcountClass]


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


class PriorSummary(_Part):
    """The public prior and where it comes from."""

    formula: str
    weight: str
    scale_km: float
    power: float
    elsewhere_share: float
    strength: float
    source: PriorSource | None = None


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
