"""The spec of a release: one TOML file, every key checked, unknown keys refused.

A spec holds what is public about a release (privacy parameters, plan, prior) and *where* its inputs lie. It
never holds data.
"""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthmap.errors import ConfigurationError
from synthmap.privacy.rule import Rule
from synthmap.spec_paths import anchor, refuse_same_paths

# what the service calls columns of zones, and of flows
_OF_ZONES = {"", "count", "geometry", "id", "in", "latitude", "level", "longitude", "out", "prior_share", "weight"}
_OF_ZONES |= {"out_error", "zone", "zones"}
_LEAST_EPSILON = 1e-3  # that a part of privacy.epsilon may be
_STRENGTH, _STRENGTH_FITTED = 5.0, 15.0  # workers that a prior is worth, see `usual_strength`
_LENGTHS_ENOUGH = 5_000.0  # ε times workers that tell mean commutes well enough, see `Spec.with_workers`
_LENGTHS_MOST = 10  # by themselves measured lengths take at most one in so many of privacy.epsilon
_OF_FLOWS = {"destination", "distance_km", "expected_error", "high", "low", "origin"}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Weights(_Section):
    """A public table with one weight a zone (for instance population), joined by id."""

    path: Path
    id: str
    column: str
    vintage: str


class Shapes(_Section):
    """A public layer with one polygon a zone, joined by id: what a map draws, where the zones file has only points."""

    path: Path
    id: str
    vintage: str
    layer: str | None = None


class ZonesSpec(_Section):
    """Where the zones lie and which columns say what."""

    path: Path
    vintage: str = Field(min_length=1)
    id: str | None = None
    levels: list[str] | None = None
    longitude: str | None = None
    latitude: str | None = None
    weight: str | None = None
    weights: Weights | None = None
    shapes: Shapes | None = None
    layer: str | None = None

    @model_validator(mode="after")
    def _levels(self) -> Self:
        if taken := _OF_ZONES & set(self.levels or ()):
            raise ValueError(f"zones.levels ({', '.join(sorted(taken))}) must have names of their own")
        return self

    @model_validator(mode="after")
    def _one_weight(self) -> Self:
        if self.weight and self.weights:
            raise ValueError("zones.weight and [zones.weights] exclude each other")
        return self


class TableSpec(_Section):
    """One confidential origin-destination table; LODES columns are the default."""

    path: Path
    vintage: str = Field(min_length=1)
    format: Literal["lodes", "long"] = "lodes"
    origin: str | None = None
    destination: str | None = None
    count: str | None = None
    separator: str = Field(default=",", min_length=1, max_length=1)

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if self.format == "long" and not (self.origin and self.destination):
            raise ValueError('a table of format "long" needs origin and destination')
        if self.format == "lodes" and (self.origin or self.destination or self.count):
            raise ValueError('origin, destination and count are for format = "long"')
        return self


class PrivacySpec(_Section):
    """What is promised, for one job at one destination.

    δ may be left out where nothing takes it: under the rule "pure", and with the mechanism "histogram", which knows no
    other rule but for Gaussian noise, which knows "adp" only. There it is not used.
    """

    epsilon: float = Field(gt=0, le=700, strict=True)
    delta: float = Field(
        default=0.0, ge=0, lt=1, strict=True,
        description='Needed unless rule is "pure" or plan.mechanism "histogram": these take none, whatever it says. '
        'Needed for plan.noise = "gaussian".',
    )  # fmt: skip
    rule: Rule = Rule.PDP
    max_jobs_per_worker: int = Field(default=1, ge=1, le=100)


class PlanSpec(_Section):
    """How the origins seen from a destination are coarsened, and how empty cells are dropped.

    The mechanism "histogram" drops none; `noise` is what it adds to counts, `reading` how a table is made of them. With
    "auto" each of the two takes what is its own.
    """

    mechanism: Literal["dirichlet", "histogram", "auto"] = "dirichlet"
    coarsening: Literal["prior-mass", "distance", "auto"] | None = None
    finest: str | None = None
    cells: Annotated[int, Field(ge=1, le=8_000_000)] | Literal["auto"] = "auto"
    keep: Annotated[float, Field(gt=0, le=1)] | Literal["prior", "auto"] = 1.0
    keep_floor: float = Field(default=0.5, gt=0, le=1)
    reading: Literal["means", "agreement"] = "means"
    noise: Literal["geometric", "gaussian"] = "geometric"

    @model_validator(mode="after")
    def _of_the_mechanism(self) -> Self:
        if self.mechanism == "histogram" and self.keep not in (1, "auto"):
            raise ValueError('keep must be left out where mechanism is "histogram", which drops no cell')
        if "keep_floor" in self.model_fields_set and self.keep != "prior":
            raise ValueError('keep_floor is for keep = "prior"')
        if self.mechanism == "dirichlet" and self.reading != "means":
            raise ValueError('reading is for mechanism = "histogram" or "auto"')
        if self.mechanism != "histogram" and self.noise != "geometric":
            raise ValueError('noise is for mechanism = "histogram"')
        return self


