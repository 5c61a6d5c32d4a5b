"""``synthmap statement``: what a release promises, in words, as a page or as a record."""

import json
from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import AsJson
from synthmap.errors import ConfigurationError

app = typer.Typer()


@app.command()
def statement(
    release: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", show_default=False, help="Directory of a release, or its s3://…")
    ] = None,
    as_html: Annotated[bool, typer.Option("--html", help="Print the page.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of statements instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the privacy statement of a release: what is promised, what an attacker could infer, what is prior."""
    from synthmap.release.remote_store import on_disk
    from synthmap.release.statement import read_statement, text
    from synthmap.release.statement import schema as schema_of

    if schema != (release is None) or as_html + as_json + schema > 1:
        raise ConfigurationError("one RELEASE, with --html or --json or neither, or --schema alone must be given")
    if release is None:
        typer.echo(json.dumps(schema_of(), indent=2))
        return
    with on_disk(release) as directory:
        found = read_statement(directory)
    if as_html:
        from synthmap.release.statement_files import page

        typer.echo(page(found), nl=False)
    else:
        typer.echo(found.model_dump_json() if as_json else text(found))
