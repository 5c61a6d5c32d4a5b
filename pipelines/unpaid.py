"""Releases that no ledger keeps account of: of tables that nobody registered, and of no others."""

import importlib.util
import os
from pathlib import Path

from pipelines.registry import read_registry, usual_registry
from pipelines.seal import Seal
from synthmap.errors import ConfigurationError
from synthmap.spec import Spec


def refuse_registered(spec: Spec, registry: Path | None = None) -> None:
    """Refuse to release jobs of a registered dataset beside its ledger.

    Parameters
    ----------
    spec : Spec
    registry : Path, optional
        Default: the worker's.

    Raises
    ------
    ConfigurationError
        If the tables of `spec` hold some of the same jobs as a registered dataset.
    ConfidentialDataError
        If a table cannot be compared with those of the registered datasets.
    """
    place = registry or _worker_registry()
    if not (known := read_registry(place)):
        return
    seal = Seal(place)
    if (dataset := seal.dataset_of(seal.content(spec), known)) is not None:
        raise ConfigurationError(
            f"--dataset {dataset} must be given: the tables hold jobs of that registered dataset, and all that is "
            "released of them is recorded in its ledger (in Python: pipelines.spending.release_and_pay)"
        )


def _worker_registry() -> Path:
    """Return where the worker's registry is, also where what the worker needs is not installed."""
    if importlib.util.find_spec("pydantic_settings") is None:
        return Path(os.environ.get("SYNTHMAP_CONFIDENTIAL_REGISTRY") or usual_registry())
    from pipelines.settings import worker_settings

    return worker_settings().registry
