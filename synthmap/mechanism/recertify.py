"""The auditor's check: certify the noise of a published plan again, from the plan alone."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from synthmap.errors import ReleaseCorruptError
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.privacy.certificate import certified, kept_cells
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.release.manifest import read_manifest

_SLACK = 1.0 + 1e-6  # lgamma may differ in its last digits between machines
_COLUMNS = ("headcount", "synthetic_size", "cells", "alpha_numerator", "alpha_denominator", "keep_units")


def recertify(release: Path) -> int:
    """Return how many different destinations' noise was certified again, from ``plan.parquet`` and the manifest.

    Raises
    ------
    ReleaseCorruptError
        If the noise of a destination does not meet the ε and δ that the plan states for it.
    """
    manifest = read_manifest(release)
    plan = pq.read_table(release / "plan.parquet")
    adp = manifest.privacy.rule == "adp"
    segments = max(1, len(manifest.segments))
    keys = np.stack([plan[name].to_numpy().astype(np.float64) for name in (*_COLUMNS, "epsilon", "delta")], axis=1)
    distinct = np.unique(keys, axis=0)
    for n, m, cells, numerator, denominator, keep_units, epsilon, delta in distinct.tolist():
        k = int(cells) * segments
        if k == 1:
            continue
        keep = keep_units / KEEP_UNITS
        kept = kept_cells(k, keep)
        bound = 1.0
        if 0 < epsilon <= 700 and numerator > 0 and denominator > 0 and 0 < keep <= 1:
            most = 1.0 if manifest.plan.keep == "prior" else keep
            alpha, excess = numerator / denominator, ratio_minus_one(epsilon)
            bound = certified(int(n), int(m), k, alpha, excess, keep, *kept, adp, delta * _SLACK, most)
        if bound > delta * _SLACK:
            raise ReleaseCorruptError(
                f"release {manifest.release}: the noise of destinations with headcount {int(n)} and {int(cells)} cells "
                f"must meet the ε and δ that plan.parquet states; it does not"
            )
    return len(distinct)
