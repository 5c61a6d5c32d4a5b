"""The least spec there is, and one with other lines than it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthmap.spec import Spec, read_spec

LEAST = """\
name = "x"
[zones]
path = "zones.csv"
vintage = "v"
[[tables]]
path = "od.csv"
vintage = "v"
[privacy]
epsilon = 1.0
delta = 1e-6
"""


def reader(tmp_path: Path) -> Callable[..., Spec]:
    """Return what reads a spec with some lines instead of the least one's, or after it."""

    def make(*more: str, **changes: Any) -> Spec:
        text = LEAST
        for old, new in changes.items():
            line = next(line for line in LEAST.splitlines() if line.startswith(f"{old} ="))
            text = text.replace(line, new)
        path = tmp_path / "spec.toml"
        path.write_text(text + "\n".join(more), encoding="utf-8")
        return read_spec(path)

    return make