class PriorTableSpec(_Section):
    """A public table of flows, for instance from a census; without `count` every row is one worker."""

    path: Path
    origin: str
    destination: str
    count: str | None = None
    vintage: str = Field(min_length=1)


class PriorSpec(_Section):
    """The public prior: weight of a zone times (1 + distance/scale)^-power, and a share for everywhere else.

    The defaults lie between what fits three published tables best (Leeds 2011, District of Columbia 2023, Rhode
    Island 2019). Fit your own on public data only.

    A public table of flows may be mixed in, an earlier published release or any other: a destination with c workers in
    it takes the share ``mixing``·c/(c + ``strength``) from there, never all, so that no inhabited zone is without mass.

    Destinations may have decays of their own, by class: how far the public decay expects their workers to live, between
    ``class_edges_km``. Their ``class_scales_km`` come from public figures, such as an earlier release's manifest, and
    ``class_source`` tells which; or from the mean commutes of each class, measured with noise: ``lengths_epsilon``, a
    part of privacy.epsilon, buys them (`Spec.lengths_epsilon`); 0: none are measured.
    """

    scale_km: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    power: float = Field(default=2.5, ge=0, le=20)
    class_edges_km: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default=[], max_length=99)
    class_scales_km: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default=[], max_length=100)
    class_source: str | None = Field(
        default=None, max_length=1000,
        description="What public figures class_scales_km were fitted to, for people; needed with these.",
    )  # fmt: skip
    lengths_epsilon: Literal["auto"] | Annotated[float, Field(ge=0, le=10, strict=True)] = "auto"
    elsewhere_share: float | None = Field(default=None, ge=0, le=0.9)
    strength: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    strength_inside: float = Field(default=400.0, gt=0, allow_inf_nan=False)
    release: Path | None = None
    table: PriorTableSpec | None = None
    mixing: float = Field(default=0.9, gt=0, le=0.95)
    unknown: Literal["refuse", "leave out"] = "refuse"

    @model_validator(mode="after")
    def _one_table(self) -> Self:
        if self.release is not None and self.table is not None:
            raise ValueError("prior.release and [prior.table] exclude each other")
        usual = {name: type(self).model_fields[name].default for name in ("mixing", "unknown")}
        if not self.public and any(getattr(self, name) != value for name, value in usual.items()):
            raise ValueError("mixing and unknown are for prior.release or [prior.table]")
        return self

    @model_validator(mode="after")
    def _classes(self) -> Self:
        edges, scales = self.class_edges_km, self.class_scales_km
        if len(scales) != (len(edges) + 1 if edges or scales else 0) or edges != sorted(set(edges)):
            raise ValueError(
                "class_edges_km must ascend, with one more class_scales_km than these; or neither be given"
            )
        if isinstance(self.lengths_epsilon, float) and 0 < self.lengths_epsilon < _LEAST_EPSILON:
            raise ValueError(f"lengths_epsilon ({self.lengths_epsilon:g}) must be 0 or {_LEAST_EPSILON:g} or more")
        if scales and self.lengths_epsilon not in ("auto", 0):
            raise ValueError("class_scales_km and lengths_epsilon exclude each other")
        told = (self.class_source or "").strip()
        if scales and not told:
            raise ValueError(
                f'class_source ("{told}") must tell what public figures class_scales_km were fitted to, such as a '
                "table and its year"
            )
        if self.class_source is not None and not scales:
            raise ValueError(f'class_source ("{told}") must be left out where there are no class_scales_km')
        return self

    @property
    def public(self) -> bool:
        """Whether a public table is part of the prior."""
        return self.release is not None or self.table is not None


class RunSpec(_Section):
    """How the work is split; none of it changes the released table."""

    partitions: int | None = Field(default=None, ge=1, le=100_000)
    scratch: Path | None = None
    seed: int | None = Field(default=None, ge=0)


