"""The service as a fork at an address that stays the same, and how it is asked by who expects it to die."""

import http.client
import json
import signal
from dataclasses import dataclass, field
from typing import Any

import psutil
import sites
from forks import Forks, Running
from ports import free_port
from waiting import PATIENCE, wait_for

Answer = tuple[int, bytes]


@dataclass
class Served:
    """A service over a site; it is started again and again."""

    forks: Forks
    site: sites.Site
    secret: str = ""
    port: int = field(default_factory=free_port)

    def start(self, *fault: Any, **order: Any) -> Running:
        """Return the service that was started, once it answers or is dead."""
        self.site.store.mkdir(exist_ok=True)
        directory = {"directory": self.site.directory, "database": self.site.database}
        found = self.forks.start(**directory, serve=self.port, fault=list(fault) or None, **order)
        wait_for(lambda: self.ask("GET", "/healthz") is not None or not psutil.pid_exists(found.pid))
        return found

    def stop(self, running: Running) -> None:
        """Let it end in an orderly way."""
        assert running.kill(signal.SIGTERM).status == 0, self.site.log

    def ask(self, method: str, path: str, body: object = None, name: str | None = None) -> Answer | None:
        """Return status and whole body of an answer; None if nobody answered, or not to the end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        headers |= {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        headers |= {"Idempotency-Key": name} if name else {}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def submit(self, name: str) -> tuple[int, str] | None:
        """Return status and job of a request for a release, under a name of its own; None as `ask`."""
        body = {"inputs": {"dataset": sites.DATASET, "epsilon": 1.0}}
        answer = self.ask("POST", "/processes/release/execution", body, name)
        return None if answer is None else (answer[0], json.loads(answer[1]).get("jobID", ""))
