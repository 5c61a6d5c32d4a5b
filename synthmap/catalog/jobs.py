"""Jobs as the service sees them: submitted, looked at, listed, dismissed. Everything in a `Job` is public."""

import re
import secrets
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from synthmap.catalog.database import Catalog
from synthmap.catalog.datasets import find_dataset
from synthmap.catalog.inputs import PROCESSES, checked_inputs
from synthmap.catalog.tables import JobRow
from synthmap.errors import JobFinishedError, NotFoundError, QueryError, RepeatedError
from synthmap.release.store import new_release_id

KEPT = 1000  # jobs that are never forgotten: the newest
_ID = re.compile(r"[0-9a-f]{32}")


class State(StrEnum):
    """Where a job is in its life; the last three are final."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    DISMISSED = "dismissed"


FINAL = (State.SUCCESSFUL, State.FAILED, State.DISMISSED)


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes
    ----------
    id : str
        32 hexadecimal digits nobody can guess.
    process : str
        One of `PROCESSES`.
    inputs : dict
        As submitted, without what was left out.
    state : State
    stage : str
        What it is doing; ``publish`` once it was allowed to publish.
    percent : int
        0 to 100.
    message : str
        For the public.
    release : str or None
        The id that a job of process ``release`` publishes under, fixed when it was submitted: a job that is taken up
        again makes the same release.
    result : dict or None
        What it made, once it is successful.
    created, updated : datetime
    started, finished : datetime or None
    owner : str or None
        Id of the key it was submitted with.
    """

    id: str
    process: str
    inputs: dict[str, Any]
    state: State
    stage: str
    percent: int
    message: str
    release: str | None
    result: dict[str, Any] | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    updated: datetime
    owner: str | None


def submit(
    catalog: Catalog, process: str, inputs: dict[str, Any], *, owner: str | None = None, once: str | None = None
) -> Job:
    """Return the accepted job; a worker takes it up.

    Parameters
    ----------
    once : str, optional
        The owner's name for this request. Sent again under it, it is the same job: a retry never spends twice.

    Raises
    ------
    NotFoundError
        If there is no such process or dataset.
    QueryError
        If the inputs break a rule.
    RepeatedError
        If the owner asked for something else under the name `once`.
    """
    inputs = checked_inputs(process, inputs)
    if "dataset" in inputs:
        find_dataset(catalog, inputs["dataset"])
    release = inputs.get("release")
    if process == "release":
        release = new_release_id(inputs.get("name") or inputs["dataset"])
    row = JobRow(
        id=secrets.token_hex(16),
        process=process,
        inputs=inputs,
        owner=owner,
        once=None if once is None else sha256(f"{owner or ''}\0{once}".encode()).hexdigest(),
        state=State.ACCEPTED,
        stage="",
        percent=0,
        message="waits for a worker",
        release=release,
        result=None,
        created=now(),
        started=None,
        finished=None,
        updated=now(),
        attempt=0,
        beat=0,
        lease_seconds=0.0,
        lost=0,
        stop=False,
    )
    with catalog.write() as session:
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            found = session.scalar(select(JobRow).where(JobRow.once == row.once))
            if row.once is None or found is None:
                raise
            if (found.process, found.inputs) != (process, inputs):
                raise RepeatedError("a request must keep its name for itself; this name was used for another") from None
            return job_of(found)
        return job_of(row)


def find_job(catalog: Catalog, id: str) -> Job:
    """Return the job called `id`.

    Raises
    ------
    NotFoundError
        If there is none.
    """
    with catalog.read() as session:
        return job_of(_row(session, id))


def list_jobs(
    catalog: Catalog, *, process: str | None = None, state: str | None = None, limit: int, after: str | None = None
) -> list[Job]:
    """Return at most `limit` jobs, newest first, those before the job `after` (the last one of a page) if given.

    Raises
    ------
    QueryError
        If there is no such process or state.
    NotFoundError
        If there is no job `after`.
    """
    if process is not None and process not in PROCESSES:
        raise QueryError(f"process ({process}) must be one of {', '.join(PROCESSES)}")
    if state is not None and state not in list(State):
        raise QueryError(f"state ({state}) must be one of {', '.join(State)}")
    query = select(JobRow).order_by(JobRow.number.desc()).limit(limit)
    if process is not None:
        query = query.where(JobRow.process == process)
    if state is not None:
        query = query.where(JobRow.state == state)
    with catalog.read() as session:
        if after is not None:
            query = query.where(JobRow.number < _row(session, after).number)
        return [job_of(row) for row in session.scalars(query)]


def dismiss(catalog: Catalog, id: str) -> Job:
    """Return the job after it was dismissed, if no worker has it yet, or its worker was asked to stop it.

    A running job becomes dismissed when it was stopped, or successful if its release was published first.

    Raises
    ------
    NotFoundError
        If there is no such job.
    JobFinishedError
        If it is finished already.
    """
    with catalog.write() as session:
        row = _row(session, id, lock=True)
        if row.state == State.ACCEPTED:
            row.state, row.message, row.finished = State.DISMISSED, "dismissed before it began", now()
        elif row.state == State.RUNNING:
            row.stop, row.message = True, "is being stopped"
        else:
            raise JobFinishedError(f"job ({id}) must not be finished; it is {row.state}")
        row.updated = now()
        session.flush()
        return job_of(row)


def forget_jobs(catalog: Catalog, *, ended_before: datetime) -> int:
    """Return how many jobs were deleted: those that ended before a moment, but never the newest `KEPT`.

    A job that is deleted no longer answers to its owner's name for the request. The newest stay whatever the time is,
    so that a clock that jumps makes no request that is sent again a new job.
    """
    with catalog.write() as session:
        newest = session.scalar(select(JobRow.number).order_by(JobRow.number.desc()).limit(1).offset(KEPT - 1))
        if newest is None:
            return 0
        old = delete(JobRow).where(
            JobRow.number < newest, JobRow.state.in_(FINAL), JobRow.finished < ended_before
        )  # fmt: skip
        return session.connection().execute(old).rowcount


def now() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


def job_of(row: JobRow) -> Job:
    """Return the public part of a row."""
    values = {field.name: getattr(row, field.name) for field in fields(Job)}
    return Job(**values | {"state": State(row.state)})


def _row(session: Session, id: str, *, lock: bool = False) -> JobRow:
    """Return a job's row, on PostgreSQL locked if asked; on SQLite a writer is alone anyway."""
    query = select(JobRow).where(JobRow.id == id)
    row = session.scalar(query.with_for_update() if lock else query) if _ID.fullmatch(id) else None
    if row is None:
        raise NotFoundError(f"job ({id}) must be one of the list")
    return row
