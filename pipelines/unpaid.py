"""Releases that no ledger keeps account of: of tables that nobody registered, and of no others."""

import importlib.util
import os
from pathlib import Path

from pipelines.registry import read_registry, usual_registry
from pipelines.seal import Seal, states_of
from synthmap.errors import ConfidentialDataError, ConfigurationError
from synthmap.release.manifest import Loss
from synthmap.spec import Spec


class Unpaid:
    """What `pipelines.release.release` calls, like `pipelines.spending.Spending`, where nothing is paid.

    Parameters
    ----------
    spec : Spec
    registry : Path, optional
        Default: the worker's.
    """

    def __init__(self, spec: Spec, registry: Path | None = None) -> None:
        self._spec, self._registry = spec, registry
        self._compared: list[tuple[object, ...]] | None = None

    def before_reading(self, name: str, cost: Loss) -> None:
        """Refuse to release jobs of a registered dataset beside its ledger.

        Raises
        ------
        ConfigurationError
            If the tables hold some of the same jobs as a registered dataset, or the seal that would tell was lost.
        ConfidentialDataError
            If a table cannot be compared with those of the registered datasets.
        """
        place = self._registry or _worker_registry()
        if not (known := read_registry(place)):
            return
        self._compared = states_of(self._spec)
        seal = Seal(place)
        if unknown := seal.without_marks(known):
            raise ConfigurationError(
                f"the seal beside the registry ({place}) must know the jobs of dataset {unknown[0]}, for which its "
                f"ledger keeps account: restore it from a copy, or run `synthmap datasets add {unknown[0]}` again"
            )
        if (dataset := seal.dataset_of(seal.content(self._spec), known)) is not None:
            raise ConfigurationError(
                f"--dataset {dataset} must be given: the tables hold jobs of that registered dataset, and all that is "
                "released of them is recorded in its ledger (in Python: pipelines.spending.release_and_pay)"
            )

    def before_drawing(self, name: str, cost: Loss) -> None:
        """Raise ConfidentialDataError if a table is another one than was compared with those of registered datasets."""
        if self._compared not in (None, states_of(self._spec)):
            raise ConfidentialDataError("tables must not change while they are read; release them again")


def _worker_registry() -> Path:
    """Return where the worker's registry is, also where what the worker needs is not installed."""
    if importlib.util.find_spec("pydantic_settings") is None:
        return Path(os.environ.get("SYNTHMAP_CONFIDENTIAL_REGISTRY") or usual_registry())
    from pipelines.settings import worker_settings

    return worker_settings().registry
