"""Releases of worlds written by hand."""

import pytest
from handmade import open_world


@pytest.fixture
def opened(tmp_path):
    """Open a release of a world written by hand."""
    made = iter(range(100))
    return lambda world: open_world(tmp_path / str(next(made)), world, group=50, memory=2**24)
