"""Paid releases that were begun and not ended, in ``<registry>.unfinished``: who asks again goes on with the same one.

A job keeps the id of its release in the catalog; this does the same for `synthmap release --dataset`. A record is
locked while its run lives, so one that can be locked is of a dead run.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from pipelines.registry import locked, write_privately
from synthmap.errors import UnwritableError
from synthmap.release.store import new_release_id
from synthmap.spec import Spec


@dataclass
class Unfinished:
    """A release that is being made.

    Attributes
    ----------
    path : Path
        Of the record; it is named after the release.
    again : bool
        Whether an earlier run had begun it.
    ended : bool
        Set once there is nothing to go on with.
    """

    path: Path
    again: bool
    ended: bool = False

    @property
    def name(self) -> str:
        """The release's id."""
        return self.path.stem

    def rename(self, name: str) -> None:
        """Give the release another id: the one it had cannot be used any more."""
        self.path = self.path.rename(self.path.with_name(f"{name}.json"))


@contextmanager
def begun(registry: Path, dataset: str, spec: Spec) -> Iterator[Unfinished]:
    """Yield the release that a dead run of the same spec for the same dataset had begun, or a new one.

    It is remembered until it is `ended`.

    Raises
    ------
    UnwritableError
        If it cannot be remembered.
    """
    place = registry.with_name(registry.name + ".unfinished")
    asked = {"dataset": dataset, "spec": sha256(spec.model_dump_json().encode()).hexdigest()}
    with locked(registry):
        record = next((one for path in sorted(place.glob("*.json")) if (one := _taken(path, asked))), None)
        again = record is not None
        if record is None:
            record = _made(place, new_release_id(spec.name), asked)
    path, handle = record
    with handle:
        found = Unfinished(path, again)
        try:
            yield found
        finally:
            if found.ended:
                found.path.unlink(missing_ok=True)


def _taken(path: Path, asked: dict[str, str]) -> tuple[Path, BinaryIO] | None:
    """Return a record, locked, if it is of a dead run for what is asked."""
    try:
        handle = path.open("rb")
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if json.load(handle) == asked and path.exists():
            return path, handle
    except (OSError, ValueError):
        pass  # a living run, or a record of which half was written: nothing was paid before it was whole
    handle.close()
    return None


def _made(place: Path, name: str, asked: dict[str, str]) -> tuple[Path, BinaryIO]:
    path = place / f"{name}.json"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        write_privately(path, json.dumps(asked) + "\n")
        handle = path.open("rb")
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as fault:
        raise UnwritableError(f"{place} must be a writable directory: {fault.strerror}") from None
    return path, handle
