"""``synthmap compare``: how far two releases are from each other."""

from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import AsJson, show

app = typer.Typer()


@app.command()
def compare(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Directory of a release, or its s3://…")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="A release over the same zones, judged by the first.")],
    as_json: AsJson = False,
) -> None:
    """Measure how far a release is from another one: two years, two ε, two plans. Both are public, and so is this."""
    from synthmap.analysis.compare import compare as measured
    from synthmap.analysis.compare import report

    found = measured(release, other)
    show(found.to_json(), as_json, report(found))
