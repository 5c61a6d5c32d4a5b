"""The catalog's database: made from nothing, by several at once, refused when newer, quiet about its address."""

import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from synthmap.catalog.database import Catalog, default_url, open_catalog
from synthmap.catalog.jobs import list_jobs, submit
from synthmap.catalog.schema import HEAD
from synthmap.catalog.tables import Base
from synthmap.errors import CatalogError, ConfigurationError

TABLES = {"alembic_version", "jobs", "keys", "datasets"}


def test_migrations_make_the_tables_of_the_models(catalog):
    assert set(inspect(catalog.engine).get_table_names()) >= TABLES
    with catalog.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    assert catalog.answers()


def test_a_catalog_of_this_version_is_opened_without_alembic(catalog, database):
    with catalog.engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == HEAD
    code = f"import sys; from synthmap.catalog.database import open_catalog; open_catalog({database!r})"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'alembic' not in sys.modules"], check=True)


def test_opening_again_keeps_everything(catalog, database):
    job = submit(catalog, "export", {"release": "r", "formats": ["csv"]})
    again = open_catalog(database)
    assert [one.id for one in list_jobs(again, limit=5)] == [job.id]
    again.close()


OPEN_AND_WRITE = """
import sys
from synthmap.catalog.database import open_catalog
from synthmap.catalog.jobs import submit
sys.stdin.readline()
catalog = open_catalog(sys.argv[1])
for _ in range(20):
    submit(catalog, "export", {"release": "r", "formats": ["csv"]})
"""


def test_several_processes_open_an_empty_database_at_once_and_write(database):
    line = [sys.executable, "-c", OPEN_AND_WRITE, database]
    started = [subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in started:
        process.stdin.write(b"\n")
        process.stdin.flush()
    told = [process.communicate()[1].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0], told
    catalog = open_catalog(database)
    assert len(list_jobs(catalog, limit=1000)) == 80
    catalog.close()


def test_a_newer_catalog_is_refused(catalog, database):
    with catalog.write() as session:
        session.execute(text("update alembic_version set version_num = '9999'"))
    with pytest.raises(CatalogError, match=r"\(9999\) must not be newer"):
        open_catalog(database)


def test_a_migration_that_fails_leaves_nothing(database):
    engine = create_engine(database)
    with engine.begin() as connection:
        connection.execute(text("create table datasets (theirs integer)"))
    with pytest.raises(CatalogError, match="does not answer"):
        open_catalog(database)
    assert set(inspect(engine).get_table_names()) <= {"datasets", "alembic_version"}
    engine.dispose()


def test_what_fails_in_a_block_is_undone(catalog):
    with pytest.raises(ZeroDivisionError), catalog.write() as session:
        session.execute(text("delete from alembic_version"))
        raise ZeroDivisionError
    assert catalog.answers()


def test_a_sqlite_file_gets_a_private_directory_whatever_it_is_called(tmp_path):
    store = tmp_path / "a b?c#d%20é"
    catalog = open_catalog(default_url(store))
    assert stat.S_IMODE((store / ".catalog").stat().st_mode) == 0o700
    assert (store / ".catalog" / "catalog.sqlite").exists()
    with catalog.engine.connect() as connection:
        assert connection.execute(text("pragma journal_mode")).scalar() == "wal"
        assert connection.execute(text("pragma foreign_keys")).scalar() == 1
        assert connection.execute(text("pragma synchronous")).scalar() == 2
    catalog.close()


def test_readers_of_sqlite_do_not_wait_for_a_writer(tmp_path):
    catalog = open_catalog(f"sqlite:///{tmp_path / 'c.sqlite'}")
    with catalog.write() as session:
        session.execute(text("delete from keys"))
        assert catalog.answers()
        assert list_jobs(catalog, limit=1) == []
    catalog.close()


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"no database" * 100), lambda path: path.mkdir()])
def test_a_file_that_is_no_database_is_one_clear_error(tmp_path, make):
    make(tmp_path / "c.sqlite")
    with pytest.raises(CatalogError, match="does not answer"):
        open_catalog(f"sqlite:///{tmp_path / 'c.sqlite'}")


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CatalogError, match="writable directory"):
        open_catalog(f"sqlite:///{tmp_path / 'file' / 'c.sqlite'}")


