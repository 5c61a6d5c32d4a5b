"""Clusters that are not as they should be end in one clear error."""

import threading
import time

import pytest
from distributed import Client, LocalCluster

from pipelines import cluster as module
from pipelines.cluster import connect
from pipelines.release import _gather, quiet
from pipelines.stage import StageError
from synthmap.errors import ConfigurationError


def test_a_cluster_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.5)
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(ConfigurationError, match="must have at least one worker"),
        connect(empty.scheduler_address),
    ):
        pass


def test_a_stranger_cannot_join_a_local_cluster():
    with connect("processes", workers=1) as client:
        address = client.scheduler.address
        assert address.startswith("tls://")
        with pytest.raises((OSError, TimeoutError, ValueError)), Client(address.replace("tls", "tcp"), timeout="2s"):
            pass


def test_tasks_that_are_lost_are_told_and_not_waited_for():
    with connect("threads", workers=2) as client:
        tasks = [client.submit(time.sleep, 2, pure=False) for _ in range(2)]
        canceller = threading.Thread(target=lambda: (time.sleep(0.3), tasks[0].cancel()))
        canceller.start()
        with pytest.raises(StageError, match="were lost during stage draw; nothing was published"):
            _gather(tasks, "draw", quiet)
        canceller.join()
