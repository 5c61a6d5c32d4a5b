import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from synthmap.audit.choices import Choices


@pytest.fixture
def choices() -> Choices:
    """The choices of a random stream, to run code through all of them."""
    return Choices()


@pytest.fixture(scope="session")
def small_worlds() -> ModuleType:
    """The exact enumerator of small destinations; tests are imported by path, so this folder is no package."""
    known = "synthmap_test_small_worlds"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name("small_worlds.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]
