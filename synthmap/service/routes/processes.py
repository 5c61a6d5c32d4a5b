"""OGC API – Processes: what curators can trigger, described for anyone, and the triggering."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from synthmap.catalog.datasets import find_dataset, list_datasets
from synthmap.catalog.inputs import PROCESSES, checked_inputs
from synthmap.catalog.jobs import submit
from synthmap.errors import NotFoundError, QueryError, ReleaseNotFoundError
from synthmap.published.exports import named
from synthmap.service.access import curates, key_of, reads
from synthmap.service.context import Service, ServiceDep
from synthmap.service.formats import JSON, json_only
from synthmap.service.job_status import StatusInfo, status_info
from synthmap.service.links import href, link
from synthmap.service.problems import Problem
from synthmap.service.process_descriptions import DESCRIBED, description, summary

router = APIRouter(tags=["processes"], dependencies=[Depends(json_only)])
NO_SUCH_PROCESS = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0/no-such-process"
EXECUTE = "http://www.opengis.net/def/rel/ogc/1.0/execute"


class Output(BaseModel):
    """How an output is wanted; there is one way."""

    model_config = ConfigDict(extra="forbid")

    transmissionMode: Literal["value"] = "value"  # noqa: N815 - the standard's word
    format: dict[str, Any] | None = None


class Execution(BaseModel):
    """What is asked of a process."""

    model_config = ConfigDict(extra="forbid")

    inputs: dict[str, Any] = Field(default={}, description="By name; see the description of the process.")
    outputs: dict[str, Output] = Field(default={}, description="Left out: all.")
    response: Literal["document"] = Field(default="document", description="Results are one JSON object by output.")


@router.get("/processes", summary="What curators can trigger", dependencies=[Depends(reads)])
def list_processes(
    request: Request,
    limit: Annotated[int, Query(ge=1)] = 100,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> dict[str, Any]:
    """Return the processes."""
    shown = list(DESCRIBED)[offset : offset + limit]
    links = [link(request, "self", JSON, "This list", "processes", limit=limit, offset=offset)]
    if offset + limit < len(DESCRIBED):
        links.append(link(request, "next", JSON, "More", "processes", limit=limit, offset=offset + limit))
    return {"processes": [summary(name) | {"links": [_self(request, name)]} for name in shown], "links": links}


@router.get("/processes/{process}", summary="One process, its inputs and its output", dependencies=[Depends(reads)])
def describe_process(request: Request, process: str) -> dict[str, Any]:
    """Return the description of a process; the schemas of its inputs are enough to make a form from."""
    _known(process)
    links = [_self(request, process), link(request, EXECUTE, JSON, "Execute it", "processes", process, "execution")]
    return description(process) | {"links": links}


@router.post(
    "/processes/{process}/execution",
    summary="Trigger a process",
    status_code=201,
    response_model_exclude_none=True,
    dependencies=[Depends(curates)],
    responses={409: {"description": "The Idempotency-Key was used for another request"}},
)
def execute(
    request: Request,
    response: Response,
    service: ServiceDep,
    process: str,
    execution: Execution,
    prefer: Annotated[str | None, Header(description="Jobs are asynchronous whatever is preferred.")] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            pattern=r"^[\x21-\x7e]+$",
            description="Any name of your own for this request. Sent again, it is the same job, not a second one.",
        ),
    ] = None,
) -> StatusInfo:
    """Return the accepted job; it is carried out by a worker. Without `Prefer: respond-async` too."""
    _known(process)
    output = DESCRIBED[process].output
    if unknown := set(execution.outputs) - {output}:
        raise QueryError(f"outputs ({', '.join(sorted(unknown))}) must be {output}")
    inputs = checked_inputs(process, {name: _inline(name, value) for name, value in execution.inputs.items()})
    _check_facts(service, inputs)
    key = key_of(request)
    job = submit(service.catalog, process, inputs, owner=None if key is None else key.id, once=idempotency_key)
    response.headers["Location"] = href(request, "jobs", job.id)
    response.headers["Cache-Control"] = "no-store"
    if prefer is not None and "respond-async" in prefer.lower():
        response.headers["Preference-Applied"] = "respond-async"
    return status_info(request, job)


@router.get("/datasets", summary="Datasets that can be released", dependencies=[Depends(curates)])
def datasets(request: Request, response: Response, service: ServiceDep) -> dict[str, Any]:
    """Return the public facts of the registered datasets: what the input `dataset` can be."""
    response.headers["Cache-Control"] = "no-store"
    return {
        "datasets": [
            {"id": one.id, "title": one.title, "segments": one.segments, "levels": one.levels, "vintage": one.vintage}
            for one in list_datasets(service.catalog)
        ],
        "links": [link(request, "self", JSON, "This list", "datasets")],
    }


def _self(request: Request, process: str) -> dict[str, str]:
    return link(request, "self", JSON, DESCRIBED[process].title, "processes", process)


def _known(process: str) -> None:
    """Refuse a process that there is not."""
    if process not in PROCESSES:
        raise Problem(404, f"process ({process}) must be one of {', '.join(PROCESSES)}", type_=NO_SUCH_PROCESS)


def _inline(name: str, value: Any) -> Any:
    """Return the value of an input that may be wrapped as ``{"value": …}``; a link is never followed."""
    if not isinstance(value, dict):
        return value
    if "href" in value:
        raise QueryError(f"input ({name}) must be given itself; links are not followed")
    return value["value"] if set(value) == {"value"} else value


def _check_facts(service: Service, inputs: dict[str, Any]) -> None:
    """Refuse inputs that name a dataset, a segment, a release or a format that there is not."""
    try:
        if "dataset" in inputs:
            known = find_dataset(service.catalog, inputs["dataset"]).segments
            asked = inputs.get("segments", [])
            columns = [f"{asked}0{i}" for i in (1, 2, 3)] if isinstance(asked, str) else asked
            if unknown := [name for name in columns if name not in known]:
                offered = ", ".join(known) or "left out: the dataset has none"
                raise QueryError(f"segments ({', '.join(unknown)}) must be among {offered}")
        if "release" in inputs:
            opened = service.releases.open(inputs["release"])
            named(opened, inputs.get("formats", []))
    except (NotFoundError, ReleaseNotFoundError) as fault:
        raise QueryError(str(fault)) from None
