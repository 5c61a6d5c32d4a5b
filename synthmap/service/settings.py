"""Settings of the service, from the environment (SYNTHMAP_SERVICE_STORE, …). Built in a function, never at import."""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from synthmap.catalog.database import default_url
from synthmap.errors import ConfigurationError

PREFIX = "SYNTHMAP_SERVICE_"
CONFIDENTIAL_PREFIX = "SYNTHMAP_CONFIDENTIAL_"
_KUBERNETES = ("HOST", "PORT")  # SYNTHMAP_SERVICE_HOST and so on are set in every pod beside a service "synthmap"

Origin = Annotated[str, Field(pattern=r"^(\*|https?://[^/\s*]+)$")]


class ServiceSettings(BaseSettings):
    """What an operator chooses. Every limit says why it is there."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    store: Path = Field(default=Path("releases"), description="Directory of the releases.")
    database: str = Field(default="", description="URL of the catalog; empty: a SQLite file in the store.")
    public_url: str = Field(default="", description="What links start with, prefix included; empty: as the request.")
    root_path: str = Field(
        default="", pattern=r"^(/[^/\s?#]+)*$", description="Path prefix that a proxy takes away, such as /maps."
    )
    trusted_proxies: str = Field(
        default="127.0.0.1", description="Addresses whose X-Forwarded-For and -Proto are believed; commas between them."
    )
    anonymous: bool = Field(default=True, description="Whether reading needs no key.")
    cors_origins: list[Origin] = Field(default=[], description="Origins of other pages that may read; none by default.")
    page_size: int = Field(default=1_000, ge=1, description="Features or rows of a page, unless asked otherwise.")
    page_size_maximum: int = Field(default=10_000, ge=1, description="Bounds the memory one page can take.")
    tile_features_maximum: int = Field(
        default=10_000, ge=1, description="Bounds the size of a tile; of flows, at most the 1,000 strongest."
    )
    body_bytes_maximum: int = Field(default=10_000_000, ge=1, description="Uploads of areas are the largest.")
    seconds_maximum: float = Field(default=60.0, gt=0, description="Who waits longer for an answer is told so (503).")
    requests_per_minute: int = Field(
        default=30_000,
        ge=0,
        description="For one key, or one address without a key, in each process; 0: no limit. So that one script "
        "leaves something to the others.",
    )
    export_rows_maximum: int = Field(
        default=2_000_000, ge=0, description="Larger files are made by a job (export), not while a reader waits."
    )
    map_tiles: str = Field(
        default="",
        pattern=r"^(https?://[A-Za-z0-9.:-]+/[^\s;,]*)?$",
        description="Raster tiles below the map, such as https://tiles.example.org/{z}/{x}/{y}.png; whoever looks "
        "at the map asks that server. Empty: none, and nothing is asked for elsewhere.",
    )
    map_attribution: str = Field(default="", description="Whose the tiles of map_tiles are, as text for their corner.")
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$", description="What is logged.")

    @property
    def catalog_url(self) -> str:
        """URL of the catalog's database."""
        return self.database or default_url(self.store)

    @property
    def metrics_directory(self) -> Path:
        """Where the worker puts curator metrics: beside the releases, never in one."""
        return self.store / ".metrics"

    @property
    def exports_directory(self) -> Path:
        """Where files to download are kept: made from releases, made again when missing."""
        return self.store / ".exports"


def service_settings(**changes: Any) -> ServiceSettings:
    """Return the settings from the environment, changed by `changes`.

    Raises
    ------
    ConfigurationError
        If a setting breaks a rule or is unknown, or a confidential setting is visible to this process.
    """
    if any(name.startswith(CONFIDENTIAL_PREFIX) for name in os.environ):
        raise ConfigurationError(
            f"the service must not see settings that start with {CONFIDENTIAL_PREFIX}; they belong to the worker only"
        )
    _refuse_unknown()
    try:
        return ServiceSettings(**changes)
    except SettingsError:
        raise ConfigurationError(
            f'{PREFIX}CORS_ORIGINS must be a JSON list of texts, such as ["https://maps.example.org"]'
        ) from None
    except ValidationError as fault:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors(include_url=False))
        raise ConfigurationError(f"the service's settings must follow their schema: {lines}") from None


def _refuse_unknown() -> None:
    """Refuse names that look like settings and are none: misspelt, a safeguard would silently stay off."""
    for name in os.environ:
        setting = name.upper().removeprefix(PREFIX)
        known = setting.lower() in ServiceSettings.model_fields
        if name.upper().startswith(PREFIX) and not known and not setting.startswith(_KUBERNETES):
            choices = ", ".join(field.upper() for field in ServiceSettings.model_fields)
            raise ConfigurationError(f"{name} must be a setting of the service: {PREFIX} and one of {choices}")
