"""A job as OGC API – Processes tells it: statusInfo."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field, PlainSerializer

from synthmap.catalog.jobs import Job, State
from synthmap.service.formats import JSON
from synthmap.service.links import link

RESULTS = "http://www.opengis.net/def/rel/ogc/1.0/results"
Moment = Annotated[
    datetime,
    PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")),
    Field(json_schema_extra={"format": "date-time"}),
]


class StatusInfo(BaseModel):
    """A job: the members that the standard names, and its inputs."""

    processID: str  # noqa: N815
    type: Literal["process"]
    jobID: str  # noqa: N815
    status: State
    message: str
    progress: int = Field(ge=0, le=100)
    created: Moment
    started: Moment | None = None
    finished: Moment | None = None
    updated: Moment
    inputs: dict[str, Any]
    links: list[dict[str, str]]


class JobList(BaseModel):
    """A page of jobs."""

    jobs: list[StatusInfo]
    links: list[dict[str, str]]


def status_info(request: Request, job: Job) -> StatusInfo:
    """Return a job as statusInfo."""
    links = [link(request, "self", JSON, "This job", "jobs", job.id)]
    if job.state is State.SUCCESSFUL:
        links.append(link(request, RESULTS, JSON, "What it made", "jobs", job.id, "results"))
    stage = f"{job.stage}: " if job.state is State.RUNNING and job.stage else ""
    return StatusInfo(
        processID=job.process,
        type="process",
        jobID=job.id,
        status=job.state,
        message=stage + job.message,
        progress=job.percent,
        created=job.created,
        started=job.started,
        finished=job.finished,
        updated=job.updated,
        inputs=job.inputs,
        links=links,
    )
