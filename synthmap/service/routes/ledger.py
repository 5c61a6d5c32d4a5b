"""The ledger, as far as it is public: what was spent on each dataset, of which budget, for which release."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel

from synthmap.catalog.datasets import Dataset, find_dataset, list_datasets
from synthmap.catalog.ledger import read_account
from synthmap.catalog.ledger_view import LedgerEntry, LedgerSummary, summary
from synthmap.errors import LedgerError
from synthmap.published.measured import is_published
from synthmap.service.access import is_curator, reads
from synthmap.service.context import Service, ServiceDep
from synthmap.service.formats import JSON, json_only
from synthmap.service.links import link

router = APIRouter(tags=["ledger"], dependencies=[Depends(reads), Depends(json_only)])


class DamagedLedger(BaseModel):
    """A dataset whose ledger is not as it was written: no figure of it can be relied on, nothing is released."""

    dataset: str
    title: str
    damaged: str


UNPUBLISHED = "(not published)"


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
    """Return budget, what was spent and what is left of every dataset, with all entries of its ledger.

    Who is no curator learns the name of a release when it is published, not when it is paid for.
    """
    response.headers["Cache-Control"] = "no-store"
    known = list_datasets(service.catalog) if dataset is None else [find_dataset(service.catalog, dataset)]
    published = None if is_curator(request) else set(service.releases.ids())
    this = link(request, "self", JSON, "This document", "ledger", dataset=dataset)
    return Ledger(datasets=[_told(service, one, published) for one in known], links=[this])


def _told(service: Service, dataset: Dataset, published: set[str] | None) -> LedgerSummary | DamagedLedger:
    try:
        found = summary(read_account(service.catalog, dataset.id), dataset.title)
        return (
            found
            if published is None
            else replace(found, entries=[_public(service, one, published) for one in found.entries])
        )
    except LedgerError as fault:
        return DamagedLedger(dataset=dataset.id, title=dataset.title, damaged=str(fault))


def _public(service: Service, entry: LedgerEntry, published: set[str]) -> LedgerEntry:
    """Return an entry without the name of what is not published."""
    known = not entry.name or entry.name in published or is_published(service.settings.store, entry.name)
    return entry if known else replace(entry, name=UNPUBLISHED)
