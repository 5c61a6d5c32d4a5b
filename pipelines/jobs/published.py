"""What the store says of a release job: light, so that a waiting worker needs none of the pipeline's libraries."""

from pathlib import Path
from typing import Any

from synthmap.release.manifest import MANIFEST, Manifest, read_manifest
from synthmap.release.store import withdraw


def published(store: Path, name: str) -> dict[str, Any] | None:
    """Return the result of a release that is in the store; else None, and no earlier attempt can bring it there now.

    The store is what decides whether a job succeeded: its worker may have died between publishing and saying so.
    """
    withdraw(store, name)
    directory = store / name
    return result(read_manifest(directory)) if (directory / MANIFEST).exists() else None


def result(manifest: Manifest) -> dict[str, Any]:
    """Return what a job says of its release; all of it stands in the manifest."""
    return {
        "release": manifest.release,
        "epsilon": manifest.privacy.dp.epsilon,
        "delta": manifest.privacy.dp.delta,
        "workers": manifest.invariants.workers,
        "destinations": manifest.invariants.destinations,
    }
