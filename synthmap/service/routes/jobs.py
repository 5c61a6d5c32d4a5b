"""OGC API – Processes: the jobs, for curators only: what was asked and what a job says is theirs."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from synthmap.catalog.jobs import Job, State, dismiss, find_job, list_jobs
from synthmap.errors import NotFoundError, QueryError, ReleaseNotFoundError
from synthmap.service.access import curates
from synthmap.service.context import Service, ServiceDep
from synthmap.service.formats import JSON, json_only
from synthmap.service.job_status import JobList, StatusInfo, status_info
from synthmap.service.links import href, link
from synthmap.service.problems import Problem
from synthmap.service.process_descriptions import DESCRIBED

_TYPES = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0"
_BATCH = 500
_LARGEST = 1_000


def unstored(response: Response) -> None:
    """Let no cache keep the answer: it changes, and it is the curator's."""
    response.headers["Cache-Control"] = "no-store"


router = APIRouter(tags=["jobs"], dependencies=[Depends(curates), Depends(unstored), Depends(json_only)])


@router.get("/jobs", summary="Jobs, newest first", response_model_exclude_none=True)
def jobs(
    request: Request,
    service: ServiceDep,
    kind: Annotated[
        list[Literal["process"]] | None, Query(alias="type", description="Every job is of a process.")
    ] = None,
    process: Annotated[list[str] | None, Query(alias="processID", description="Only jobs of these processes.")] = None,
    status: Annotated[list[State] | None, Query(description="Only jobs in these states.")] = None,
    made: Annotated[
        str | None,
        Query(alias="datetime", description="Made at this time or in this interval: RFC 3339, `..` for an open end."),
    ] = None,
    least: Annotated[int | None, Query(alias="minDuration", ge=0, description="Ran for so many seconds.")] = None,
    most: Annotated[int | None, Query(alias="maxDuration", ge=0, description="Ran for no more seconds.")] = None,
    limit: Annotated[int, Query(ge=1, description=f"Jobs of a page, {_LARGEST:,} at most.")] = 100,
    after: Annotated[str | None, Query(description="The last job of the page before.")] = None,
) -> JobList:
    """Return a page of jobs; none is shown twice or left out when others are made meanwhile."""
    first, last = _interval(made) if made is not None else (None, None)
    if unknown := sorted(set(process or ()) - set(DESCRIBED)):
        raise QueryError(f"processID ({', '.join(unknown)}) must be among {', '.join(DESCRIBED)}")

    def wanted(job: Job) -> bool:
        return (
            (not process or job.process in process)
            and (not status or job.state in status)
            and (first is None or job.created >= first)
            and (last is None or job.created <= last)
            and _lasted(job, least, most)
        )

    limit = min(limit, _LARGEST)
    found = list(itertools.islice(filter(wanted, _newest_first(service, after)), limit + 1))
    same = {"type": kind, "processID": process, "status": status, "datetime": made,
            "minDuration": least, "maxDuration": most, "limit": limit}  # fmt: skip
    links = [link(request, "self", JSON, "This page", "jobs", **same, after=after)]
    if len(found) > limit:
        links.append(link(request, "next", JSON, "Older jobs", "jobs", **same, after=found[limit - 1].id))
    return JobList(jobs=[status_info(request, job) for job in found[:limit]], links=links)


@router.get("/jobs/{job}", summary="How far a job is", response_model_exclude_none=True)
def job_status(request: Request, service: ServiceDep, job: str) -> StatusInfo:
    """Return the state of a job, its progress in per cent and what it is doing."""
    return status_info(request, _find(service, job))


@router.get("/jobs/{job}/results", summary="What a job made", responses={410: {"description": "It was dismissed"}})
def results(request: Request, service: ServiceDep, job: str) -> dict[str, Any]:
    """Return the output of a job as one JSON object; what it made is linked."""
    found = _find(service, job)
    if found.state in (State.ACCEPTED, State.RUNNING):
        detail = f"job ({found.id}) must be successful first; it is {found.state}"
        raise Problem(404, detail, type_=f"{_TYPES}/result-not-ready")
    if found.state is State.DISMISSED:
        raise Problem(410, f"job ({found.id}) was dismissed: {found.message}")
    if found.state is State.FAILED:
        raise Problem(409, f"job ({found.id}) failed: {found.message}")
    return {DESCRIBED[found.process].output: _made(request, service, found)}


