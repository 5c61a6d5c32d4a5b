"""``synthmap datasets``: which datasets the service may ask the worker to release."""

from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import STORE, AsJson, Database, Store, need_service, opened, show

app = typer.Typer(no_args_is_help=True, help="Datasets that the service offers to release: register, list.")
Registry = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="SYNTHMAP_CONFIDENTIAL_REGISTRY",
        show_default=False,
        help="TOML file that only the worker reads [synthmap/registry.toml among your settings].",
    ),
]


@app.command()
def add(
    id: Annotated[str, typer.Argument(metavar="ID", help="What the service calls it: a–z, 0–9, . _ -")],
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML spec.")],
    registry: Registry = None,
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Register a spec. Where it lies stays with the worker; the catalog gets public facts only.

    Its tables are read once, so that no two datasets hold the same jobs.
    """
    need_service()
    from pipelines.registry import register
    from pipelines.settings import worker_settings
    from synthmap.catalog.datasets import put_dataset

    place = worker_settings(registry=registry).registry
    with opened(store, database) as catalog:
        found = register(place, id, spec)
        put_dataset(catalog, found)
    values = {
        "id": found.id,
        "title": found.title,
        "segments": list(found.segments),
        "levels": list(found.levels),
        "vintage": found.vintage,
        "registry": str(place),
    }
    show(values, as_json, f"dataset {found.id} ({found.title}) is registered in {place}")


@app.command("list")
def list_(store: Store = STORE, database: Database = "", as_json: AsJson = False) -> None:
    """List what the service may know of the registered datasets."""
    with opened(store, database) as catalog:
        from synthmap.catalog.datasets import list_datasets

        found = list_datasets(catalog)
    datasets = [
        {
            "id": one.id,
            "title": one.title,
            "segments": list(one.segments),
            "levels": list(one.levels),
            "vintage": one.vintage,
        }
        for one in found
    ]
    show({"datasets": datasets}, as_json, "\n".join(f"{one.id}  {one.title}" for one in found) or "no datasets")
