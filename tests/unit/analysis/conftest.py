import numpy as np
import pyarrow as pa
import pytest

from synthmap.analysis.table import ODTable
from synthmap.geography.zones import Zones

KM = np.pi * 6371.0088 / 180  # of one degree of latitude


@pytest.fixture(scope="session")
def line():
    """Four zones on a meridian, one degree apart, in two counties: a, b | c, d; elsewhere is rank 4."""
    return Zones(
        ids=pa.array(["a", "b", "c", "d"]),
        by_id=np.arange(4, dtype=np.int32),
        longitude=np.zeros(4),
        latitude=np.arange(4.0),
        weight=np.array([1, 2, 3, 4]),
        levels=("county",),
        parents=(pa.array(["x", "x", "y", "y"]),),
        vintage="made-up",
    )


@pytest.fixture(scope="session")
def table():
    """Make a table from rows (origin, destination, count)."""

    def make(*rows):
        origin, destination, count = np.array(rows, np.int64).reshape(-1, 3).T
        return ODTable(origin.astype(np.int32), destination.astype(np.int32), count)

    return make


@pytest.fixture(scope="session")
def degree_km():
    return KM
