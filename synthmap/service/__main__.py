"""``python -m synthmap.service``: the service alone, where the command line, which can produce too, is not there."""

import argparse
import sys
from pathlib import Path

from synthmap.errors import SynthmapError
from synthmap.service.serve import serve


def main() -> int:
    """Serve until asked to stop; a user's error is one line and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m synthmap.service", description="Serve published releases.")
    parser.add_argument("--store", type=Path, default=Path("releases"), help="directory of the releases")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0: a free one")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--database", default="", help="URL of the catalog; default: a SQLite file in the store")
    parser.add_argument("--root-path", default="", help="path prefix that a proxy takes away")
    chosen = parser.parse_args()
    try:
        serve(**vars(chosen))
    except SynthmapError as fault:
        sys.stderr.write(f"synthmap: {fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