class Spec(_Section):
    """A whole release."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    title: str = ""
    curator: str = ""
    year: int | None = None
    store: Path = Path("releases")
    segments: Literal["SA", "SE", "SI"] | list[str] | None = None
    duplicates: Literal["refuse", "sum"] = "refuse"
    outside: Literal["refuse", "elsewhere"] = "refuse"
    zones: ZonesSpec
    tables: list[TableSpec] = Field(min_length=1)
    privacy: PrivacySpec
    plan: PlanSpec = PlanSpec()
    prior: PriorSpec = PriorSpec()
    run: RunSpec = RunSpec()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.outside == "refuse" and self.prior.elsewhere_share:
            raise ValueError('prior.elsewhere_share must be left out unless outside = "elsewhere"')
        gaussian = self.plan.noise == "gaussian"
        noisy = self.plan.mechanism == "histogram" and not gaussian
        if gaussian and "rule" in self.privacy.model_fields_set and self.privacy.rule is not Rule.ADP:
            raise ValueError(f'privacy.rule ({self.privacy.rule}) must be "adp" where plan.noise is "gaussian"')
        if gaussian and self.privacy.delta < 1e-11:
            raise ValueError(
                f'privacy.delta ({self.privacy.delta:g}) must be 1e-11 or more for plan.noise = "gaussian"'
            )
        if noisy and "rule" in self.privacy.model_fields_set and self.privacy.rule is not Rule.PURE:
            raise ValueError(
                f'privacy.rule ({self.privacy.rule}) must be left out or "pure" where plan.mechanism is '
                '"histogram", which takes no δ'
            )
        if not (noisy or self.privacy.rule is Rule.PURE or "delta" in self.privacy.model_fields_set):
            raise ValueError('privacy.delta must be given unless privacy.rule is "pure" or plan.mechanism "histogram"')
        lengths = self.lengths_epsilon
        if lengths and self.privacy.epsilon - lengths < _LEAST_EPSILON:  # found before it is paid
            raise ValueError(
                f"prior.lengths_epsilon ({lengths:g}) must leave {_LEAST_EPSILON:g} or more of privacy.epsilon to the "
                "table"
            )
        if lengths and gaussian:
            raise ValueError('prior.lengths_epsilon must be left out where plan.noise is "gaussian"')
        names = self.segment_columns
        if len(set(names)) < len(names):
            raise ValueError("segments must be different columns")
        levels = {f"{end}{level}" for end in ("", "origin_", "destination_") for level in self.zones.levels or ()}
        if taken := (_OF_ZONES | _OF_FLOWS | levels) & set(names):
            raise ValueError(f"segments ({', '.join(sorted(taken))}) must have names of their own")
        return self

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """Names of the segment columns, empty when only the total is synthesised."""
        if isinstance(self.segments, str):
            return tuple(f"{self.segments}0{i}" for i in (1, 2, 3))
        return tuple(self.segments or ())

    @property
    def lengths_epsilon(self) -> float:
        """ε of one job that measuring mean commutes takes; 0 if none are measured.

        Where that is "auto" a tenth of the whole, the most until `with_workers` knows more; nothing if public figures
        tell how far people commute, or noise is certified for all jobs together.
        """
        if self.prior.lengths_epsilon != "auto":
            return self.prior.lengths_epsilon
        most = self.privacy.epsilon / _LENGTHS_MOST
        told = self.prior.public or self.prior.class_scales_km or self.plan.noise == "gaussian"
        return 0.0 if told or most < _LEAST_EPSILON else most

    def with_workers(self, workers: int) -> Self:
        """Return the spec with the ε that measured lengths take of so many workers, where that is "auto".

        The noise of a mean falls with ε times workers, what a table loses rises with the share of ε. At a product of
        5,000 each of eight classes has noise of some 1.5 % of its mean, and more tells no more; up to a tenth of ε is
        less dear than the noise it saves (``python -m tests.benchmarks.utility``).

        Parameters
        ----------
        workers : int
            Of the table, at least 1. Public: the sum of its headcounts.
        """
        if self.prior.lengths_epsilon != "auto":
            return self
        enough = max(_LEAST_EPSILON, _LENGTHS_ENOUGH / workers)
        prior = self.prior.model_copy(update={"lengths_epsilon": min(self.lengths_epsilon, enough)})
        return self.model_copy(update={"prior": prior})

    @property
    def strength(self) -> float:
        """How many workers the prior is believed to be worth at a large destination."""
        fitted = 1.0 if self.prior.class_scales_km else 0.0
        return usual_strength(fitted) if self.prior.strength is None else self.prior.strength

    @property
    def elsewhere_share(self) -> float:
        """Public prior share of origins outside the zones."""
        if self.prior.elsewhere_share is not None:
            return self.prior.elsewhere_share
        return 0.1 if self.outside == "elsewhere" else 0.0


def usual_strength(fitted: float) -> float:
    """Return how many workers a prior is worth at large destinations, its decay fitted to a share of what can be.

    So that the errors of average commutes by the prior alone are as they were seen in three published tables (Leeds
    2011, District of Columbia 2023, Rhode Island 2019), with the usual decay and with one that was fitted.
    """
    return _STRENGTH + fitted * (_STRENGTH_FITTED - _STRENGTH)


def read_spec(path: Path) -> Spec:
    """Return the spec in the TOML file `path`; relative paths in it start at its directory, ``s3://…`` are URLs.

    Raises
    ------
    ConfigurationError
        If the file is missing, is not TOML, or breaks a rule (each fault on one line, with its key), or names a
        confidential table twice or for something public.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigurationError(f"spec ({path}) must be a file; `synthmap spec --example` prints one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise ConfigurationError(f"spec ({path}) must be a readable TOML file: {fault}") from None
    try:
        spec = Spec.model_validate(values)
    except ValidationError as fault:
        lines = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'spec'}: {e['msg'].removeprefix('Value error, ')}"
            for e in fault.errors(include_url=False)
        )
        raise ConfigurationError(f"spec ({path}) must follow the schema: {lines}") from None
    spec = anchor(spec, path.absolute().parent)
    refuse_same_paths(spec)
    return spec


def example_spec() -> str:
    """Return the text of a commented example spec."""
    return resources.files("synthmap").joinpath("spec_example.toml").read_text(encoding="utf-8")
