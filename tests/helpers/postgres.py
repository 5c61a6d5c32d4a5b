"""A PostgreSQL to test with: the one that is named, else a throw-away cluster, else none."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

VARIABLE = "SYNTHMAP_TEST_POSTGRES"


def binaries() -> Path | None:
    """Return where the newest installed initdb and pg_ctl lie."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    on_path = shutil.which("initdb")
    if not found and on_path is not None:
        return Path(on_path).resolve().parent
    return max(found, key=lambda path: [int(part) for part in path.parent.name.split(".")], default=None)


def described() -> str:
    """Return in words which PostgreSQL the tests use."""
    if os.environ.get(VARIABLE):
        return f"the server that {VARIABLE} names"
    found = binaries()
    if found is None:
        return f"none: {VARIABLE} is not set and no initdb is installed; its tests are skipped"
    return f"a throw-away cluster of {found}"


@dataclass(frozen=True)
class Cluster:
    """A throw-away cluster that a test may stop and start."""

    url: URL
    stop: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def cluster() -> Iterator[Cluster | None]:
    """Yield a cluster of one's own, or None where PostgreSQL is not installed; it is removed in the end."""
    found = binaries()
    if found is None:
        yield None
    else:
        yield from _cluster(found)


@contextmanager
def server() -> Iterator[URL | None]:
    """Yield the URL of a server, or None; a cluster that was made for it is removed."""
    named, found = os.environ.get(VARIABLE), binaries()
    if named:
        yield make_url(named).set(drivername="postgresql+psycopg")
    elif found is None:
        yield None
    else:
        with cluster() as made:
            yield None if made is None else made.url


def _cluster(found: Path) -> Iterator[Cluster]:
    """Yield the URL of a new cluster that listens on a socket in a directory of its own."""
    place = Path(tempfile.mkdtemp(prefix="synthmap-pg-"))  # a short path: that of a socket may not be long
    prefix = []
    if os.geteuid() == 0:  # initdb refuses to run as root
        user = pwd.getpwnam("postgres")
        os.chown(place, user.pw_uid, user.pw_gid)
        prefix = ["runuser", "-u", "postgres", "--"]

    def run(*words: object) -> None:
        subprocess.run([*prefix, *map(str, words)], check=True, capture_output=True, cwd=place)

    data = place / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off -c max_connections=50"

    def start() -> None:
        run(found / "pg_ctl", "-D", data, "-w", "-l", place / "log", "-o", options, "start")

    def stop() -> None:
        run(found / "pg_ctl", "-D", data, "-m", "immediate", "stop")

    try:
        run(
            found / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
        )
        start()
        try:
            url = URL.create("postgresql+psycopg", username="postgres", database="postgres", query={"host": str(place)})
            yield Cluster(url, stop, start)
        finally:
            stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def database(at: URL) -> Iterator[str]:
    """Yield the URL of a new, empty database on a server; it is dropped in the end."""
    name = f"synthmap_test_{secrets.token_hex(6)}"
    engine = create_engine(at, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"create database {name} encoding 'UTF8' template template0"))
        yield at.set(database=name).render_as_string(hide_password=False)
        with engine.connect() as connection:
            connection.execute(text(f"drop database {name} with (force)"))
    finally:
        engine.dispose()
