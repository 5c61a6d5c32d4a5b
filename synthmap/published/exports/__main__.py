"""One export in a process of its own: ``python -m synthmap.published.exports RELEASE DIRECTORY NAME``.

The service makes files this way: memory and faults of the libraries that write them stay out of it.
"""

import json
import sys
from pathlib import Path

from synthmap.errors import SynthmapError
from synthmap.published.exports import export
from synthmap.published.store import ReleaseStore


def main(release: str, directory: str, name: str) -> int:
    """Make a file; a refusal is one JSON object on stdout, class and text, and exit code 2."""
    place = Path(release)
    try:
        export(ReleaseStore(place.parent).open(place.name), Path(directory), name)
    except SynthmapError as fault:
        sys.stdout.write(json.dumps({"error": type(fault).__name__, "detail": str(fault)}))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
