"""The auditor's check: certify the noise of a published plan again, from the plan alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthmap.errors import PrivacyParameterError, ReleaseCorruptError
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.lengths import PARTS
from synthmap.kernels.noise import NOISE_UNITS
from synthmap.privacy.certificate import certified, kept_cells
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.gaussian import gaussian_delta
from synthmap.privacy.histogram import histogram_epsilon
from synthmap.privacy.lengths import least_lengths_units
from synthmap.release.manifest import Manifest, read_manifest

_SLACK = 1.0 + 1e-6  # lgamma may differ in its last digits between machines
_DIRICHLET = ("headcount", "synthetic_size", "cells", "alpha_numerator", "alpha_denominator", "keep_units")
_HISTOGRAM = ("headcount", "cells", "noise_units", "group_noise_units")
_GAUSSIAN = ("headcount", "cells", "gaussian_units")


def recertify(release: Path) -> int:
    """Return how many different destinations' noise was certified again, from ``plan.parquet`` and the manifest.

    Raises
    ------
    ReleaseCorruptError
        If the noise of a destination does not meet the ε and δ that the plan states for it, or that of measured
        lengths not the manifest's.
    """
    manifest = read_manifest(release)
    _recertify_lengths(manifest)
    plan = pq.read_table(release / "plan.parquet")
    if manifest.plan.mechanism == "dirichlet":
        return _each(plan, manifest, _DIRICHLET, _resampling)
    if manifest.plan.noise_law == "gaussian":
        return _each(plan, manifest, _GAUSSIAN, _gaussian_counts)
    return _each(plan, manifest, _HISTOGRAM, _noisy_counts)


def _recertify_lengths(manifest: Manifest) -> None:
    """Raise unless the noise of measured lengths, if any, meets the ε that is told of it."""
    lengths = manifest.prior.lengths
    try:
        holds = lengths is None or least_lengths_units(lengths.epsilon, PARTS) <= lengths.noise_units < NOISE_UNITS // 2
    except PrivacyParameterError:
        holds = False
    if not holds:
        raise ReleaseCorruptError(
            f"release {manifest.release}: the noise of measured lengths must meet the ε that the manifest states"
        )


def _each(
    plan: pa.Table, manifest: Manifest, columns: tuple[str, ...], holds: Callable[[Manifest, dict[str, float]], bool]
) -> int:
    """Return how many different rows of `plan` there are; raise unless each `holds`, or has one cell and costs nothing.

    One cell is drawn from the prior alone. That it was one cell is the plan's word: no noise tells.
    """
    names = (*columns, "epsilon", "delta")
    if any(name not in plan.column_names or plan[name].null_count for name in names):
        raise ReleaseCorruptError(f"release {manifest.release}: plan.parquet must tell {', '.join(names)} of every row")
    distinct = np.unique(np.stack([plan[name].to_numpy().astype(np.float64) for name in names], axis=1), axis=0)
    for values in distinct.tolist():
        row = dict(zip(names, values, strict=True))
        alone = row["cells"] * _segments(manifest) == 1
        if not (row["epsilon"] == row["delta"] == 0 if alone else holds(manifest, row)):
            raise ReleaseCorruptError(
                f"release {manifest.release}: the noise of destinations with headcount {int(row['headcount'])} and "
                f"{int(row['cells'])} cells must meet the ε and δ that plan.parquet states; it does not"
            )
    return len(distinct)


def _segments(manifest: Manifest) -> int:
    return max(1, len(manifest.segments))


def _resampling(manifest: Manifest, row: dict[str, float]) -> bool:
    """Return whether α and the keep probability meet ε and δ."""
    epsilon, delta, keep = row["epsilon"], row["delta"], row["keep_units"] / KEEP_UNITS
    if not (0 < epsilon <= 700 and row["alpha_numerator"] > 0 and row["alpha_denominator"] > 0 and 0 < keep <= 1):
        return False
    k = int(row["cells"]) * _segments(manifest)
    most = 1.0 if manifest.plan.keep == "prior" else keep
    alpha, excess = row["alpha_numerator"] / row["alpha_denominator"], ratio_minus_one(epsilon)
    n, m, adp = int(row["headcount"]), int(row["synthetic_size"]), manifest.privacy.rule == "adp"
    bound = certified(n, m, k, alpha, excess, keep, *kept_cells(k, keep), adp, delta * _SLACK, most)
    return bound <= delta * _SLACK


def _noisy_counts(manifest: Manifest, row: dict[str, float]) -> bool:
    """Return whether the noise on counts meets ε."""
    units = int(row["noise_units"]), int(row["group_noise_units"])
    try:
        return units[0] > 0 and histogram_epsilon(*units) <= row["epsilon"] * _SLACK
    except PrivacyParameterError:
        return False


def _gaussian_counts(manifest: Manifest, row: dict[str, float]) -> bool:
    """Return whether the noise on counts meets ε and δ of one job, and the promise for all jobs together."""
    units, privacy = int(row["gaussian_units"]), manifest.privacy
    try:
        alone = gaussian_delta(units, row["epsilon"])
        together = gaussian_delta(units, privacy.dp.epsilon, privacy.max_jobs_per_worker)
    except PrivacyParameterError:
        return False
    return alone <= row["delta"] * _SLACK and together <= privacy.dp.delta * _SLACK