@pytest.mark.parametrize(
    "url",
    ["", "releases", "sqlite://", "sqlite:///:memory:", "sqlite:///c?mode=memory&uri=true", "mysql://me:hush@there/x",
     "postgresql+psycopg2://me:hush@there/x", "://", "postgresql://me:hush@there:port/x"],
)  # fmt: skip
def test_other_urls_are_refused_without_their_password(url):
    with pytest.raises(ConfigurationError, match="must be sqlite:///FILE or postgresql://") as caught:
        open_catalog(url)
    assert "hush" not in str(caught.value)


def test_a_server_that_is_not_there_is_one_clear_error_without_its_address():
    with pytest.raises(CatalogError) as caught:
        open_catalog("postgresql://somebody:hush@127.0.0.1:1/secretname")
    assert str(caught.value).startswith("the catalog does not answer")
    assert not {"hush", "somebody", "secretname", "127.0.0.1"} & set(str(caught.value).replace(":", " ").split())


def test_a_server_that_never_says_a_word_does_not_hold_up_the_question(monkeypatch):
    monkeypatch.setattr("synthmap.catalog.database.PATIENCE_SECONDS", 0.2)
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"postgresql+psycopg://me@127.0.0.1:{mute.getsockname()[1]}/x"
        catalog = Catalog(create_engine(address, connect_args={"connect_timeout": 2}))
        found = []
        asking = threading.Thread(target=lambda: found.extend(catalog.answers() for _ in range(3)), daemon=True)
        asking.start()
        asking.join(60)
        assert found == [False, False, False]
        alive = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("catalog")]
        assert len(alive) <= 1
    for thread in alive:
        thread.join(60)
    catalog.close()


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_that_is_away_is_neither_made_anew_nor_robbed_of_its_log(tmp_path, linked):
    path, url = tmp_path / "c.sqlite", f"sqlite:///{tmp_path / ('link' if linked else 'c.sqlite')}"
    (tmp_path / "link").symlink_to(path)
    catalog, other = open_catalog(url), open_catalog(url)
    job = submit(catalog, "export", {"release": "r", "formats": ["csv"]})
    assert path.with_name("c.sqlite-wal").stat().st_size > 0  # where the job lies, and not yet in the file
    path.rename(tmp_path / "away")
    assert not catalog.answers()
    for ask in (lambda: list_jobs(other, limit=1), lambda: submit(other, "export", job.inputs)):
        with pytest.raises(CatalogError, match="does not answer"):
            ask()
    with pytest.raises(CatalogError, match=r"c\.sqlite\) must lie beside its c\.sqlite-wal"):
        open_catalog(url)
    assert not path.exists()
    (tmp_path / "away").rename(path)
    assert catalog.answers()
    assert [list_jobs(one, limit=5) for one in (catalog, other)] == [[job], [job]]
    catalog.close()
    other.close()


def test_a_file_that_was_put_in_the_place_of_another_is_the_one_that_is_asked(tmp_path):
    path, url = tmp_path / "c.sqlite", f"sqlite:///{tmp_path / 'c.sqlite'}"
    first = open_catalog(url)
    job = submit(first, "export", {"release": "r", "formats": ["csv"]})
    first.close()
    (tmp_path / "kept").write_bytes(path.read_bytes())
    catalog = open_catalog(url)
    assert list_jobs(catalog, limit=5) == [job]
    with catalog.write() as session:
        session.execute(text("delete from jobs"))
    for left in tmp_path.glob("c.sqlite-*"):
        left.unlink()
    (tmp_path / "kept").rename(path)
    assert list_jobs(catalog, limit=5) == [job]
    catalog.close()


def test_a_connection_that_was_cut_is_made_anew(postgresql):
    import postgres

    with postgres.database(postgresql) as url:
        catalog = open_catalog(url)
        with catalog.read() as session:
            mine = session.execute(text("select pg_backend_pid()")).scalar()
        other = create_engine(url, isolation_level="AUTOCOMMIT")
        with other.connect() as connection:
            connection.execute(text(f"select pg_terminate_backend({mine})"))
        other.dispose()
        assert list_jobs(catalog, limit=1) == []
        with catalog.read() as session:
            assert session.execute(text("show statement_timeout")).scalar() == "30s"
        catalog.close()


def test_the_migrations_are_part_of_the_package():
    import synthmap.catalog.migrations as package

    assert any((Path(package.__path__[0]) / "versions").glob("v0001*.py"))
