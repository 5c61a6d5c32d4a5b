"""A confidential table for the mechanisms."""

import numpy as np
import pytest

from synthmap.mechanism.table import Counts


@pytest.fixture(scope="module")
def world(town):
    """Return (places, headcounts, counts) of 40 destinations with two segments, some workers elsewhere."""
    rng = np.random.default_rng(4)
    places = np.sort(rng.choice(400, 40, replace=False)).astype(np.int32)
    rows, origins, workers = [0], [], []
    for _ in places:
        here = np.sort(rng.choice(401, rng.integers(1, 30), replace=False))
        origins.append(here)
        workers.append(rng.integers(0, 3, (here.size, 2)) + np.array([0, 1]))
        rows.append(rows[-1] + here.size)
    counts = Counts(np.array(rows), np.concatenate(origins).astype(np.int32), np.concatenate(workers))
    headcount = np.add.reduceat(counts.workers.sum(axis=1), rows[:-1])
    return places, headcount, counts
