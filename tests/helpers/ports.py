"""Ports for servers that a test starts, and may start again at the same address."""

import itertools
import os
import random
import socket

FIRST, EACH = 10_240, 1_400  # sixteen processes' ports, below those that systems give to who asks for any


def _own() -> list[int]:
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 16
    found = list(range(FIRST + EACH * process, FIRST + EACH * (process + 1)))
    random.shuffle(found)
    return found


_ports = itertools.cycle(_own())


def free_port() -> int:
    """Return a port that nobody has, nor gets while its server is down: no other test's, no outgoing connection's."""
    for port in itertools.islice(_ports, EACH):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("all ports are taken")
