"""Jobs as the workers see them: claimed, kept alive, taken over, allowed to publish, ended.

No clock is compared with another one. A worker that holds a job counts its ``beat`` up; a waiting worker takes the job
over once it has seen the same beat for a whole lease by its own monotonic clock. So a jump of anybody's time, a
reboot or a machine with the wrong date changes nothing. Whoever lost a job without knowing (a zombie) is refused
by the number of its ``attempt``: it can neither report nor publish.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from synthmap.catalog.database import Catalog
from synthmap.catalog.jobs import Job, State, job_of, now
from synthmap.catalog.tables import JobRow
from synthmap.errors import SynthmapError

ATTEMPTS = 3  # a job whose worker or process died so often is not tried again
PUBLISH = "publish"  # the stage of a job that was allowed to publish


class ClaimLostError(SynthmapError):
    """The job belongs to another worker by now, or was dismissed: this one must let it be."""


@dataclass(frozen=True)
class Claim:
    """A job that this worker holds, for one attempt.

    Attributes
    ----------
    job : Job
    attempt : int
        The fencing token.
    lost : int
        Earlier attempts whose worker or process died.
    stop : bool
        Whether somebody had asked to dismiss it.
    """

    job: Job
    attempt: int
    lost: int
    stop: bool


def claim(catalog: Catalog, *, lease_seconds: float) -> Claim | None:
    """Return the oldest job that nobody has, now held by the caller; None if there is none.

    Parameters
    ----------
    catalog : Catalog
    lease_seconds : float
        How long others wait for a sign of life (`beat`) before they take it over.
    """
    waiting = select(JobRow).where(JobRow.state == State.ACCEPTED).order_by(JobRow.number).limit(1)
    with catalog.write() as session:  # SQLite has no row locks: there a writer is alone
        row = session.scalar(waiting.with_for_update(skip_locked=True))
        return None if row is None else _taken(session, row, lease_seconds)


def held(catalog: Catalog, id: str, attempt: int) -> Claim:
    """Return the claim on a job for the process that carries it out.

    Raises
    ------
    ClaimLostError
        If it is no longer that attempt's.
    """
    with catalog.read() as session:
        row = session.scalar(_of(id, attempt))
        if row is None:
            raise _lost(id)
        return _claim(row)


@dataclass(frozen=True)
class _Seen:
    """The beat of a running job, since when it was the same, and whether it ever changed."""

    attempt: int
    beat: int
    since: float
    alive: bool


class Watch:
    """What one waiting worker has seen of the jobs that run elsewhere."""

    def __init__(self, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self.undecided = False  # after a look: whether a job may yet turn out to be abandoned

    def take_over(self, *, lease_seconds: float) -> Claim | None:
        """Return a running job that showed no sign of life for its whole lease, now held by the caller."""
        columns = (JobRow.id, JobRow.attempt, JobRow.beat, JobRow.lease_seconds)
        with self._catalog.read() as session:
            running = session.execute(select(*columns).where(JobRow.state == State.RUNNING)).all()
        moment, before, self._seen = self._clock(), self._seen, {}
        abandoned = []
        for id, attempt, beat, lease in running:
            known = before.get(id)
            if known is None or known.attempt != attempt:
                known = _Seen(attempt, beat, moment, alive=False)
            elif known.beat != beat:
                known = _Seen(attempt, beat, moment, alive=True)
            elif moment - known.since >= lease:
                abandoned.append((id, attempt, beat))
            self._seen[id] = known
        self.undecided = not all(one.alive for one in self._seen.values())
        for one in abandoned:
            if (found := self._take(*one, lease_seconds)) is not None:
                return found
        return None

    def _take(self, id: str, attempt: int, beat: int, lease_seconds: float) -> Claim | None:
        """Take a job unless its worker showed life, or another one took it, since it was looked at."""
        with self._catalog.write() as session:
            same = _of(id, attempt).where(JobRow.beat == beat)
            row = session.scalar(same.with_for_update(skip_locked=True))
            if row is None:
                return None
            row.lost += 1
            return _taken(session, row, lease_seconds)


def beat(catalog: Catalog, claim: Claim, stage: str = "", percent: int = 0) -> bool:
    """Show life and progress; return whether somebody asked to dismiss the job.

    Raises
    ------
    ClaimLostError
        If another worker has it: whatever still runs for it must be stopped.
    """
    with _held(catalog, claim) as row:
        row.beat += 1
        if row.stage != PUBLISH:
            row.stage, row.percent = stage or row.stage, max(percent, row.percent)
        return row.stop


def may_publish(catalog: Catalog, claim: Claim) -> None:
    """Mark the job as publishing, right before what it made becomes visible.

    Raises
    ------
    ClaimLostError
        If another worker has it, or it was dismissed: nothing may become visible.
    """
    with _held(catalog, claim) as row:
        if row.stop:
            raise ClaimLostError(f"job ({claim.job.id}) must not have been dismissed; nothing was published")
        row.beat += 1
        row.stage, row.percent = PUBLISH, 99


def succeed(catalog: Catalog, claim: Claim, result: dict[str, Any]) -> State:
    """End the job with a public result, and return its state."""
    with _held(catalog, claim) as row:
        _end(row, State.SUCCESSFUL, "done")
        row.percent, row.result = 100, result
    return State.SUCCESSFUL


def fail(catalog: Catalog, claim: Claim, message: str) -> State:
    """End the job without a result, and return its state; `message` is for the public."""
    with _held(catalog, claim) as row:
        _end(row, State.FAILED, message)
    return State.FAILED


def give_back(catalog: Catalog, claim: Claim, *, lost: bool = False) -> State:
    """Let another worker have the job, and return its state now.

    It is dismissed if somebody asked for that. With `lost`, its process died, and it fails if that was the last of
    `ATTEMPTS`.
    """
    with _held(catalog, claim) as row:
        row.lost += lost
        if row.stop:
            _end(row, State.DISMISSED, "dismissed; nothing was published")
        elif row.lost >= ATTEMPTS:
            _end(row, State.FAILED, f"the process that ran it was lost {row.lost} times; the operator finds more in "
                 "the log of the worker")  # fmt: skip
        else:
            row.state, row.stage, row.percent, row.started = State.ACCEPTED, "", 0, None
            row.message = "waits for a worker again"
        return State(row.state)


def _end(row: JobRow, state: State, message: str) -> None:
    row.state, row.message, row.finished = state, message, now()
    row.updated = row.finished


def _taken(session: Session, row: JobRow, lease_seconds: float) -> Claim:
    row.attempt, row.beat, row.lease_seconds = row.attempt + 1, 0, lease_seconds
    row.state, row.stage, row.percent = State.RUNNING, "", 0
    row.started = row.updated = now()
    if not row.stop:
        row.message = "is running"
    session.flush()
    return _claim(row)


@contextmanager
def _held(catalog: Catalog, claim: Claim) -> Iterator[JobRow]:
    """Yield the row of a job, locked, to be changed; raise unless it is still the claim's."""
    with catalog.write() as session:
        row = session.scalar(_of(claim.job.id, claim.attempt).with_for_update())
        if row is None:
            raise _lost(claim.job.id)
        row.updated = now()
        yield row


def _of(id: str, attempt: int) -> Select[JobRow]:
    return select(JobRow).where(JobRow.id == id, JobRow.attempt == attempt, JobRow.state == State.RUNNING)


def _claim(row: JobRow) -> Claim:
    return Claim(job_of(row), row.attempt, row.lost, row.stop)


def _lost(id: str) -> ClaimLostError:
    return ClaimLostError(f"job ({id}) must still be held by this worker; another one took it over or it was ended")
