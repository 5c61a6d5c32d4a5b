"""``synthmap up``, what `make serve` runs: two programs that answer, and that end together."""

import re
import signal
import subprocess
import sys

import httpx2
import psutil
from ports import free_port
from waiting import PATIENCE, wait_for

UP = "from synthmap.cli import main; main()"


def answer(url, **headers):
    try:
        return httpx2.get(url, headers=headers)
    except httpx2.TransportError:
        return None


def test_the_demo_is_served_released_again_and_ended(command, tmp_path):
    done = command("demo", "--directory", tmp_path / "demo", "--workers", 500)
    assert done.returncode == 0, done.stderr
    url = f"http://127.0.0.1:{free_port()}"
    line = [sys.executable, "-c", UP, "up", "--directory", str(tmp_path / "demo"), "--port", url.rpartition(":")[2]]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True) as up,
    ):
        told = "".join(up.stdout.readline() for _ in range(2))
        key = re.search(r"smk_\S+", told)[0]
        wait_for(lambda: (got := answer(f"{url}/readyz")) is not None and got.status_code == 200)
        assert len(answer(f"{url}/releases").json()["releases"]) == 1
        bearer = {"Authorization": f"Bearer {key}"}
        asked = {"inputs": {"dataset": "demo", "epsilon": 2.0}}
        job = httpx2.post(f"{url}/processes/release/execution", headers=bearer, json=asked)
        assert job.status_code == 201
        wait_for(lambda: answer(job.headers["location"], **bearer).json()["status"] == "successful")
        assert len(answer(f"{url}/releases").json()["releases"]) == 2
        family = psutil.Process(up.pid).children(recursive=True)
        assert len(family) >= 2
        up.send_signal(signal.SIGINT)
        up.communicate()
        assert up.returncode == 130
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []
    assert key not in (tmp_path / "log").read_text()
