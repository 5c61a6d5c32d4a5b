"""The tables' version: made and brought up to date by the migrations in this package."""

import sqlite3
import time
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from synthmap.errors import CatalogError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

HEAD = "0002"  # of the migrations in this package
_LOCK = 5_713_046_221_907  # any number that no other program takes for its advisory locks in the same database
_ATTEMPTS = 100


def upgrade(engine: Engine) -> None:
    """Bring the tables in the database of `engine` up to date; safe when several processes do it at once.

    Parameters
    ----------
    engine : Engine
        One whose transactions are those of a writer.

    Raises
    ------
    CatalogError
        If a newer synthmap made them.
    """
    if engine.dialect.name == "sqlite":
        _keep_a_log_for_readers(engine)
    if _found(engine) == [HEAD]:
        return  # Alembic takes half a second to load, in every process
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "synthmap.catalog:migrations")
    with engine.begin() as connection:  # SQLite: BEGIN IMMEDIATE, so one process at a time comes in here
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"select pg_advisory_xact_lock({_LOCK})"))
        if _is_old(connection, ScriptDirectory.from_config(config)):
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _found(engine: Engine) -> list[str]:
    """Return the versions that the tables say they have; none where there are no tables."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return []
        return list(connection.scalars(text("select version_num from alembic_version")))


def _is_old(connection: Connection, known: "ScriptDirectory") -> bool:
    """Return whether migrations are to be run; raise if a newer program ran its own."""
    from alembic.runtime.migration import MigrationContext

    (found,) = MigrationContext.configure(connection).get_current_heads() or (None,)
    if found is not None and found not in {script.revision for script in known.walk_revisions()}:
        raise CatalogError(
            f"catalog of version ({found}) must not be newer than this synthmap; use the version that made it"
        )
    return found != known.get_current_head()


def _keep_a_log_for_readers(engine: Engine) -> None:
    """Put a SQLite file into WAL mode, in which readers and a writer do not wait for each other.

    SQLite does not wait for locks here, so this does: another process may be doing the same.
    """
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        for attempt in range(_ATTEMPTS):
            try:
                cursor.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as fault:
                if attempt == _ATTEMPTS - 1 or "locked" not in str(fault):
                    raise
                time.sleep(0.05)
    finally:
        connection.close()
