"""Builds the page at /map when synthmap is packaged or installed (hatchling's build hook)."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "SYNTHMAP_WITHOUT_MAP"
"""Set to anything, the page is left out: no Node.js is needed, and /map says how to build it."""


def _beside(name: str) -> ModuleType:
    """Return a module beside this one: synthmap itself cannot be imported while it is being built."""
    spec = importlib.util.spec_from_file_location(f"synthmap_web_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page = _beside("build")


class PageHook(BuildHookInterface[Any]):
    """Builds the page; a wheel is not made without it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what must be installed first: Node.js, where it is missing and needed."""
        return [] if os.environ.get(WITHOUT) or page.built() or page.has_node() else [page.NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it is built already."""
        if os.environ.get(WITHOUT):
            return
        try:
            page.build()
        except RuntimeError as fault:
            if version != "editable":  # what is installed in place can be built later
                raise
            self.app.display_warning(f"The page at /map is not built, all else works. {fault}")
