"""Settings of the worker, from the environment: SYNTHMAP_CONFIDENTIAL_REGISTRY and so on."""

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipelines.registry import usual_registry
from synthmap.errors import ConfigurationError


class WorkerSettings(BaseSettings):
    """What the operator of a worker chooses."""

    model_config = SettingsConfigDict(env_prefix="SYNTHMAP_CONFIDENTIAL_", extra="forbid", frozen=True)

    registry: Path = Field(default_factory=usual_registry, description="TOML file: where each dataset's spec lies.")
    lease_seconds: float = Field(
        default=60.0, gt=0, le=86_400, description="A worker that shows no sign of life for so long loses its job."
    )
    grace_seconds: float = Field(
        default=20.0, ge=0, le=3_600, description="A process that is stopped has so long to clean up."
    )
    job_hours: float = Field(
        default=24.0, gt=0, le=8_760, description="A job that takes longer hangs: it is stopped and fails."
    )
    keep_days: float = Field(
        default=90.0, gt=0, le=36_500, description="Jobs that ended so long ago are forgotten; the newest 1000 never."
    )
    poll_seconds: float = Field(default=2.0, gt=0, le=3_600, description="How often an idle worker looks for jobs.")


def worker_settings(**changes: Any) -> WorkerSettings:
    """Return the settings from the environment, changed by those of `changes` that are not None.

    Raises
    ------
    ConfigurationError
        If a setting breaks a rule.
    """
    try:
        return WorkerSettings(**{key: value for key, value in changes.items() if value is not None})
    except ValidationError as fault:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors(include_url=False))
        raise ConfigurationError(f"the worker's settings must follow their schema: {lines}") from None
