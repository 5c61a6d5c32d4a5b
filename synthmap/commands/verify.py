"""``synthmap verify``: whether a release is whole, says the same everywhere, and has the noise that it states."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import AsJson, caution, show

app = typer.Typer()


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(metavar="RELEASE", help="Directory of a release, or its s3://…")],
    as_json: AsJson = False,
) -> None:
    """Check a release: hashes, sums, invariants, that it says the same everywhere; and certify its noise again."""
    from synthmap.mechanism.recertify import recertify
    from synthmap.release.remote_store import on_disk
    from synthmap.release.verify import verify as check

    with on_disk(path) as directory:
        found = check(directory)
        recertified = recertify(directory)
    show(
        {"verified": True, **asdict(found), "recertified": recertified},
        as_json,
        f"release {found.release} is whole: {found.files} files, {found.rows:,} rows, {found.workers:,} workers "
        f"at {found.destinations:,} destinations"
        + "".join(f"\n{one}" for one in caution(found.private, found.warning)),
    )
