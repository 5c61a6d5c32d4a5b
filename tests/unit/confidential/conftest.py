from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synthmap.geography.canonical import canonical
from synthmap.geography.zones import Zones


def zones_of(ids: list[str], vintage: str = "2010") -> Zones:
    spread = np.linspace(0.0, 1.0, len(ids))
    return canonical(
        ids=pa.array(ids, pa.string()),
        longitude=spread,
        latitude=spread,
        weight=np.ones(len(ids), dtype=np.int64),
        levels=(),
        parents=(),
        vintage=vintage,
    )


@pytest.fixture(scope="session")
def make_zones() -> Callable[..., Zones]:
    return zones_of


@pytest.fixture(scope="session")
def zones() -> Zones:
    return zones_of(["01", "02", "E3", "é4"])


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(content: bytes | str, name: str = "jobs.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
