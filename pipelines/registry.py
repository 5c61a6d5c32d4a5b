"""The registry: a TOML file that says where the spec of each dataset lies. Only producing programs read it."""

import fcntl
import json
import os
import re
import secrets
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from synthmap.catalog.inputs import NAME
from synthmap.errors import ConfigurationError, NotFoundError, UnwritableError
from synthmap.release.store import sync
from synthmap.spec import Spec, read_spec

if TYPE_CHECKING:  # it needs the database, and releases must do without
    from synthmap.catalog.datasets import Dataset

_HEAD = "# Datasets of synthmap: where the spec of each lies. Written by `synthmap datasets add`; confidential.\n"


def read_registry(path: Path) -> dict[str, Path]:
    """Return the place of every dataset's spec by its id; none where there is no file.

    Raises
    ------
    ConfigurationError
        If it is not a registry.
    """
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8")).get("datasets", {})
        return {id: Path(section["spec"]) for id, section in sections.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ConfigurationError(
            f'registry ({path}) must be a TOML file of sections [datasets."ID"], each with spec = "PATH"'
        ) from None


def registered_spec(registry: Path, id: str) -> Spec:
    """Return the spec of the dataset called `id`.

    Raises
    ------
    NotFoundError
        If it is not registered.
    ConfigurationError
        If its spec breaks a rule.
    """
    known = read_registry(registry)
    if id not in known:
        raise NotFoundError(f"dataset ({id}) must be in the registry {registry}; add it with `synthmap datasets add`")
    return read_spec(known[id])


def register(registry: Path, id: str, spec: Path) -> "Dataset":
    """Return the public facts of the dataset whose spec lies at `spec`, now in the registry under `id`.

    Its zones are read, and its tables, for marks of the jobs in them: no other registered dataset may hold the same.

    Raises
    ------
    ConfigurationError
        If the id or the spec breaks a rule, or the id belongs to another spec.
    GeographyError, ConfidentialDataError
        If the zones or the tables break a rule.
    LedgerError
        If another dataset holds the same jobs.
    UnwritableError
        If the registry cannot be written.
    """
    if not re.fullmatch(NAME, id):
        raise ConfigurationError(f"dataset ({id}) must match {NAME}: it becomes the start of its releases' ids")
    spec = spec.absolute()
    if not str(spec).isprintable():
        raise ConfigurationError(f"spec ({str(spec)!a}) must be a path of printable characters")
    from pipelines.places import public_inputs, run_directory  # libraries that a waiting worker does without
    from pipelines.seal import Seal  # which uses what is below
    from synthmap.geography.read import read_zones

    found = read_spec(spec)
    with run_directory(None) as run:
        zones = read_zones(public_inputs(found, run).zones)
    with locked(registry):
        _refuse_another_spec(registry, id, spec)
    seal = Seal(registry)
    content = seal.content(found, zones)
    with locked(registry):
        known = _refuse_another_spec(registry, id, spec)
        seal.keep_apart(id, content, known.keys() - {id})
        _write(registry, known | {id: spec})
    from synthmap.catalog.datasets import Dataset

    return Dataset(id, found.title or id, found.segment_columns, tuple(zones.levels), found.zones.vintage)


def _refuse_another_spec(registry: Path, id: str, spec: Path) -> dict[str, Path]:
    """Return the registry, if `id` is free or belongs to `spec`."""
    known = read_registry(registry)
    if known.get(id, spec) != spec:
        raise ConfigurationError(
            f"dataset ({id}) must not belong to another spec; {registry} says {known[id]}: choose another id, or "
            "change that line if the file was moved"
        )
    return known


def usual_registry() -> Path:
    """Return where a user's registry is unless a worker is told otherwise."""
    configuration = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(configuration).expanduser() / "synthmap" / "registry.toml"


@contextmanager
def locked(registry: Path, dataset: str | None = None) -> Iterator[None]:
    """Let no other program change the registry, or what lies beside it, in the block; or pay from a dataset's budget.

    The locks do not exclude each other.
    """
    part = "" if dataset is None else f".{dataset}"
    try:
        registry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = registry.with_name(f"{registry.name}{part}.lock").open("w")
    except OSError as fault:
        raise UnwritableError(f"registry ({registry}) must be a writable file: {fault.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(registry: Path, specs: dict[str, Path]) -> None:
    """Write the registry."""
    # a JSON string of printable characters is a TOML string
    lines = [f"\n[datasets.{json.dumps(id)}]\nspec = {json.dumps(str(path), ensure_ascii=False)}\n"
             for id, path in sorted(specs.items())]  # fmt: skip
    write_privately(registry, _HEAD + "".join(lines))


def write_privately(path: Path, text: str) -> None:
    """Write a file beside its place and rename it, durably; only its owner may read it.

    Raises
    ------
    UnwritableError
        If it cannot be written.
    """
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync(path.parent)
    except OSError as fault:
        beside.unlink(missing_ok=True)
        raise UnwritableError(f"registry ({path}) must be a writable file: {fault.strerror}") from None
