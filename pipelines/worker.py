"""The worker: it takes jobs from the catalog, one at a time, and carries each out in a process of its own."""

import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pipelines.child import Child
from pipelines.jobs.order import Order
from pipelines.jobs.published import published
from pipelines.leftovers import clear_dead_runs, clear_exports, clear_old_jobs
from pipelines.seal import Seal
from pipelines.settings import WorkerSettings
from synthmap.catalog import claims
from synthmap.catalog.claims import Claim, ClaimLostError, Watch
from synthmap.catalog.database import open_catalog
from synthmap.catalog.jobs import State
from synthmap.catalog.ledger import refund
from synthmap.errors import CatalogError, ConfigurationError, LedgerError, ReleaseError

R = TypeVar("R")
BEATS = 6  # signs of life in a lease: several may fail before anybody takes the job over
REPORT_SECONDS = 1.0  # news are written to the catalog at most so often
OVERDUE = "it took longer than the worker allows; its operator finds more in the log of the worker"
CLEAR_SECONDS = 3_600.0  # what dead runs left is looked for so often, beside after every job


class Worker:
    """A worker over a catalog and a store.

    Parameters
    ----------
    database : str
        URL of the catalog.
    store : Path
        Where releases are published.
    scheduler : str
        See `pipelines.cluster.connect`.
    settings : WorkerSettings
    """

    def __init__(self, database: str, store: Path, scheduler: str, settings: WorkerSettings) -> None:
        self.catalog = open_catalog(database)
        self._database, self._store, self._scheduler, self._settings = database, store.absolute(), scheduler, settings
        self._stopping = False
        self._cleared: float | None = None
        self._woken, self._wake = os.pipe()
        self.ended: Counter[str] = Counter()

    def run(self, *, once: bool = False) -> None:
        """Carry jobs out until a signal stops the worker or, with `once`, until none is left that nobody works on.

        After SIGTERM, SIGINT or SIGHUP the running job is given back: another worker, or this one when it is started
        again, makes the same release.

        Raises
        ------
        CatalogError
            With `once`, if the catalog does not answer; else it is waited for.
        """
        watch = Watch(self.catalog)
        lease = self._settings.lease_seconds
        with self._signals():
            while not self._stopping:
                self._clear_away()
                try:
                    found = claims.claim(self.catalog, lease_seconds=lease) or watch.take_over(lease_seconds=lease)
                except CatalogError as fault:
                    if once:
                        raise
                    self._log(str(fault))
                    found = None
                if found is not None:
                    self._carry_out(found)
                elif once and not watch.undecided:
                    break
                else:
                    self._sleep(self._settings.poll_seconds)

    def _carry_out(self, claim: Claim) -> None:
        """Bring a job to an end, or give it back."""
        about = f"job {claim.job.id} ({claim.job.process}, attempt {claim.attempt})"
        self._log(f"{about}: begun")
        try:
            try:
                state = self._attempt(claim, about)
            except (ReleaseError, OSError) as fault:  # of the store, or of a machine that starts no process
                self._log(f"{about}: {fault}")
                state = self._patiently(lambda: claims.give_back(self.catalog, claim, lost=True))
        except (ClaimLostError, CatalogError) as fault:
            self._log(f"{about}: {fault}")
            return
        finally:
            self._clear_away(after=True)
        self.ended[state] += 1
        self._log(f"{about}: {state}")
        if state in (State.FAILED, State.DISMISSED) and claim.job.process == "release":
            self._refund(claim, about)

    def _clear_away(self, *, after: bool = False) -> None:
        """Remove what is left of dead runs `after` a job, and now and then; see `pipelines.leftovers`."""
        due = self._cleared is None or time.monotonic() >= self._cleared + CLEAR_SECONDS
        try:
            if due or after:
                clear_dead_runs(self._store, self._settings.registry, self._log)
            if due:
                self._cleared = time.monotonic()
                clear_exports(self._store)
                if gone := clear_old_jobs(self.catalog, self._settings.keep_days):
                    self._log(f"{gone} jobs of long ago were forgotten")
        except (CatalogError, OSError) as fault:
            self._log(str(fault))

    def _refund(self, claim: Claim, about: str) -> None:
        """Take back what a job that ended paid, if nothing was drawn for it; from now on nothing can be."""
        try:
            dataset, name = claim.job.inputs["dataset"], claim.job.release or ""
            check = Seal(self._settings.registry).check_of(dataset)
            if self._patiently(lambda: refund(self.catalog, dataset, name, check=check)):
                self._log(f"{about}: nothing was drawn, so its loss was refunded")
        except (CatalogError, ConfigurationError, LedgerError) as fault:
            self._log(f"{about}: {fault}")

    def _attempt(self, claim: Claim, about: str) -> State:
        """Return the state of a job after an attempt at it."""
        if (state := self._settled(claim)) is not None:
            return state
        if claim.stop or claim.lost >= claims.ATTEMPTS:
            return self._patiently(lambda: claims.give_back(self.catalog, claim))
        order = Order(
            self._database, self._store, self._settings.registry, self._scheduler,
            claim.job.id, claim.attempt, 0, self._settings.grace_seconds,
        )  # fmt: skip
        child, grace = Child(order), self._settings.grace_seconds
        try:
            grace = self._look_after(claim, child)
        finally:
            status = child.bury(grace)
        if (state := self._settled(claim)) is not None:
            return state
        outcome = child.outcome
        if "log" in outcome:
            self._log(f"{about}: {outcome['log']}")
        elif not outcome and not self._stopping:
            self._log(f"{about}: its process ended with status {status}")
        if "result" in outcome:
            return self._patiently(lambda: claims.succeed(self.catalog, claim, outcome["result"]))
        if child.overdue:
            self._log(f"{about}: stopped after {self._settings.job_hours:g} hours (job_hours)")
            return self._patiently(lambda: claims.fail(self.catalog, claim, OVERDUE))
        if outcome and not outcome["again"]:
            return self._patiently(lambda: claims.fail(self.catalog, claim, outcome["message"]))
        lost = not self._stopping
        return self._patiently(lambda: claims.give_back(self.catalog, claim, lost=lost))

    def _settled(self, claim: Claim) -> State | None:
        """Return that the job succeeded if its release is in the store, whoever brought it there."""
        if claim.job.process != "release" or claim.job.release is None:
            return None
        found = published(self._store, claim.job.release)
        return None if found is None else self._patiently(lambda: claims.succeed(self.catalog, claim, found))

    def _look_after(self, claim: Claim, child: Child) -> float:
        """Return how many seconds the process may still take to end, after it began to or had all its time for that.

        Until then the claim is kept alive, progress is passed on, and the process is told to stop when somebody asks.

        Raises
        ------
        ClaimLostError
            If another worker has the job; the process was told to end.
        """
        usual = min(self._settings.lease_seconds / BEATS, self._settings.poll_seconds)
        stop, deadline = False, float("inf")
        told, shown = time.monotonic(), ("", 0)
        due, limit = told + usual, told + 3_600 * self._settings.job_hours
        while child.listen(min(due, deadline, limit) - time.monotonic(), self._woken):
            self._drain()
            moment = time.monotonic()
            if moment >= deadline:
                return 0.0
            if (stop or self._stopping or moment >= limit) and deadline == float("inf"):
                child.overdue = not (stop or self._stopping)
                child.terminate()
                deadline, limit = moment + self._settings.grace_seconds, float("inf")
            if (child.stage, child.percent) != shown:
                due = min(due, told + REPORT_SECONDS)
            if moment >= due:
                told, shown = moment, (child.stage, child.percent)
                due = told + usual
                try:
                    stop = claims.beat(self.catalog, claim, *shown)
                except ClaimLostError:
                    child.terminate()  # it cannot publish any more; what is confidential goes from the disk
                    raise
                except CatalogError as fault:
                    self._log(str(fault))
        return self._settings.grace_seconds

    def _patiently(self, report: Callable[[], R]) -> R:
        """Return what `report` does, tried until the catalog answers or the worker is stopped."""
        while True:
            try:
                return report()
            except CatalogError as fault:
                if self._stopping:
                    raise
                self._log(str(fault))
                self._sleep(self._settings.poll_seconds)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let signals wake and stop the worker instead of ending it."""

        def stop(*_: object) -> None:
            self._stopping = True
            os.write(self._wake, b"x")

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a signal comes, at most `seconds`."""
        select.select([self._woken], [], [], seconds)
        self._drain()

    def _drain(self) -> None:
        """Forget that a signal woke the worker; `_stopping` remembers."""
        while select.select([self._woken], [], [], 0)[0]:
            os.read(self._woken, 1024)

    def _log(self, text: str) -> None:
        """Write a line to standard error, for the operator only."""
        sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} synthmap worker: {' '.join(text.split())}\n")
        sys.stderr.flush()
