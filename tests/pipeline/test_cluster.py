"""Clusters that are not as they should be end in one clear error."""

import os
import threading
import time

import dask
import daskcluster
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from pipelines import cluster as module
from pipelines.cluster import connect, local_cluster
from pipelines.release import _gather, quiet, release
from pipelines.stage import StageError
from synthmap.errors import ConfigurationError
from synthmap.release.verify import verify


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


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_no_wall_clock_decides_that_a_worker_of_a_local_run_is_silent(scheduler):
    """It may jump; a worker that is killed is noticed by its connection (tests/faults)."""
    with connect(scheduler, workers=1) as client:
        assert client.cluster.scheduler.worker_ttl is None


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_local_run_pays_for_no_figures_of_status_pages(scheduler):
    def waits(dask_worker):
        return {name: one.callback_time for name, one in dask_worker.periodic_callbacks.items()}

    with connect(scheduler, workers=1) as client:
        [worker] = client.run(waits).values()
        assert "profile" not in worker
        for found in (worker, waits(client.cluster.scheduler)):
            assert found["monitor"] >= 10_000
            assert found["tick"] >= 1_000


@pytest.mark.parametrize(("cores", "processes"), [(1, False), (4, False), (5, True)])
def test_few_cores_are_threads_of_this_process_and_more_are_processes(monkeypatch, cores, processes):
    made = []

    def spy(workers, *, processes):
        made.append((workers, processes))
        return local_cluster(1, processes=False)

    monkeypatch.setattr(module, "cpu_count", lambda: cores)
    monkeypatch.setattr(module, "local_cluster", spy)
    with connect("auto"):
        assert made == [(cores, processes)]


def test_workers_of_a_local_run_give_memory_back_as_the_system_has_it(monkeypatch):
    """Dask's setting lets every large array begin with new pages; a user's own still counts."""
    trim = "MALLOC_TRIM_THRESHOLD_"
    assert trim in dask.config.get("distributed.nanny.pre-spawn-environ")
    for own in (None, "1234567"):
        monkeypatch.delenv(trim, raising=False) if own is None else monkeypatch.setenv(trim, own)
        with connect("processes", workers=1) as client:
            found = client.run(lambda: (os.environ.get(trim), os.environ["OMP_NUM_THREADS"]))
        assert list(found.values()) == [(own, "1")]


def certified(place):
    """Return Dask's settings for an authority of its own, as environment variables."""
    place.mkdir()
    made = Security.temporary()
    (place / "cert.pem").write_text(made.tls_ca_file)
    (place / "key.pem").write_text(made.tls_client_key)
    settings = {"REQUIRE_ENCRYPTION": "True", "DEFAULT_SCHEME": "tls", "TLS__CA_FILE": place / "cert.pem"}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings |= {f"TLS__{role}__CERT": place / "cert.pem", f"TLS__{role}__KEY": place / "key.pem"}
    return {f"DASK_DISTRIBUTED__COMM__{name}": str(value) for name, value in settings.items()}


def test_with_certificates_by_setting_all_goes_by_tls_and_strangers_are_refused(
    make_spec, command, tmp_path, monkeypatch
):
    make_spec()
    ours, others = certified(tmp_path / "ours"), certified(tmp_path / "others")
    with daskcluster.cluster(tmp_path / "dask", 2, environment=ours) as cluster:
        assert cluster.address.startswith("tls://")
        plain = cluster.address.replace("tls", "tcp")
        assert "tcp://" not in cluster.log
        for held, address, why in (
            ({}, cluster.address, "must fit Dask's settings of TLS"),
            (ours, plain, "must fit Dask's settings of TLS"),
            (others, cluster.address, "must be the address of a running Dask scheduler"),
            ({}, plain, "must be the address of a running Dask scheduler"),
            (ours, cluster.address, None),
        ):
            with monkeypatch.context() as patch:
                for name, value in held.items():
                    patch.setenv(name, value)
                done = command("release", tmp_path / "spec.toml", "--scheduler", address, "--json")
            assert done.returncode == (2 if why else 0), done.stderr
            assert len(done.stderr.splitlines()) == (1 if why else 0)
            assert (why or "") in done.stderr


def test_a_cluster_of_a_deployer_serves_as_it_is(make_spec):
    """Its certificates are in memory: no address would do."""
    with LocalCluster(n_workers=1, security=True, dashboard_address="127.0.0.1:0") as cluster:
        assert cluster.scheduler_address.startswith("tls://")
        assert verify(release(make_spec(), scheduler=cluster).path).workers == 3000


def test_tasks_that_are_lost_are_told_and_not_waited_for():
    with connect("threads", workers=2) as client:
        tasks = [client.submit(time.sleep, 2, pure=False) for _ in range(2)]
        canceller = threading.Thread(target=lambda: (time.sleep(0.3), tasks[0].cancel()))
        canceller.start()
        with pytest.raises(StageError, match="were lost during stage draw; nothing was published"):
            _gather(tasks, "draw", quiet)
        canceller.join()
