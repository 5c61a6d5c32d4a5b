"""Where the files of a spec lie, and that each is named for one purpose: none is opened."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from synthmap.errors import ConfigurationError
from synthmap.remote import anchored, is_remote, shown

if TYPE_CHECKING:
    from synthmap.spec import Spec

VOID = "zones, weights, shapes or a prior made from the confidential tables void the promise"
TWICE = "its jobs would be counted twice"


def anchor(spec: "Spec", base: Path) -> "Spec":
    """Return `spec` with every relative path joined to `base`."""

    def update(section: BaseModel, **paths: Path | None) -> dict[str, Path]:
        return {key: anchored(base, value) for key, value in paths.items() if value is not None}

    weights, shapes = spec.zones.weights, spec.zones.shapes
    zones = spec.zones.model_copy(
        update={
            **update(spec.zones, path=spec.zones.path),
            "weights": weights and weights.model_copy(update=update(weights, path=weights.path)),
            "shapes": shapes and shapes.model_copy(update=update(shapes, path=shapes.path)),
        }
    )
    tables = [t.model_copy(update=update(t, path=t.path)) for t in spec.tables]
    run = spec.run.model_copy(update=update(spec.run, scratch=spec.run.scratch))
    known = spec.prior.table
    prior = spec.prior.model_copy(
        update={
            **update(spec.prior, release=spec.prior.release),
            "table": known and known.model_copy(update=update(known, path=known.path)),
        }
    )
    return spec.model_copy(
        update={"zones": zones, "tables": tables, "prior": prior, "run": run, "store": anchored(base, spec.store)}
    )


def public_paths(spec: "Spec") -> dict[str, Path]:
    """Return the key and path of each file that is public, but for `prior.release`."""
    weights, shapes, table = spec.zones.weights, spec.zones.shapes, spec.prior.table
    named = {"zones.weights": weights, "zones.shapes": shapes, "prior.table": table}
    return {"zones": spec.zones.path, **{key: each.path for key, each in named.items() if each is not None}}


def refuse_same_paths(spec: "Spec") -> None:
    """Raise unless no confidential table of `spec` is named twice, nor for something public.

    Raises
    ------
    ConfigurationError
        Naming the key and the file.
    """
    public = {_real(path): key for key, path in public_paths(spec).items()}
    tables: set[Path] = set()
    for table in spec.tables:
        path = _real(table.path)
        if path in tables:
            raise ConfigurationError(f"tables ({shown(table.path)}) must name each file once; {TWICE}")
        tables.add(path)
        key = public.get(path)
        if spec.prior.release is not None and path.is_relative_to(_real(spec.prior.release)):
            key = "prior.release"
        if key is not None:
            raise ConfigurationError(
                f"{key} ({shown(table.path)}) must be another file than the confidential table {table.path.name}; "
                f"{VOID}"
            )


def _real(path: Path) -> Path:
    """Return a path by which two that lead to one file are the same."""
    return path if is_remote(path) else Path(os.path.realpath(path))
