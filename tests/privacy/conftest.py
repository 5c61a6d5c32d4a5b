import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_NAME = "synthmap_small_worlds"


@pytest.fixture(scope="session")
def small_worlds() -> ModuleType:
    """The exact enumerator beside this file; tests are imported by path, so it has no package."""
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("small_worlds.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[_NAME]
