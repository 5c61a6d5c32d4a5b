"""`synthmap serve` as a real process: where it listens, what it logs, how it ends, several processes."""

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from waiting import PATIENCE, wait_for

from synthmap.catalog.database import open_catalog
from synthmap.catalog.keys import Role, add_key
from synthmap.errors import SynthmapError
from synthmap.service.serve import serve

PROGRAM = [sys.executable, "-c", "from synthmap.cli import main; main()", "serve"]
MODULE = [sys.executable, "-m", "synthmap.service"]


class Running:
    """A process that serves, all that it wrote, and how to talk to it."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=lambda: self.lines.extend(iter(process.stdout.readline, "")))
        self._reader.start()
        wait_for(lambda: self.process.poll() is not None or self.event("listening"))
        self.port = int(re.search(r":(\d+)/", self.event("listening")["url"])[1])

    def event(self, name: str) -> dict | None:
        found = (json.loads(line) for line in list(self.lines) if line.startswith("{"))
        return next((one for one in found if one["event"] == name), None)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def send(self, raw: bytes) -> bytes:
        """All that comes back for bytes that are no orderly request."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(raw)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
        self._reader.join(30)
        return self.process.returncode


@contextmanager
def serving(*words, program=PROGRAM, **environment):
    process = subprocess.Popen(
        [*program, *map(str, words), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", bufsize=1,
        env={**os.environ, **environment},
    )  # fmt: skip
    running = None
    try:
        running = Running(process)
        yield running
    finally:
        if running is not None:
            running.end()
        process.kill()
        process.stdout.close()


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture
def secret(database):
    catalog = open_catalog(database)
    try:
        return add_key(catalog, "test", Role.CURATOR)
    finally:
        catalog.close()


def test_a_request_that_runs_is_finished_and_no_key_is_ever_written(store, made_up, database, secret):
    with serving("--store", store, "--database", database) as running:
        basic = base64.b64encode(f"me:{secret}".encode()).decode()
        assert running.get("/jobs", Authorization=f"Bearer {secret}")[0] == 200
        assert running.get("/jobs", Authorization=f"Basic {basic}")[0] == 200
        assert running.get(f"/jobs?token={secret}")[0] == 200
        wrong = secret[:-4] + "AAAA"
        assert running.get(f"/jobs?token={wrong}", Authorization=f"Bearer {secret}")[0] == 401
        assert running.get(f"/jobs?token={wrong}&x={secret}", **{"X-Request-ID": secret})[0] == 401
        assert running.get(f"/{secret}/releases")[0] == 404
        assert running.send(f"GET /a b{secret} HTTP/1.1\r\nHost: x\r\n\r\n".encode()).startswith(b"HTTP/1.1 400 ")

        body = json.dumps({"inputs": {"dataset": "none"}}).encode()
        head = (
            f"POST /processes/release/execution HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as connection:
            connection.sendall(head.encode() + body[:5])
            wait_for(lambda: b"synthmap_requests_running 2.0" in running.get("/metrics")[2])
            running.process.send_signal(signal.SIGTERM)
            wait_for(lambda: running.event("Shutting down"))
            with pytest.raises(OSError), socket.create_connection(("127.0.0.1", running.port), timeout=5) as late:
                late.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                if not late.recv(10):
                    raise ConnectionResetError
            connection.sendall(body[5:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"dataset (none)" in answer
        assert running.end() == 0
        assert running.event("stopped")
        written = "".join(running.lines)
        for part in (secret, secret[22:], basic, basic[8:40], wrong, "token"):
            assert part not in written
        assert "Traceback" not in written
        for line in running.lines:
            assert {"event", "level", "timestamp"} <= set(json.loads(line))


def test_several_processes_answer_and_count_together_and_all_end(store, database):
    with serving("--store", store, "--database", database, "--workers", 2) as running:
        wait_for(lambda: len([line for line in running.lines if "Application startup complete" in line]) == 2)
        for _ in range(30):
            assert running.get("/processes")[0] == 200
        text = running.get("/metrics")[2].decode()
        assert 'synthmap_requests_total{method="GET",route="/processes",status="200"} 30.0' in text
        assert "synthmap_requests_running 1.0" in text
        assert running.end() == 0
        children = {int(re.search(r"\[(\d+)\]", line)[1]) for line in running.lines if "Started server process" in line}
        assert len(children) == 2
        for pid in children:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


@pytest.mark.parametrize(("program", "number"), [(PROGRAM, signal.SIGINT), (MODULE, signal.SIGTERM)])
def test_each_way_to_start_and_to_end_it_is_orderly(store, database, program, number):
    with serving("--store", store, "--database", database, program=program) as running:
        wait_for(lambda: running.event("Application startup complete."))
        running.process.send_signal(number)
        assert running.process.wait(PATIENCE) == 0


def test_a_prefix_that_a_proxy_takes_away_stands_in_links(store, made_up, database):
    with serving("--store", store, "--database", database, "--root-path", "/maps") as running:
        proxied = {"Host": "maps.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        for path in ("/processes", "/maps/processes"):  # whether or not the proxy really takes it away
            status, _, body = running.get(path, **proxied)
            assert status == 200
            assert "https://maps.example.org/maps/processes" in body.decode()


def test_only_trusted_proxies_are_believed(store, database):
    limits = {"SYNTHMAP_SERVICE_REQUESTS_PER_MINUTE": "2", "SYNTHMAP_SERVICE_TRUSTED_PROXIES": "192.0.2.99"}
    with serving("--store", store, "--database", database, **limits) as running:
        found = [running.get("/processes", **{"X-Forwarded-For": f"198.51.100.{i}"}) for i in range(3)]
        assert [status for status, *_ in found] == [200, 200, 429]
        assert b"https://" not in running.get("/healthz", **{"X-Forwarded-Proto": "https"})[2]
    with serving("--store", store, "--database", database, SYNTHMAP_SERVICE_REQUESTS_PER_MINUTE="2") as running:
        found = [running.get("/processes", **{"X-Forwarded-For": f"198.51.100.{i}"}) for i in range(3)]
        assert [status for status, *_ in found] == [200, 200, 200]


def test_bytes_that_are_no_request_do_no_harm(store, database):
    with serving("--store", store, "--database", database) as running:
        for sent in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
            b"GET /%ff%fe/%c0%af%ed%a0%80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"GET /releases/%zz%%% HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nAccept: \xff\xfe\r\nConnection: close\r\n\r\n",
            b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        ):
            answer = running.send(sent)
            assert re.match(rb"HTTP/1.1 [234]\d\d ", answer), (sent[:60], answer[:200])
        assert running.get("/healthz")[0] == 200
        running.end()
        assert "fault" not in {json.loads(line)["event"] for line in running.lines}


def test_what_is_in_the_way_is_one_clear_line(command, store, database):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command("serve", "--store", store, "--database", database, "--port", port)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"synthmap: port ({port}) must be free on 127.0.0.1")


@pytest.fixture
def refused(store, database, monkeypatch):
    """What `serve` says instead of starting."""
    for name in ("STORE", "DATABASE", "ROOT_PATH"):
        monkeypatch.setenv(f"SYNTHMAP_SERVICE_{name}", "")  # put back afterwards: serve sets them for its processes

    def start(**changes):
        with pytest.raises(SynthmapError) as fault:
            serve(**{"store": store, "database": database, "port": 0, **changes})
        return str(fault.value)

    return start


def test_an_address_that_is_not_ours_is_refused(refused):
    for host in ("192.0.2.1", "no.such.host.invalid", "a b"):
        assert f"must be free on {host}" in refused(host=host)


def test_a_store_that_is_no_directory_is_refused_and_not_made(refused, tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "none"):
        assert f"store ({path}) must be a directory" in refused(store=path, database="")
    assert not (tmp_path / "none").exists()


def test_a_catalog_that_does_not_answer_is_refused(refused, tmp_path):
    (tmp_path / "text.sqlite").write_text("no database at all " * 100)
    assert "the catalog does not answer" in refused(database=f"sqlite:///{tmp_path / 'text.sqlite'}")
    assert "hunter2" not in refused(database="mysql://me:hunter2@host/x")


def test_the_service_does_not_start_where_it_could_see_confidential_settings(refused, monkeypatch):
    monkeypatch.setenv("SYNTHMAP_CONFIDENTIAL_REGISTRY", "/secret")
    assert "must not see" in refused()


def test_it_serves_on_ipv6(store, database):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 address here")
    with serving("--store", store, "--database", database, "--host", "::1") as running:
        assert running.event("listening")["url"] == f"http://[::1]:{running.port}/"
        with socket.create_connection(("::1", running.port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