@router.delete(
    "/jobs/{job}",
    summary="Dismiss a job",
    response_model_exclude_none=True,
    responses={
        202: {"description": "It runs and was told to stop", "model": StatusInfo},
        409: {"description": "It is finished"},
    },
)
def dismiss_job(request: Request, response: Response, service: ServiceDep, job: str) -> StatusInfo:
    """Return the dismissed job. One that runs is told to stop (202); it may publish before: its state will tell."""
    found = _find(service, job)
    if found.state is not State.DISMISSED:  # a repeated request is no fault
        found = dismiss(service.catalog, found.id)
    if found.state is not State.DISMISSED:
        response.status_code = 202
    return status_info(request, found)


def _find(service: Service, job: str) -> Job:
    try:
        return find_job(service.catalog, job)
    except NotFoundError as fault:
        raise Problem(404, str(fault), type_=f"{_TYPES}/no-such-job") from None


def _newest_first(service: Service, after: str | None) -> Iterator[Job]:
    """Yield the jobs made before the job `after`, or all."""
    try:
        while batch := list_jobs(service.catalog, limit=_BATCH, after=after):
            yield from batch
            after = batch[-1].id
    except NotFoundError:
        raise QueryError(f"after ({after}) must be the job of a link to the next page") from None


def _lasted(job: Job, least: int | None, most: int | None) -> bool:
    """Return whether a job ran, or has been running, for as long as asked; one that never started did not."""
    if least is None and most is None:
        return True
    if job.started is None:
        return False
    seconds = ((job.finished or datetime.now(UTC)) - job.started).total_seconds()
    return (least is None or seconds >= least) and (most is None or seconds <= most)


def _interval(text: str) -> tuple[datetime | None, datetime | None]:
    """Return the ends of a time or an interval; None where open.

    A time without a fraction of a second is the whole second.
    """
    ends = text.split("/")
    if len(ends) > 2 or ends == ["..", ".."] or ends == [".."]:
        raise QueryError(f"datetime ({text}) must be a time of RFC 3339, or two with / between, one of them may be ..")
    moments = [None if end in ("..", "") and len(ends) == 2 else _moment(end) for end in ends]
    last = moments[-1]
    if last is not None and last.microsecond == 0:
        last += timedelta(microseconds=999_999)
    return moments[0], last


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None else _refuse(text)
    except (ValueError, OverflowError):
        return _refuse(text)


def _refuse(text: str) -> datetime:
    raise QueryError(f"datetime ({text}) must be a time of RFC 3339 with its offset, such as 2026-01-31T12:00:00Z")


def _made(request: Request, service: Service, job: Job) -> Any:
    """Return the value of a successful job's output."""
    if job.process == "export":
        result = job.result or {}
        return [
            {"name": name, "href": href(request, "releases", result["release"], "downloads", name)}
            for name in result["files"]
        ]
    release = str(job.release)
    if job.process == "evaluate":
        there = link(request, "item", JSON, "Its measured errors", "releases", release, "metrics", "confidential")
        return {"release": release, "links": [there]}
    try:
        manifest = service.releases.open(release).manifest
    except ReleaseNotFoundError:
        raise Problem(410, f"release ({release}) was taken away after it was published") from None
    return {
        "id": release,
        "title": manifest.title,
        "private": manifest.private,
        "warning": manifest.warning,
        "epsilon": manifest.privacy.dp.epsilon,
        "delta": manifest.privacy.dp.delta,
        "workers": manifest.invariants.workers,
        "destinations": manifest.invariants.destinations,
        "links": [
            link(request, "item", JSON, "The release and its statement", "releases", release),
            link(request, "describedby", JSON, "Its manifest", "releases", release, "downloads", "manifest.json"),
            link(request, "related", JSON, "How far it can be trusted", "releases", release, "metrics"),
            link(request, "related", JSON, "Files to download", "releases", release, "downloads"),
        ],
    }
