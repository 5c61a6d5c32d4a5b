"""Files of a release: its own as they are, and those made from it for other programs."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response

from synthmap.errors import NotFoundError, ReleaseCorruptError
from synthmap.published.exports import known, offered, place
from synthmap.published.exports.rows import count_rows
from synthmap.published.store import OpenedRelease
from synthmap.release.manifest import MANIFEST
from synthmap.service.access import reads
from synthmap.service.context import ReleaseDep, Service, ServiceDep
from synthmap.service.files import answer_file
from synthmap.service.formats import HTML, JSON, PARQUET, json_only
from synthmap.service.links import href, link
from synthmap.service.making import Making
from synthmap.service.problems import Problem

router = APIRouter(tags=["downloads"], dependencies=[Depends(reads)])

_PATIENCE = 0.8  # of the time that a request may take: then the answer says that the file is not ready yet
_KINDS = {".parquet": PARQUET, ".json": JSON, ".html": HTML}


@router.get("/releases/{release}/downloads", summary="Files of a release", dependencies=[Depends(json_only)])
def list_downloads(request: Request, opened: ReleaseDep, service: ServiceDep) -> dict[str, Any]:
    """Return the files that can be had: as published, made already, made on request, or made by a job.

    What a format cannot hold is not among them, such as an OMX matrix of more than 10,000 zones; asked for, it is
    refused with what to take instead.
    """
    by_job = count_rows(opened) > service.settings.export_rows_maximum
    directory = place(service.settings.exports_directory, opened)
    files = []
    for name, record in _own(opened).items():
        files.append(
            {
                "name": name,
                "title": "As published",
                "type": _KINDS[Path(name).suffix],
                "bytes": record[0],
                "sha256": record[1],
                "state": "ready",
                "href": _href(request, opened, name),
            }
        )
    for name, one in offered(opened).items():
        size = _size(directory / name)
        state = "ready" if size is not None else "by job" if by_job else "on request"
        files.append(
            {
                "name": name,
                "title": one.title,
                "format": one.family,
                "type": one.media_type,
                "bytes": size,
                "state": state,
                "href": _href(request, opened, name),
            }
        )
    return {
        "release": opened.id,
        "files": files,
        "links": [link(request, "self", JSON, "Files of this release", "releases", opened.id, "downloads")],
    }


@router.get(
    "/releases/{release}/downloads/{file:path}",
    summary="One file",
    response_class=FileResponse,
    responses={206: {"description": "Part of it"}, 304: {"description": "Not changed"}, 409: {"description": "By job"}},
)
async def download(request: Request, file: str, opened: ReleaseDep, service: ServiceDep) -> Response:
    """Return a file or a range of it; it is made first where that takes no longer than a reader waits."""
    own = _own(opened)
    if file in own:
        path, tag = opened.directory / file, own[file][1]
        if file != MANIFEST:
            await run_in_threadpool(opened.file, file)  # its hash is checked again if it was touched
        media_type = _KINDS[path.suffix]
        status = _status(path)
        if status is None:
            raise ReleaseCorruptError(f"release {opened.id}: file {file} cannot be read; publish it again")
    else:
        path = await _made(request, opened, service, file)
        status = _status(path)
        if status is None:
            raise Problem(503, "the file was taken away; ask again")
        media_type = known(opened)[file].media_type
        # made again it may differ in bytes, never in content; a range must not join two of them
        tag = sha256(f"{opened.etag}/{file}/{status.st_size}/{status.st_mtime_ns}".encode()).hexdigest()
    name = f"{opened.id}-{file.replace('/', '-')}"
    return answer_file(request, path, status, media_type=media_type, tag=tag, name=name)


def _own(opened: OpenedRelease) -> dict[str, tuple[int, str]]:
    """Return bytes and SHA-256 of the release's own files."""
    manifest = {MANIFEST: (_size(opened.directory / MANIFEST) or 0, opened.etag)}
    return manifest | {name: (record.bytes, record.sha256) for name, record in opened.manifest.files.items()}


def _href(request: Request, opened: OpenedRelease, name: str) -> str:
    return href(request, "releases", opened.id, "downloads", *name.split("/"))


def _status(path: Path) -> os.stat_result | None:
    """Return the state of a file; None where there is none."""
    try:
        return path.stat()
    except OSError:
        return None


def _size(path: Path) -> int | None:
    status = _status(path)
    return None if status is None else status.st_size


async def _made(request: Request, opened: OpenedRelease, service: Service, file: str) -> Path:
    """Return the path of a file that is made from the release, made now if need be."""
    if file not in known(opened):
        raise NotFoundError(f"file ({file}) must be one of those that /releases/{opened.id}/downloads lists")
    directory = place(service.settings.exports_directory, opened)
    if _status(directory / file) is None:
        rows = await run_in_threadpool(count_rows, opened)
        if rows > service.settings.export_rows_maximum:
            raise Problem(
                409,
                f"{file} is made by a job, since the release has {rows:,} rows: POST "
                f'{href(request, "processes", "export", "execution")} with {{"inputs": {{"release": "{opened.id}", '
                f'"formats": ["{file}"]}}}}, then ask again',
            )
        making: Making | None = getattr(request.app.state, "making", None)
        if making is None:
            making = request.app.state.making = Making()
        await making.make(opened, directory, file, _PATIENCE * service.settings.seconds_maximum)
    return directory / file
