"""What a test of the page needs and this machine lacks: the test skips, or fails where all must be tested, as in CI."""

import os
from typing import NoReturn

import pytest

ALL = "SYNTHMAP_TEST_ALL"  # set: nothing may be left out


def missing(what: str) -> NoReturn:
    """Skip the test, or fail it; `what` is told."""
    if os.environ.get(ALL):
        pytest.fail(f"{what}, and {ALL} is set")
    pytest.skip(what)
