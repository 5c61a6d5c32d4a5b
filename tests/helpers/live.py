"""A service in a process of its own, and a proxy in front of it that remembers what was asked (also a process)."""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from waiting import PATIENCE

SERVE = "import pathlib, sys; from synthmap.service.serve import serve; "
SERVE += "serve(store=pathlib.Path(sys.argv[1]), port=int(sys.argv[2]))"
_ADDRESS = re.compile(r"http://[\w.:\[\]]+")
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def serving(store: Path, database: Path, **settings: object) -> Iterator[str]:
    """Yield the address of a service over `store`, without a slash at its end; stop it afterwards."""
    with killable(store, database, database.with_suffix(".log"), **settings) as (address, _):
        yield address


@contextmanager
def killable(store: Path, database: Path, log: Path, **settings: object) -> Iterator[tuple[str, subprocess.Popen]]:
    """Yield the address of a service, at a free `port` or that, and its process; stop it afterwards, if it lives."""
    port = str(settings.pop("port", 0))
    own = {"database": f"sqlite:///{database}", "requests_per_minute": 0} | settings
    environment = {f"SYNTHMAP_SERVICE_{name.upper()}": str(value) for name, value in own.items()}
    with _running(["-c", SERVE, str(store), port], log, environment, "/readyz") as found:
        yield found


@dataclass(frozen=True)
class Proxy:
    """What a recording proxy is reached by, and where it writes what was asked."""

    address: str
    log: Path

    @property
    def asked(self) -> list[str]:
        """Path and query of all requests so far, with the prefix."""
        return [line for line in self.log.read_text().splitlines() if line.startswith("/") and line != "/-ready"]


@contextmanager
def recording(behind: str, prefix: str, log: Path) -> Iterator[Proxy]:
    """Yield a proxy in front of the service at `behind`: it passes on what lies below a prefix, and takes that away."""
    with _running([__file__, behind, prefix], log, {}, "/-ready") as (address, _):
        yield Proxy(address + prefix, log)


@contextmanager
def _running(
    words: list[str], log: Path, environment: dict[str, str], ready: str
) -> Iterator[tuple[str, subprocess.Popen]]:
    """Yield the address that a Python program tells, once it answers there, and its process; stop it afterwards."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *words], env=os.environ | environment, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield _address(process, log, ready), process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen, log: Path, ready: str) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        found = _ADDRESS.search(log.read_text(errors="replace"))
        if found and _answers(found[0], ready):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"it did not start:\n{log.read_text(errors='replace')}")


def _answers(address: str, ready: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", ready)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class _Forward(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behind = prefix = ""

    def do_GET(self) -> None:
        sys.stdout.write(f"{self.path}\n")
        sys.stdout.flush()
        below = self.path.removeprefix(self.prefix)
        if self.path == "/-ready":
            self._answer(200, [], b"")
        elif below == self.path or (not below.startswith(("/", "?")) and below):
            self._answer(404, [], b"not below the prefix")
        else:
            connection = http.client.HTTPConnection(self.behind, timeout=PATIENCE)
            path = below if below.startswith("/") else "/" + below
            connection.request(self.command, path, headers=dict(self.headers))
            answer = connection.getresponse()
            self._answer(answer.status, answer.getheaders(), answer.read())
            connection.close()

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _proxy(behind: str, prefix: str) -> None:
    _Forward.behind, _Forward.prefix = urlsplit(behind).netloc, prefix
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forward) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    _proxy(*sys.argv[1:])
