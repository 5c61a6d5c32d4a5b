"""``synthmap serve`` and ``synthmap worker``: the two long-running programs."""

from collections.abc import Mapping
from typing import Annotated

import typer

from synthmap.commands.datasets import Registry
from synthmap.commands.shared import STORE, AsJson, Database, Scheduler, Store, catalog_url, need_service, show

app = typer.Typer()


@app.command()
def worker(
    store: Store = STORE,
    database: Database = "",
    registry: Registry = None,
    scheduler: Scheduler = "auto",
    once: Annotated[bool, typer.Option("--once", help="End when no job is left.")] = False,
    as_json: AsJson = False,
) -> None:
    """Carry out the jobs of the service: releases, evaluations, exports. Reads confidential tables."""
    url = catalog_url(store, database)
    from pipelines.settings import worker_settings
    from pipelines.worker import Worker

    busy = Worker(url, store, scheduler, worker_settings(registry=registry))
    busy.run(once=once)
    values = ended(busy.ended)
    show(values, as_json, ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in values.items()))


def ended(jobs: Mapping[str, int]) -> dict[str, int]:
    """Return how many jobs ended how, of counts by their state."""
    names = {"successful": "successful", "failed": "failed", "dismissed": "dismissed", "accepted": "given_back"}
    return {name: jobs.get(state, 0) for state, name in names.items()}


@app.command()
def serve(
    store: Store = STORE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0: a free one.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    database: Database = "",
    root_path: Annotated[str, typer.Option(help="Path prefix that a proxy takes away.")] = "",
) -> None:
    """Serve published releases over HTTP. Never reads confidential tables."""
    need_service()
    from synthmap.service.serve import serve as run

    run(store=store, host=host, port=port, workers=workers, database=database, root_path=root_path)
