"""Runs the service: one listening socket, one or several processes, an orderly end."""

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from synthmap.catalog.database import open_catalog
from synthmap.errors import ConfigurationError, SynthmapError
from synthmap.service.app import create_app
from synthmap.service.logs import start_log
from synthmap.service.meters import DIRECTORY
from synthmap.service.settings import PREFIX, ServiceSettings, service_settings

_QUEUE = 2_048  # connections that wait to be taken, also before the processes are up
_SPARE_SECONDS = 5  # at the end, after the longest that a request may take
_log = structlog.get_logger()


def serve(
    *, store: Path, host: str = "127.0.0.1", port: int = 8080, workers: int = 1, database: str = "", root_path: str = ""
) -> None:
    """Serve the releases in `store` until SIGTERM or Ctrl-C; requests that run then are finished first.

    All other settings come from the environment, see `synthmap.service.settings`. What is given here goes there too:
    it is how the processes learn it.

    Parameters
    ----------
    store : Path
    host : str
    port : int
        0: a free one; the log says which.
    workers : int
        Processes. Each counts the requests of a caller by itself; `/metrics` adds up over all.
    database : str
        URL of the catalog; empty: as the environment says, else a SQLite file in the store.
    root_path : str
        Path prefix that a proxy takes away; empty: as the environment says.

    Raises
    ------
    ConfigurationError
        If a setting breaks a rule, the store is no directory, the port is taken, or the processes do not start.
    CatalogError
        If the catalog does not answer.
    """
    given = {"STORE": str(store.absolute()), "DATABASE": database, "ROOT_PATH": root_path}
    os.environ |= {PREFIX + name: value for name, value in given.items() if value}
    settings = service_settings()
    if not settings.store.is_dir():
        raise ConfigurationError(f"store ({settings.store}) must be a directory of releases; make it, or name another")
    open_catalog(settings.catalog_url).close()  # made or brought up to date once, not by each process
    with _listening(host, port) as sock, _shared_counts(workers):
        start_log(settings.log_level)
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{sock.getsockname()[1]}{settings.root_path}/"
        _log.info("listening", url=url, processes=workers, store=str(settings.store))
        if not _run(_config(settings, workers), sock):
            raise ConfigurationError("the service must be able to start; the lines above say what was in the way")
        _log.info("stopped")


def application() -> FastAPI:
    """Return the service as the environment describes it: what each process runs."""
    try:
        settings = service_settings()
        start_log(settings.log_level)
        return create_app(settings)
    except SynthmapError as fault:
        _log.error("cannot start", reason=str(fault))
        sys.exit(STARTUP_FAILURE)


def _config(settings: ServiceSettings, workers: int) -> uvicorn.Config:
    """Return how uvicorn shall run. Its own log of requests is off: it would hold queries, and so keys."""
    return uvicorn.Config(
        f"{__name__}:{application.__name__}",
        factory=True,
        workers=workers,
        log_config=None,
        access_log=False,
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=int(settings.seconds_maximum) + _SPARE_SECONDS,
        timeout_worker_healthcheck=30,
    )


def _run(config: uvicorn.Config, sock: socket.socket) -> bool:
    """Run until asked to stop; return whether it ever started."""
    if config.workers == 1:
        server = uvicorn.Server(config)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        with suppress(KeyboardInterrupt):  # the signal that ended it, handed on after the orderly end
            server.run(sockets=[sock])
        return server.started
    processes = Multiprocess(config, sockets=[sock])
    processes.run()
    return all(one.exitcode != STARTUP_FAILURE for one in processes.processes)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as fault:
        raise _not_free(host, port, fault) from None
    with sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(_QUEUE)
        except OSError as fault:
            raise _not_free(host, port, fault) from None
        yield sock


def _not_free(host: str, port: int, fault: OSError) -> ConfigurationError:
    return ConfigurationError(f"port ({port}) must be free on {host}: {fault.strerror}; choose another port or host")


@contextmanager
def _shared_counts(workers: int) -> Iterator[None]:
    """Give several processes a directory in which their counts meet."""
    if workers == 1 or DIRECTORY in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="synthmap-counts-") as directory:
        os.environ[DIRECTORY] = directory
        yield
