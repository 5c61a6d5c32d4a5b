"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SYNTHMAP_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no test data: set SYNTHMAP_TEST_DATA (looked in {folder})")
    return folder
