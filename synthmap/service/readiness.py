"""Whether the service is ready: its store and catalog can be read, and its releases were opened once."""

import threading
import time

import structlog

from synthmap.catalog.database import Catalog
from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError
from synthmap.published.damage import unharmed
from synthmap.published.first_view import first_view
from synthmap.published.store import ReleaseStore

_KEPT_SECONDS = 1.0  # however often it is asked, the catalog is asked no more often
_LEAVE_SECONDS = 15.0
_log = structlog.get_logger()


class Readiness:
    """What `/readyz` tells. Safe to share between threads."""

    def __init__(self, releases: ReleaseStore, catalog: Catalog, tile_features: int) -> None:
        self._releases, self._catalog, self._tile_features = releases, catalog, tile_features
        self._opened = threading.Event()
        self._stopped = threading.Event()
        self._asking = threading.Lock()
        self._answer: bool | None = None
        self._asked = 0.0
        self._opening: threading.Thread | None = None

    def start(self) -> None:
        """Open every release once, beside the serving: hashing large ones takes its time. Damaged ones are logged."""
        self._opening = threading.Thread(target=self._open_all, name="open-releases", daemon=True)
        self._opening.start()

    def stop(self) -> None:
        """Let the opening end after the release it is at: a library cut off while it reads aborts the whole process."""
        self._stopped.set()
        if self._opening is not None:
            self._opening.join(_LEAVE_SECONDS)

    def fault(self) -> str | None:
        """Return why the service is not ready; None if it is."""
        if not self._releases.directory.is_dir():
            return "the store of releases cannot be read"
        if not self._catalog_answers():
            return "the catalog does not answer"
        return None if self._opened.is_set() else "the releases are still being checked"

    def _catalog_answers(self) -> bool:
        """Return whether the catalog answered just now; who comes while it is being asked gets the last answer."""
        if self._asking.acquire(blocking=self._answer is None):
            try:
                if self._answer is None or time.monotonic() - self._asked > _KEPT_SECONDS:
                    self._answer = self._catalog.answers()
                    self._asked = time.monotonic()
            finally:
                self._asking.release()
        return bool(self._answer)

    def _open_all(self) -> None:
        started, damaged = time.monotonic(), 0
        names = self._releases.ids()
        for name in names:
            if self._stopped.is_set():
                return
            for listed in self._releases.list([name]):
                if listed.fault is not None:
                    damaged += 1
                    _log.error("release damaged", release=name, fault=listed.fault)
        try:
            self._look()
            seconds = round(time.monotonic() - started, 3)
            _log.info("releases opened", releases=len(names), damaged=damaged, seconds=seconds)
        finally:
            self._opened.set()

    def _look(self) -> None:
        """Read what a first look at the newest whole release needs; requests are answered meanwhile."""
        for *_, name in self._releases.dated():
            if self._stopped.is_set():
                return
            try:
                with unharmed(name):
                    first_view(self._releases.open(name), self._tile_features)
            except (ReleaseCorruptError, ReleaseNotFoundError):
                continue  # whoever asks for it is told
            return
