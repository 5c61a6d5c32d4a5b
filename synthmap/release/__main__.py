"""Verify every release of a store: ``python -m synthmap.release STORE``, without any of the producing side."""

import sys
from pathlib import Path

from synthmap.errors import SynthmapError
from synthmap.release.manifest import MANIFEST
from synthmap.release.verify import verify


def main(store: Path) -> int:
    """Print one line a release of `store`; return 1 if one of them is not whole, else 0."""
    faults = 0
    for directory in sorted(path.parent for path in store.glob(f"[!.]*/{MANIFEST}")):
        try:
            found = verify(directory)
            caution = "" if found.private else f"; NOT PRIVATE: {found.warning}"
            sys.stdout.write(f"{found.release}: whole, {found.workers} workers{caution}\n")
        except SynthmapError as fault:
            faults += 1
            sys.stdout.write(f"{directory.name}: {fault}\n")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "releases")))
