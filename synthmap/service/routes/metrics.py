"""How far a release can be trusted: for anyone from public files, for curators also what the worker measured."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NoReturn

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import JSONResponse

from synthmap import __version__
from synthmap.published.measured import Measured, measured_rows, read_measured
from synthmap.published.utility import destination_utility, release_utility
from synthmap.published.utility_report import DestinationUtility, ReleaseUtility, utility_rows
from synthmap.service.access import curates, reads
from synthmap.service.caching import kept, not_modified
from synthmap.service.context import ReleaseDep, ServiceDep
from synthmap.service.formats import CSV, JSON, json_only, negotiate
from synthmap.service.problems import Problem

router = APIRouter(tags=["metrics"])
_OFFERED = {"json": JSON, "csv": CSV}
_SECRET = {"Cache-Control": "no-store"}


@router.get(
    "/releases/{release}/metrics",
    summary="How far a release can be trusted",
    dependencies=[Depends(reads)],
    response_model=ReleaseUtility | DestinationUtility,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def metrics(
    request: Request,
    response: Response,
    opened: ReleaseDep,
    destination: Annotated[
        str | None, Query(description="Id of a destination (text, leading zeros matter); left out: the whole release.")
    ] = None,
) -> ReleaseUtility | DestinationUtility | Response:
    """Return what the release's public files tell about its errors; nothing confidential is looked at."""
    form = negotiate(request, _OFFERED)
    headers = kept(request, sha256(f"{opened.etag} {__version__} {form} {destination}".encode()).hexdigest())
    if has := not_modified(request, headers):
        return has
    found = release_utility(opened) if destination is None else destination_utility(opened, destination)
    if form == "csv":
        return Response(utility_rows(found).write_csv(), media_type=CSV, headers=headers)
    response.headers.update(headers)
    return found


@router.get(
    "/releases/{release}/metrics/published",
    summary="The errors of a release, measured with differential privacy",
    dependencies=[Depends(reads)],
    response_model=Measured,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def published_metrics(request: Request, opened: ReleaseDep) -> Response:
    """Return what `synthmap metrics publish` measured: commute lengths and their errors, with noise and intervals.

    What it cost is in the ledger.
    """
    form = negotiate(request, _OFFERED)
    found = read_measured(opened.directory.parent, opened.id, opened.etag)
    if found is None:
        raise Problem(404, f"metrics of release ({opened.id}) must be published first: synthmap metrics publish")
    headers = kept(request, sha256(f"{opened.etag} {found.sha256} {__version__} {form}".encode()).hexdigest())
    if has := not_modified(request, headers):
        return has
    if form == "csv":
        return Response(measured_rows(found).write_csv(), media_type=CSV, headers=headers)
    return JSONResponse(found.model_dump(mode="json"), headers=headers)


@router.get(
    "/releases/{release}/metrics/confidential",
    summary="The errors of a release, measured against the confidential table",
    dependencies=[Depends(curates), Depends(json_only)],
)
def confidential_metrics(service: ServiceDep, release: str) -> Response:
    """Return what the process `evaluate` found. It is as confidential as the table and kept by nobody on the way."""
    opened = service.releases.open(release)
    path = service.settings.metrics_directory / f"{opened.id}.json"
    return JSONResponse(_measured(path, opened.id), headers=_SECRET)


def _measured(path: Path, release: str) -> dict[str, Any]:
    """Return the file of the worker.

    Raises
    ------
    Problem
        404 if there is none, 503 if it is not whole.
    """
    try:
        found = json.loads(path.read_bytes(), parse_constant=_refuse)
    except FileNotFoundError:
        detail = f"metrics of release ({release}) must be measured first: execute the process evaluate"
        raise Problem(404, detail, _SECRET) from None
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("release") != release:
        raise Problem(503, f"the metrics of release {release} are damaged; execute the process evaluate again", _SECRET)
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
