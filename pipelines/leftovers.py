"""What a worker clears away: confidential files of dead runs, files of releases that are gone, jobs of long ago."""

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from pipelines.registry import read_registry
from synthmap.catalog.database import Catalog
from synthmap.catalog.jobs import forget_jobs, now
from synthmap.errors import SynthmapError
from synthmap.release.manifest import MANIFEST
from synthmap.release.store import sweep_scratch, sweep_store
from synthmap.spec import read_spec

EXPORTS = ".exports"  # in a store: RELEASE/START OF ITS MANIFEST'S HASH/FILE


def clear_dead_runs(store: Path, registry: Path, log: Callable[[str], None]) -> None:
    """Remove what runs that were killed have left in the store and in the scratch directory of each dataset.

    What a living process works on is left alone. A spec that cannot be read is told to `log`, and no fault of another.
    """
    sweep_store(store)
    places: set[Path | None] = {None}
    try:
        specs = read_registry(registry)
    except SynthmapError as fault:
        log(str(fault))
        specs = {}
    for path in specs.values():
        try:
            places.add(read_spec(path).run.scratch)
        except SynthmapError as fault:
            log(str(fault))
    for place in places:
        sweep_scratch(place)


def clear_exports(store: Path) -> None:
    """Remove files to download of releases that are no longer in the store or are others by now, and half-made ones."""
    exports = store / EXPORTS
    for release in [path for path in exports.glob("*") if path.is_dir()]:
        try:
            tag = hashlib.sha256((store / release.name / MANIFEST).read_bytes()).hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            shutil.rmtree(release, ignore_errors=True)
            continue
        except OSError:
            continue  # nothing is known of it now
        for place in [path for path in release.glob("*") if not tag.startswith(path.name)]:
            shutil.rmtree(place, ignore_errors=True)
    for lock in exports.glob("*/*/.*.lock"):
        with suppress(OSError), lock.open("rb+") as held:  # else a process makes it just now
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_suffix(".partial"), ignore_errors=True)
            lock.unlink(missing_ok=True)


def clear_old_jobs(catalog: Catalog, keep_days: float) -> int:
    """Return how many jobs were deleted that ended more than `keep_days` ago; see `forget_jobs`."""
    return forget_jobs(catalog, ended_before=now() - timedelta(days=keep_days))
