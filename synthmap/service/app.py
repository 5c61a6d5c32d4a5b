"""The application: it only assembles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware

from synthmap import __version__
from synthmap.catalog.database import open_catalog
from synthmap.published.store import ReleaseStore
from synthmap.service.access import Gate, admitted
from synthmap.service.compress import Compress
from synthmap.service.context import Service
from synthmap.service.headers import SafeHeaders
from synthmap.service.heads import Heads
from synthmap.service.journal import HEADER, Journal
from synthmap.service.keyring import Keyring
from synthmap.service.limits import AddressLimit, BodyLimit, TimeLimit
from synthmap.service.meters import Meters
from synthmap.service.parameters import known_only
from synthmap.service.problems import add_problems
from synthmap.service.rates import Rates
from synthmap.service.readiness import Readiness
from synthmap.service.routes import (
    analyses,
    downloads,
    features,
    health,
    jobs,
    landing,
    ledger,
    levels,
    map_page,
    metrics,
    od,
    processes,
    releases,
    statements,
    tiles,
)
from synthmap.service.settings import ServiceSettings

ROUTES = (
    landing,
    map_page,
    releases,
    levels,
    statements,
    od,
    analyses,
    features,
    tiles,
    downloads,
    metrics,
    processes,
    jobs,
    ledger,
    health,
)


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the service over the store and catalog that `settings` name."""
    releases, catalog = ReleaseStore(settings.store), open_catalog(settings.catalog_url)
    readiness = Readiness(releases, catalog, settings.tile_features_maximum)
    service = Service(settings, releases, catalog, readiness, Meters())
    app = FastAPI(
        title="synthmap",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        dependencies=[Depends(admitted), Depends(known_only)],
    )
    app.root_path = settings.root_path  # as an argument it is deprecated; a server of its own would set it
    app.state.service = service
    add_problems(app)
    _add_layers(app, service)
    for part in ROUTES:
        app.include_router(part.router)
    return app


def _add_layers(app: FastAPI, service: Service) -> None:
    """Put the layers around the routes, innermost first."""
    settings = service.settings
    app.add_middleware(Compress)
    app.add_middleware(Heads)
    keyring, rates = Keyring(service.catalog), Rates(settings.requests_per_minute)
    app.add_middleware(Gate, keyring, rates, anonymous=settings.anonymous)
    app.add_middleware(BodyLimit, settings.body_bytes_maximum)
    app.add_middleware(TimeLimit, settings.seconds_maximum)
    app.add_middleware(AddressLimit)
    app.add_middleware(Journal, service.meters)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            allow_headers=[
                "Authorization",
                "Content-Type",
                "Range",
                "If-None-Match",
                "If-Range",
                "Prefer",
                "Idempotency-Key",
            ],
            expose_headers=["Content-Range", "Accept-Ranges", "ETag", "Link", "Location", "Retry-After", HEADER],
        )
    app.add_middleware(SafeHeaders)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the releases beside the serving; close the catalog at the end."""
    service: Service = app.state.service
    service.readiness.start()
    yield
    service.readiness.stop()
    service.catalog.close()
