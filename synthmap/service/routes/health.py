"""Liveness, readiness and counts, for whoever runs the service."""

from fastapi import APIRouter, Depends
from starlette.responses import Response

from synthmap.service.access import reads
from synthmap.service.context import ServiceDep
from synthmap.service.problems import Problem

router = APIRouter(tags=["operations"])


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, str]:
    """Return that the process answers; nothing else is looked at."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether store and catalog can be read")
def readyz(service: ServiceDep) -> dict[str, str]:
    """Return that the store and the catalog can be read and every release was opened once; 503 otherwise."""
    fault = service.readiness.fault()
    if fault is not None:
        raise Problem(503, fault)
    return {"status": "ready"}


@router.get(
    "/metrics",
    summary="Requests by route template, for Prometheus",
    dependencies=[Depends(reads)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def prometheus(service: ServiceDep) -> Response:
    """Return how many requests there were and how long they took, over all processes of the service."""
    text, media_type = service.meters.text()
    return Response(text, media_type=media_type)
