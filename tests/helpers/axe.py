"""axe-core, which finds what keeps people with disabilities from using a page."""

from pathlib import Path
from typing import Any

from missing import missing

_AXE = Path(__file__).parents[2] / "synthmap/service/web/node_modules/axe-core/axe.min.js"


def serious(page: Any) -> list[tuple[str, Any, str]]:
    """Serious and critical faults of a page, each with where it is; skip where axe-core is missing."""
    if not _AXE.exists():
        missing("axe-core is not installed: python synthmap/service/web/build.py --lint brings it")
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [(one["id"], node["target"], node["failureSummary"]) for one in found["violations"]
            if one["impact"] in ("serious", "critical") for node in one["nodes"]]  # fmt: skip
