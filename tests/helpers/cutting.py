"""A socket in front of PostgreSQL that cuts a connection at a commit: before it arrives, or before its answer does."""

import select
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from sqlalchemy.engine import URL, make_url

When = Literal["before", "after"]
_COMMIT = b"COMMIT\0"  # the end of the message, and of its answer


class Proxy:
    """Passes everything on until it is told to cut.

    Attributes
    ----------
    url : str
        What clients connect to instead of the server.
    commits : int
        That were seen since it was armed.
    cut : bool
        Whether it has cut since then.
    """

    def __init__(self, server: URL, place: Path) -> None:
        self._at = f"{server.query['host']}/.s.PGSQL.5432"
        self.url = server.update_query_dict({"host": str(place)}).render_as_string(hide_password=False)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(place / ".s.PGSQL.5432"))
        self._listening.listen()
        self._lock = threading.Lock()
        self.arm(0, "before")
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(
        self, number: int, when: When, meanwhile: Callable[[], None] = lambda: None, *, of: bytes = b"ledger"
    ) -> None:
        """Cut at the commit of this number that writes to a table, and call `meanwhile` before the client notices."""
        with self._lock:
            self._writes = b"INSERT INTO " + of + b" ", b"UPDATE " + of + b" "
            self._number, self._when, self._meanwhile = number, when, meanwhile
            self.commits, self.cut = 0, False

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._at)
            writes = False
            while True:
                for one in select.select([client, server], [], [])[0]:
                    if not (data := one.recv(65_536)):
                        return
                    writes = writes or (one is client and any(word in data for word in self._writes))
                    ends = one is client and _COMMIT in data
                    if ends and writes and self._counts():
                        if self._when == "after":
                            server.sendall(data)
                            while _COMMIT not in server.recv(65_536):  # nothing of the answer is passed on
                                pass
                        self._meanwhile()
                        return
                    writes = writes and not ends
                    (server if one is client else client).sendall(data)

    def _counts(self) -> bool:
        with self._lock:
            self.commits += 1
            self.cut = self.cut or self.commits == self._number
            return self.commits == self._number


@contextmanager
def proxy(server: str) -> Iterator[Proxy]:
    """Yield a proxy to the server at a URL that names a socket's directory."""
    with tempfile.TemporaryDirectory(prefix="synthmap-cut-") as place:  # a short path
        found = Proxy(make_url(server), Path(place))
        try:
            yield found
        finally:
            found.close()
