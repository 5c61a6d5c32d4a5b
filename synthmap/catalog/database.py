"""The database of the catalog: a SQLite file by default, PostgreSQL by URL."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.orm import Session

from synthmap.catalog.schema import upgrade
from synthmap.errors import CatalogError, ConfigurationError

PATIENCE_SECONDS = 5.0  # to connect, for a free connection, and for an answer to `answers`
BUSY_SECONDS = 10.0  # a writer of SQLite waits so long for the others; each writes a row or two
_EFFECTIVE = os.access in os.supports_effective_ids
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# a client that hangs in a transaction, or a query that does, must not hold up all others for ever
_POSTGRESQL_LIMITS = {"statement_timeout": "30s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"}


class Catalog:
    """A connected catalog; safe to share between threads, not between processes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writing = engine.execution_options(writes=True)
        self._asking = threading.Lock()
        self._question: threading.Thread | None = None

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Yield a session that sees one state of the catalog.

        Raises
        ------
        CatalogError
            If the database does not answer; the message names no address.
        """
        with _answering(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Yield a session whose changes are durable when the block is left, or undone by an exception.

        On SQLite no other writer comes in between what is read and what is written here; on PostgreSQL rows that
        decide must be locked or named in the update's condition.

        Raises
        ------
        CatalogError
            As `read`; nothing was changed, unless the connection broke during the commit.
        """
        with _answering(), Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def answers(self) -> bool:
        """Return whether the database answers, within `PATIENCE_SECONDS` also where it is frozen."""
        found: list[bool] = []

        def ask() -> None:
            try:
                with self.engine.connect() as connection:
                    connection.execute(text("select version_num from alembic_version")).one()
                found.append(True)
            except SQLAlchemyError:
                self.engine.dispose()  # what comes back later may be another file or server at the same place

        with self._asking:
            if self._question is not None and self._question.is_alive():
                return False  # the last one still waits: no pile of them
            self._question = threading.Thread(target=ask, daemon=True, name="catalog")
            self._question.start()
            self._question.join(PATIENCE_SECONDS)
        return bool(found)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def default_url(store: Path) -> str:
    """Return the URL of the catalog that lies in a store of releases."""
    return URL.create("sqlite", database=str(store.absolute() / ".catalog" / "catalog.sqlite")).render_as_string()


def open_catalog(url: str) -> Catalog:
    """Return the catalog at `url`, its tables made or brought up to date.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql://user:password@host/database``. A SQLite file and its directory are made.

    Raises
    ------
    ConfigurationError
        If `url` is neither.
    CatalogError
        If the database does not answer, cannot be written, or was made by a newer synthmap.
    """
    place = _place(url)
    engine = _sqlite(place) if place.get_backend_name() == "sqlite" else _postgresql(place)
    try:
        with _answering():
            upgrade(engine.execution_options(writes=True))
    except BaseException:
        engine.dispose()
        raise
    return Catalog(engine)


def _place(url: str) -> URL:
    """Return the parsed URL with the driver that synthmap uses."""
    try:
        place = make_url(url)
    except (ArgumentError, ValueError):
        place = URL.create("unknown")
    driver = _DRIVERS.get(place.drivername)
    memory = driver == "sqlite" and (place.database in (None, "", ":memory:") or place.query)
    if driver is None or memory:
        kind = place.drivername.partition("+")[0]  # never the whole URL: it may hold a password
        raise ConfigurationError(
            f"database ({kind}) must be sqlite:///FILE or postgresql://user:password@host:port/database"
        )
    return place.set(drivername=driver)


class _Opened(sqlite3.Connection):
    """A connection that knows which file it has open."""

    file: tuple[int, int] | None = None


def _sqlite(place: URL) -> Engine:
    named = Path(place.database or "").absolute()
    _made(_followed(named))

    def connect() -> _Opened:
        path, file = _followed(named), _identity(named)
        if any(_is_read_only(one) for one in _files(path)):
            raise sqlite3.OperationalError("read-only")  # SQLite would open it so, and never look again
        # never made here: beside the log of one that is away, SQLite would take the log for the new one's and clear it
        uri = f"{path.as_uri()}?mode=rw"
        made = sqlite3.connect(uri, timeout=BUSY_SECONDS, check_same_thread=False, uri=True, factory=_Opened)
        made.file = file  # as it was before: if it was replaced meanwhile, it is not trusted
        return made

    engine = create_engine(place, creator=connect, pool_timeout=PATIENCE_SECONDS)

    @event.listens_for(engine, "connect")
    def connected(connection: _Opened, _: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not where Python's driver guesses
        connection.execute("pragma foreign_keys = on")
        connection.execute("pragma synchronous = full")  # what is committed survives a power cut

    @event.listens_for(engine, "checkout")
    def taken(connection: _Opened, record: Any, _: Any) -> None:
        if connection.file is None or connection.file != _identity(named):
            raise InvalidatePoolError  # it would go on with a file that nobody else sees any more

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("begin immediate" if writes else "begin")

    return engine


def _followed(path: Path) -> Path:
    """Return what links lead to: SQLite keeps the log beside that."""
    return Path(os.path.realpath(path))


def _made(path: Path) -> None:
    """Make an empty file for a database that is not there yet."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = _files(path)[1]
        alone = log.exists()  # asked first: others may be making both
        if not path.exists():
            if alone:
                raise CatalogError(f"catalog ({path}) must lie beside its {log.name}; bring it back, or move both")
            path.touch()
    except OSError as fault:
        raise CatalogError(f"catalog ({path}) must lie in a writable directory: {fault.strerror}") from None


def _files(path: Path) -> tuple[Path, ...]:
    """Return what SQLite keeps of a database: the file, its log and the log's index."""
    return path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _is_read_only(path: Path) -> bool:
    """Return whether there is a file that may not be written; opening it to see would end the locks on it."""
    allowed = os.access(path, os.W_OK, effective_ids=_EFFECTIVE)
    return not allowed and path.exists() and not os.access(path, os.W_OK, effective_ids=_EFFECTIVE)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file lies at `path`; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _postgresql(place: URL) -> Engine:
    try:
        engine = create_engine(
            place,
            connect_args={"connect_timeout": int(PATIENCE_SECONDS), "tcp_user_timeout": 10_000},
            pool_timeout=PATIENCE_SECONDS,
            pool_pre_ping=True,  # a database that went away and came back is found again
        )
    except ModuleNotFoundError:
        raise ConfigurationError(
            "database (postgresql) must have its driver installed: pip install 'synthmap[postgres]'"
        ) from None

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        connection.autocommit = True  # or the first rollback would take the limits back
        for name, limit in _POSTGRESQL_LIMITS.items():
            connection.execute(f"set {name} = '{limit}'")
        connection.autocommit = False

    return engine


@contextmanager
def _answering() -> Iterator[None]:
    """Turn what a missing, broken or overloaded database causes into one error that names no address."""
    try:
        yield
    except DBAPIError as fault:
        kind = type(fault.orig).__name__  # such as OperationalError; its text may name a host or a user
        raise CatalogError(f"the catalog does not answer ({kind}); see that its database runs and try again") from None
    except (SQLAlchemyError, sqlite3.Error) as fault:
        raise CatalogError(f"the catalog does not answer ({type(fault).__name__}); try again") from None
