import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _beside(name: str) -> ModuleType:
    """Return a helper module of this folder; tests are imported by path, so it has no package."""
    known = f"synthmap_test_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]


choices = _beside("every_choice").choices


@pytest.fixture(scope="session")
def small_worlds() -> ModuleType:
    """The exact enumerator of small destinations."""
    return _beside("small_worlds")


@pytest.fixture(scope="session")
def every_choice() -> ModuleType:
    """The driver that runs the drawing code through every choice."""
    return _beside("every_choice")
