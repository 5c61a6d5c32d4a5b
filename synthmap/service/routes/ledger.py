"""The ledger, as far as it is public: what was spent on each dataset, of which budget, for which release."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel

from synthmap.catalog.datasets import Dataset, find_dataset, list_datasets
from synthmap.catalog.ledger import read_account
from synthmap.catalog.ledger_view import LedgerSummary, summary
from synthmap.errors import LedgerError
from synthmap.service.access import reads
from synthmap.service.context import Service, ServiceDep
from synthmap.service.formats import JSON, json_only
from synthmap.service.links import link

router = APIRouter(tags=["ledger"], dependencies=[Depends(reads), Depends(json_only)])


class DamagedLedger(BaseModel):
    """A dataset whose ledger is not as it was written: no figure of it can be relied on, nothing is released."""

    dataset: str
    title: str
    damaged: str


class Ledger(BaseModel):
    """All datasets in the order of their ids."""

    datasets: list[LedgerSummary | DamagedLedger]
    links: list[dict[str, str]]


@router.get("/ledger", summary="What was spent on each dataset")
def ledger(
    request: Request,
    response: Response,
    service: ServiceDep,
    dataset: Annotated[str | None, Query(description="Only this dataset.")] = None,
) -> Ledger:
    """Return budget, what was spent and what is left of every dataset, with all entries of its ledger."""
    response.headers["Cache-Control"] = "no-store"
    known = list_datasets(service.catalog) if dataset is None else [find_dataset(service.catalog, dataset)]
    this = link(request, "self", JSON, "This document", "ledger", dataset=dataset)
    return Ledger(datasets=[_told(service, one) for one in known], links=[this])


def _told(service: Service, dataset: Dataset) -> LedgerSummary | DamagedLedger:
    try:
        return summary(read_account(service.catalog, dataset.id), dataset.title)
    except LedgerError as fault:
        return DamagedLedger(dataset=dataset.id, title=dataset.title, damaged=str(fault))
