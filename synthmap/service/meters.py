"""What Prometheus reads: requests by method, route template and status, over all processes of the service.

Several processes write to files in one directory, and whichever answers adds them up. The library decides that when it
is first imported, by the environment variable PROMETHEUS_MULTIPROC_DIR, which `serve` sets before it starts them.
"""

import os
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Meters:
    """The counts of one process; one object for each application."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # twice the lines, for nothing that a rate needs
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "synthmap_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "synthmap_request_seconds",
            "Time until the answer was complete.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._running = Gauge(
            "synthmap_requests_running", "Requests being answered.", registry=self._registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        if DIRECTORY not in os.environ:  # CPU and memory of the one process
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)

    def begin(self) -> None:
        """Count a request that has come."""
        self._running.inc()

    def end(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that is over; `route` is a template, so that the number of series is bounded."""
        method = method if method in _METHODS else "other"
        self._running.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """Return all counts in Prometheus' text format, and its media type."""
        registry = self._registry
        if DIRECTORY in os.environ:
            registry = CollectorRegistry()
            _forget_dead()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def _forget_dead() -> None:
    """Remove what processes that are no more said to be running; what they finished still counts."""
    for path in Path(os.environ[DIRECTORY]).glob("gauge_live*.db"):
        try:
            os.kill(int(path.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except PermissionError:
            pass
