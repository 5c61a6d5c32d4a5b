"""Measurements of a release that were published with noise: a file beside it, with a hash of its own."""

import hashlib
import os
import re
from pathlib import Path
from typing import Literal, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synthmap.errors import ReleaseCorruptError, ReleaseError

ENDING = ".metrics.json"
_PAID = re.compile(r"(.+)\.metrics(-[0-9]+)?")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Estimate(_Part):
    """A figure, and an interval that holds the figure of the confidential table with the stated coverage."""

    value: float
    low: float
    high: float


class BandShare(_Part):
    """Commutes of one length, km_from ≤ length < km_to, at destinations of one density; or from elsewhere."""

    density: str = Field(description="all, or a class of the destination's density.")
    km_from: float | None
    km_to: float | None
    origin: str | None = Field(
        default=None, description="Set where the band is not one of distance: origins off the map."
    )
    synthetic_workers: int
    workers: Estimate = Field(description="In the confidential table, with noise.")
    share_error: Estimate = Field(description="Share in the release less share in the confidential table.")


class AverageError(_Part):
    """Errors of destinations' average commutes, for destinations whose average in the release lies in a band."""

    density: str
    km_from: float | None = Field(description="Null together with km_to: all lengths.")
    km_to: float | None
    destinations: int
    workers: int
    mean_absolute_error_km: Estimate = Field(description="Mean over workers.")
    mean_error_km: Estimate = Field(description="Mean over workers; above 0: the release overstates commutes.")


class DensityClass(_Part):
    """A class of destinations, per_km2_from ≤ jobs per km² within 5 km × 5 km < per_km2_to."""

    name: str
    per_km2_from: float
    per_km2_to: float | None
    destinations: int
    workers: int


class NoiseStep(_Part):
    """One vector of whole numbers with discrete Laplace noise; ε is for one job."""

    name: str
    sensitivity: int
    epsilon: float
    scale: float
    values: list[int] = Field(description="With noise; all figures are made from these.")


class Measured(_Part):
    """How far a release is from its confidential table, published with differential privacy."""

    format: Literal["synthmap-metrics-1"] = "synthmap-metrics-1"
    release: str
    manifest_sha256: str
    created: str
    dataset: str
    name: str = Field(description="Under which it was paid for in the ledger.")
    epsilon: float = Field(description="Natural-log ε of all jobs of a worker together; rounded up. δ is 0.")
    max_jobs_per_worker: int
    cap_km: float
    coverage: float = Field(description="Of each interval, at least, over the noise; of several together it is less.")
    densities: list[DensityClass]
    lengths: list[BandShare]
    averages: list[AverageError]
    steps: list[NoiseStep]
    statement: list[str]
    software: str
    sha256: str = Field(default="", description="Of this record as JSON without spaces, this field left empty.")

    def sealed(self) -> Self:
        """Return the same with its hash."""
        return self.model_copy(update={"sha256": self._hash()})

    def _hash(self) -> str:
        return hashlib.sha256(self.model_copy(update={"sha256": ""}).model_dump_json().encode()).hexdigest()

    @property
    def whole(self) -> bool:
        """Whether it is as it was sealed."""
        return self.sha256 == self._hash()


def metrics_path(store: Path, release: str) -> Path:
    """Return where the published measurements of a release lie."""
    return store / f"{release}{ENDING}"


def paid_name(release: str, attempt: int) -> str:
    """Return the name under which measurements of a release are paid for; another where earlier ones were refunded."""
    return f"{release}.metrics" if attempt == 1 else f"{release}.metrics-{attempt}"


def is_published(store: Path, name: str) -> bool:
    """Return whether `name` is one that published measurements in the store were paid under, or would be."""
    found = _PAID.fullmatch(name)
    return found is not None and metrics_path(store, found[1]).is_file()


def read_measured(store: Path, release: str, manifest_sha256: str) -> Measured | None:
    """Return the published measurements of a release, None if there are none.

    Raises
    ------
    ReleaseCorruptError
        If they were changed or belong to something else.
    """
    try:
        found = parse_measured(metrics_path(store, release).read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        found = None
    if found is None or (found.release, found.manifest_sha256) != (release, manifest_sha256):
        raise ReleaseCorruptError(f"release {release}: its published metrics must be as they were written")
    return found


def parse_measured(text: bytes) -> Measured | None:
    """Return the record in `text`; None unless it is whole."""
    try:
        found = Measured.model_validate_json(text)
    except (ValidationError, ValueError):
        return None
    return found if found.whole else None


def publish_measured(store: Path, measured: Measured) -> Path:
    """Write the record beside its release, durably and once, and return where.

    Raises
    ------
    ReleaseError
        If there already is another, or the store cannot be written.
    """
    path = metrics_path(store, measured.release)
    text = (measured.model_dump_json(indent=2) + "\n").encode()
    beside = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(0o444)
        os.link(beside, path)
    except FileExistsError:
        if path.read_bytes() != text:
            raise ReleaseError(f"metrics of release ({measured.release}) must be published once") from None
    except OSError as fault:
        raise ReleaseError(f"store ({store}) must be a writable directory: {fault.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)
    return path


def measured_rows(measured: Measured) -> pl.DataFrame:
    """Return the figures as one table, a row each, ends of intervals beside them; what does not apply is empty."""
    rows: list[dict[str, object]] = []
    for kind, figures, names in (
        ("length", measured.lengths, ("workers", "share_error")),
        ("average", measured.averages, ("mean_absolute_error_km", "mean_error_km")),
    ):
        for one in figures:
            values = one.model_dump()
            for name in names:
                found = values.pop(name)
                rows.append({"figure": f"{kind}_{name}", **values, **found})
    order = ["figure", "density", "km_from", "km_to", "origin", "destinations", "workers", "synthetic_workers"]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.select([name for name in (*order, "value", "low", "high") if name in frame.columns])
