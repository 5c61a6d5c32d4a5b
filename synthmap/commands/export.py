"""``synthmap export``: files of a release for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import AsJson, need_service, show

app = typer.Typer()


@app.command()
def export(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Directory of a release, or its s3://…")],
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write; the files lie in a folder named after the release.")
    ],
    wanted: Annotated[
        list[str],
        typer.Option(
            "--format",
            help="A format (csv, geoparquet, geopackage, flatgeobuf, pmtiles, shapefile, omx) or a file's name "
            "(matrix-county.omx); may be given several times.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Write a release as GeoPackage, FlatGeobuf, shapefile, CSV, OMX, …: what GIS and transport models open."""
    need_service()
    from synthmap.published.exports import export_all
    from synthmap.published.store import ReleaseStore
    from synthmap.release.remote_store import on_disk

    with on_disk(release) as path:
        found = ReleaseStore(path.parent).open(path.name)
        made = export_all(found, directory / found.id, wanted)  # never beside files of another release
    show({"files": [str(one) for one in made]}, as_json, "\n".join(map(str, made)))
