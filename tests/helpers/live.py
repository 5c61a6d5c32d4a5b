"""A service in a process of its own, and a proxy in front of it that remembers what was asked."""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PROGRAM = "from pathlib import Path; from synthmap.service.serve import serve; import sys; serve(store=Path(sys.argv[1]), port=0)"
SECONDS = 60
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def serving(store: Path, database: Path, **settings: object) -> Iterator[str]:
    """Yield the address of a service over `store`, without a slash at its end; stop it afterwards."""
    own = {"DATABASE": f"sqlite:///{database}", "REQUESTS_PER_MINUTE": 0} | {
        name.upper(): value for name, value in settings.items()
    }
    environment = os.environ | {f"SYNTHMAP_SERVICE_{name}": str(value) for name, value in own.items()}
    log = database.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(store)], env=environment, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen, log: Path) -> str:
    """Return the address that the log tells, once the service answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"http://[\w.:\[\]]+", log.read_text(errors="replace"))
        if found and _answers(found[0]):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"the service did not start:\n{log.read_text(errors='replace')}")


def _answers(address: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Proxy(ThreadingHTTPServer):
    """Passes on what lies below a prefix, which it takes away, as a proxy in front of a service does.

    Attributes
    ----------
    asked : list of str
        Path and query of all requests so far, with the prefix.
    """

    daemon_threads = True

    def __init__(self, behind: str, prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.prefix = urlsplit(behind).netloc, prefix
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        """Address of the service as seen through the proxy."""
        return f"http://127.0.0.1:{self.server_address[1]}{self.prefix}"


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.path.removeprefix(self.server.prefix) or "/"
        if path == self.path or not path.startswith(("/", "?")):
            self.send_error(404)
            return
        connection = http.client.HTTPConnection(self.server.behind, timeout=SECONDS)
        connection.request(self.command, path if path.startswith("/") else "/" + path, headers=dict(self.headers))
        answer = connection.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connection.close()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def recording(behind: str, prefix: str) -> Iterator[Proxy]:
    """Yield a proxy in front of the service at `behind`."""
    with Proxy(behind, prefix) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
