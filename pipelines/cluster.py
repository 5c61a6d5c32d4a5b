"""Where the tasks run: processes or threads of this machine, or a Dask cluster that is already there."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from dask.system import cpu_count
from distributed import Client, LocalCluster
from distributed.deploy import Cluster

from synthmap.errors import ConfigurationError

FEW_CORES = 4  # on up to so many threads are faster: two held Python's lock in a third of samples, at most
PATIENCE_SECONDS = 30.0  # for the first worker of a cluster that is already there

_TLS = "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …TLS__CLIENT__CERT and …TLS__CLIENT__KEY, or Dask's file of settings"

# a local cluster answers its own tasks only: no status pages, and ports that two runs never share. None of its workers
# is given up for silent by the wall clock, which may jump: one that dies is noticed by its connection. What Dask looks
# at for status pages, at each process many times a second, would take a tenth of a core from the tasks
_LOCAL: dict[str, object] = {
    "distributed.scheduler.http.routes": [], "distributed.worker.http.routes": [],
    "distributed.scheduler.worker-ttl": None,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s", "distributed.admin.tick.interval": "1s",
}  # fmt: skip
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
_TRIM = "MALLOC_TRIM_THRESHOLD_"  # Dask's 64 KiB make every large array new pages: 8 % of a worker's time


@contextmanager
def connect(scheduler: str | Cluster, workers: int | None = None) -> Iterator[Client]:
    """Yield a Dask client.

    Parameters
    ----------
    scheduler : str or distributed.deploy.Cluster
        ``threads`` (of this process, one a core), ``processes`` (one a core), ``auto`` (threads on up to `FEW_CORES`
        cores, else processes), the address of a running scheduler such as ``tls://host:8786``, or a cluster that one of
        Dask's deployers made. The workers of the last two reach the tables and the scratch directory, too. Cores that a
        container may not use do not count.
    workers : int, optional
        How many local workers; default: one a core.

    Raises
    ------
    ConfigurationError
        If the scheduler is none of these or does not answer.
    """
    if scheduler in ("auto", "processes", "threads"):
        number = workers or cpu_count()
        if scheduler == "auto":
            scheduler = "threads" if number <= FEW_CORES else "processes"
        with local_cluster(number, processes=scheduler == "processes") as cluster, Client(cluster) as client:
            yield client
        return
    if isinstance(scheduler, str) and "://" not in scheduler:
        raise ConfigurationError(
            f"scheduler ({scheduler}) must be auto, threads, processes or an address such as tls://host:8786"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = Client(scheduler, timeout="10s")
    except (TypeError, RuntimeError):  # no certificate for tls://, or no TLS where Dask's settings require it
        raise ConfigurationError(f"scheduler ({scheduler}) must fit Dask's settings of TLS: {_TLS}") from None
    except (OSError, TimeoutError, ValueError):
        raise ConfigurationError(
            f"scheduler ({scheduler}) must be the address of a running Dask scheduler; it does not answer, or not to "
            f"those who hold no certificate of its authority: {_TLS}"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TimeoutError:
            raise ConfigurationError(f"scheduler ({scheduler}) must have at least one worker; none came") from None
        yield client


@contextmanager
def local_cluster(workers: int, *, processes: bool = True) -> Iterator[LocalCluster]:
    """Yield a cluster of this machine with so many workers, or one worker with so many threads of this process.

    Raises
    ------
    ConfigurationError
        If its processes cannot start.
    """
    environment = {name: value for name, value in dask.config.get(_ENVIRONMENT).items() if name != _TRIM}
    with dask.config.set({**_LOCAL, _ENVIRONMENT: environment}):
        try:
            cluster = LocalCluster(
                n_workers=workers if processes else 1,
                threads_per_worker=1 if processes else workers,
                processes=processes,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                security=processes or None,  # TLS with keys made for this run: nobody else here can join
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
        except RuntimeError:
            raise ConfigurationError(
                f"scheduler ({'processes' if processes else 'threads'}) could not start its workers; a Python script "
                'needs if __name__ == "__main__": around the call, or scheduler="threads"'
            ) from None
        with cluster:
            yield cluster
