"""What commands share: options, one way to print, the catalog they work on."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthmap.errors import ConfigurationError

if TYPE_CHECKING:
    from synthmap.catalog.database import Catalog

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Scheduler = Annotated[
    str,
    typer.Option(
        help="threads, processes, auto (threads on up to 4 cores, else processes), or the address of a Dask scheduler "
        "(tls://…)."
    ),
]
Store = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        envvar=["SYNTHMAP_SERVICE_STORE", "SYNTHMAP_CONFIDENTIAL_STORE"],
        help="Directory of the releases.",
    ),
]
Database = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=["SYNTHMAP_SERVICE_DATABASE", "SYNTHMAP_CONFIDENTIAL_DATABASE"],
        show_default=False,
        help="The catalog, such as postgresql://user@host/database [a SQLite file in the store].",
    ),
]
STORE = Path("releases")


def literal(app: typer.Typer) -> Any:
    """Return the command that `app` makes, its help shown as written: markup would swallow what stands in brackets."""
    command: Any = typer.main.get_command(app)
    if command.rich_markup_mode == "rich":  # else nothing is swallowed
        from rich.markup import escape

        waiting: list[Any] = [command]
        for one in waiting:
            waiting += getattr(one, "commands", {}).values()
            for told in (one, *one.params):
                told.help = told.help and escape(told.help)
    return command


def show(values: dict[str, Any], as_json: bool, text: str) -> None:
    """Print `values` as JSON, or `text`."""
    typer.echo(json.dumps(values, ensure_ascii=False, allow_nan=False) if as_json else text)


def caution(private: bool, warning: str | None) -> list[str]:
    """Return what a reader of a release must know first: one line, or none."""
    return [] if private and warning is None else [f"{'warning' if private else 'NOT PRIVATE'}: {warning}"]


def need_service() -> None:
    """Refuse in one line where the libraries of the service are not installed.

    Raises
    ------
    ConfigurationError
        If one is missing.
    """
    missing = [
        name for name in ("alembic", "pydantic_settings", "sqlalchemy") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise ConfigurationError(
            f"this command must have {', '.join(missing)} installed: pip install 'synthmap[service]'"
        )


def catalog_url(store: Path, database: str) -> str:
    """Return the URL of the catalog to use.

    Raises
    ------
    ConfigurationError
        If the store is in an object store: a catalog and those who share a store need a disk.
    """
    from synthmap.remote import is_remote, shown

    if is_remote(store):
        raise ConfigurationError(f"store ({shown(store)}) must be a directory where jobs, keys or budgets are kept")
    need_service()
    from synthmap.catalog.database import default_url

    return database or default_url(store)


@contextmanager
def opened(store: Path, database: str) -> Iterator["Catalog"]:
    """Yield the catalog of a store, or the one at a URL."""
    url = catalog_url(store, database)
    from synthmap.catalog.database import open_catalog

    catalog = open_catalog(url)
    try:
        yield catalog
    finally:
        catalog.close()


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback that draws progress bars on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        known: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in known:
                known[stage] = bars.add_task(stage, total=total)
            bars.update(known[stage], completed=done, total=total)

        yield show
