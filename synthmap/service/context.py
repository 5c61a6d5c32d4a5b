"""What every route works with: settings, the store of releases, the catalog."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from synthmap.catalog.database import Catalog
from synthmap.published.store import OpenedRelease, ReleaseStore
from synthmap.service.meters import Meters
from synthmap.service.readiness import Readiness
from synthmap.service.settings import ServiceSettings


@dataclass(frozen=True)
class Service:
    """The parts of one running service."""

    settings: ServiceSettings
    releases: ReleaseStore
    catalog: Catalog
    readiness: Readiness
    meters: Meters


def service(request: Request) -> Service:
    """Return the parts of the service that answers `request`."""
    found: Service = request.app.state.service
    return found


async def _service(request: Request) -> Service:  # a plain function would be sent to a thread, at every request
    return service(request)


ServiceDep = Annotated[Service, Depends(_service)]


def opened(release: str, service: ServiceDep) -> OpenedRelease:
    """Return the release named in the path; 404 where there is none, 503 where it is damaged."""
    return service.releases.open(release)


ReleaseDep = Annotated[OpenedRelease, Depends(opened)]
