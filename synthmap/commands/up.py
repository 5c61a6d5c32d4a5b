"""``synthmap up``: the demo release over HTTP with a worker beside it, to look at and try out."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import need_service, opened
from synthmap.errors import ConfigurationError
from synthmap.privacy.shown import shown_budget

app = typer.Typer()
KEY = "synthmap up"
SERVICE, WORKER = "SYNTHMAP_SERVICE_", "SYNTHMAP_CONFIDENTIAL_"
BUDGET = 40.0, 1e-4


@app.command()
def up(
    directory: Annotated[Path, typer.Option(metavar="DIR", help="What `synthmap demo` made.")] = Path("demo"),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")] = 8080,
) -> None:
    """Serve the demo's releases and run a worker, as two programs, until Ctrl-C. Prints a curator's key.

    The made-up dataset gets a budget for some releases; the ledger stops the worker when it is spent.
    """
    need_service()
    from pipelines.registry import register
    from synthmap.catalog.datasets import put_dataset
    from synthmap.catalog.keys import Role, add_key, list_keys, revoke_key
    from synthmap.catalog.ledger import read_account, set_budget

    store, spec, registry = directory / "releases", directory / "region" / "spec.toml", directory / "registry.toml"
    if not spec.exists() or not store.is_dir():
        raise ConfigurationError(f"directory ({directory}) must be one that `synthmap demo` made; run that first")
    with opened(store, "") as catalog:
        put_dataset(catalog, register(registry, "demo", spec))
        account = read_account(catalog, "demo")
        if account.budget is None:
            account = set_budget(catalog, "demo", *BUDGET)
        for key in list_keys(catalog):
            if key.name == KEY and key.revoked is None:
                revoke_key(catalog, key.id)
        secret = add_key(catalog, KEY, Role.CURATOR)
    left = f"ε = {shown_budget(account.left[0])}, δ = {shown_budget(account.left[1])}"
    typer.echo(
        f"http://{host}:{port}/  anyone may read\ncurator's key, shown once: {secret}\n"
        f"  curl -X POST http://{host}:{port}/processes/release/execution -H 'Authorization: Bearer {secret}' \\\n"
        "       -H 'Content-Type: application/json' -H 'Prefer: respond-async' \\\n"
        '       -d \'{"inputs": {"dataset": "demo", "epsilon": 2.0}}\'\n'
        f"left of the made-up dataset's budget: {left}, see http://{host}:{port}/ledger\nCtrl-C ends both."
    )
    programs = [
        _started(["serve", "--store", store, "--host", host, "--port", port], WORKER),
        _started(["worker", "--store", store, "--registry", registry], SERVICE),
    ]
    try:
        while all(program.poll() is None for program in programs):
            time.sleep(0.2)
    finally:
        for program in programs:
            program.send_signal(signal.SIGTERM)
        for program in programs:
            program.wait()
    raise ConfigurationError("the service or the worker ended; see what it printed above")


def _started(arguments: list[object], hidden: str) -> subprocess.Popen[bytes]:
    """Return a command of synthmap as a program of its own that sees no setting of the other's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    line = [sys.executable, "-c", "from synthmap.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, start_new_session=True)  # noqa: S603
