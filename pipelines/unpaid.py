"""Releases that no ledger keeps account of: of tables that nobody registered, and of no others."""

import importlib.util
from contextlib import suppress
from pathlib import Path

from pipelines.registry import read_registry
from pipelines.seal import Seal
from synthmap.errors import ConfidentialDataError, ConfigurationError
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
    """
    if importlib.util.find_spec("pydantic_settings") is None:
        return  # without it nothing can be registered
    from pipelines.settings import worker_settings

    place = worker_settings(registry=registry).registry
    if not (known := read_registry(place)):
        return
    seal = Seal(place)
    with suppress(ConfidentialDataError):  # the release itself says what is wrong with a table
        if (dataset := seal.dataset_of(seal.content(spec), known)) is not None:
            raise ConfigurationError(
                f"--dataset {dataset} must be given: the tables hold jobs of that registered dataset, and all that is "
                "released of them is recorded in its ledger (in Python: pipelines.spending.release_and_pay)"
            )
