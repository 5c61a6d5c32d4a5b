"""Registered datasets: public facts only. Where a dataset's spec lies is known to the worker alone."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select

from synthmap.catalog.database import Catalog
from synthmap.catalog.inputs import NAME
from synthmap.catalog.tables import DatasetRow
from synthmap.errors import NotFoundError, QueryError


@dataclass(frozen=True)
class Dataset:
    """What anybody may know of a dataset.

    Attributes
    ----------
    id, title : str
    segments : tuple of str
        Columns beside the total that its spec synthesises.
    levels : tuple of str
        Parent levels of its zones, coarsest first.
    vintage : str
        Of its zones.
    """

    id: str
    title: str
    segments: tuple[str, ...]
    levels: tuple[str, ...]
    vintage: str


def put_dataset(catalog: Catalog, dataset: Dataset) -> None:
    """Add a dataset, or replace what is known of it.

    Raises
    ------
    QueryError
        If its id cannot be the beginning of a release's id.
    """
    if not re.fullmatch(NAME, dataset.id):
        raise QueryError(f"dataset ({dataset.id}) must match {NAME}")
    row = DatasetRow(
        id=dataset.id,
        title=dataset.title,
        segments=list(dataset.segments),
        levels=list(dataset.levels),
        vintage=dataset.vintage,
        registered=datetime.now(UTC),
    )
    with catalog.write() as session:
        session.merge(row)


def list_datasets(catalog: Catalog) -> list[Dataset]:
    """Return all datasets in the order of their ids."""
    with catalog.read() as session:
        return sorted((_dataset(row) for row in session.scalars(select(DatasetRow))), key=lambda one: one.id)


def find_dataset(catalog: Catalog, id: str) -> Dataset:
    """Return the dataset called `id`.

    Raises
    ------
    NotFoundError
        If none was registered under that id.
    """
    with catalog.read() as session:
        row = session.get(DatasetRow, id) if re.fullmatch(NAME, id) else None
        if row is None:
            raise NotFoundError(f"dataset ({id}) must be one of the list")
        return _dataset(row)


def _dataset(row: DatasetRow) -> Dataset:
    return Dataset(row.id, row.title, tuple(row.segments), tuple(row.levels), row.vintage)
