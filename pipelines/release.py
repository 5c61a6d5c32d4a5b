"""A release from end to end: tabulate → collect and plan → draw → publish, as a Dask graph of small tasks."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, Future, as_completed
from distributed.deploy import Cluster

from pipelines.cluster import connect
from pipelines.lengths import as_fitted, measure, read_lengths
from pipelines.partition import collect, partitions
from pipelines.places import fetch, forget, move, public_inputs, reaches, results, run_directory
from pipelines.planning import plan_partition, read_plans
from pipelines.publish import Told, certified_per_job, finish, prepare, promise, summarise
from pipelines.stage import StageError, ToldElsewhereError
from pipelines.synthesize import draw, publish_zones
from pipelines.tabulate import HEADCOUNT, Stretch, tabulate
from pipelines.unpaid import Unpaid
from synthmap.analysis.prior_table import open_prior_table, read_prior_table, refuse_confidential, write_prior_table
from synthmap.confidential.files import is_called_parquet
from synthmap.errors import (
    ConfidentialDataError,
    ConfigurationError,
    SynthmapError,
    UnknownZoneError,
    UnwritableError,
    VintageError,
)
from synthmap.geography.arrays import load
from synthmap.geography.read import read_zones
from synthmap.geography.region import Region, make_region, write_region
from synthmap.mechanism.chosen import candidates, choose, mechanism_of
from synthmap.mechanism.lengths import length_classes, public_decay
from synthmap.mechanism.plan import Plan, PlanSettings, settings_of
from synthmap.mechanism.table import TableLoss
from synthmap.release.manifest import MANIFEST, Loss, Manifest, PlanSummary
from synthmap.release.store import new_release_id, partial_release
from synthmap.remote import is_remote, is_there, shown
from synthmap.spec import Spec

Progress = Callable[[str, int, int], None]
Paying = Callable[[str, Loss], None]
WORKERS_PER_PARTITION = 500_000
_STRETCHES = 4  # of a table for each thread, so that none waits long for the last
_REGION = "region"  # in the scratch directory: zones and prior, public


@dataclass(frozen=True)
class Released:
    """A finished release."""

    release: str
    path: Path
    manifest: Manifest
    seconds: float


@dataclass(frozen=True)
class Planned:
    """About what a release of a spec would do, and what it costs; nothing is spent or published."""

    plan: Plan
    settings: PlanSettings
    promise: Loss
    per_job: Loss
    lengths_epsilon: float
    certified: TableLoss
    summary: PlanSummary


@dataclass(frozen=True)
class _Prepared:
    """What is there before anything is drawn for the table: the spec with its mechanism, and files of the workers."""

    client: Client
    directory: Path
    region: Region
    spec: Spec
    choice: str
    lengths: Path | None
    parts: list[Path]
    plans: list[Path]
    zones: list[Path]

    def fitted(self) -> Spec:
        """Return the spec with the decay that was fitted: never sent, see `measure`."""
        return as_fitted(self.spec, self.lengths, self.directory)

    def settings(self) -> PlanSettings:
        return settings_of(self.fitted(), self.region)

    def plan(self) -> Plan:
        """Return the plans of all partitions as one."""
        return read_plans([fetch(path, self.directory) for path in self.plans], self.settings())


def quiet(stage: str, done: int, total: int) -> None:
    """Show no progress."""


def release(
    spec: Spec,
    *,
    scheduler: str | Cluster = "auto",
    progress: Progress = quiet,
    name: str | None = None,
    before_reading: Paying | None = None,
    before_drawing: Paying | None = None,
    before_publishing: Callable[[], None] = lambda: None,
) -> Released:
    """Run `spec` and return the published release.

    Confidential intermediate files lie in a private scratch directory that is removed in the end; the store only
    ever sees the draw. With ``run.seed`` the table does not depend on partitions, scheduler or workers.

    Parameters
    ----------
    spec : Spec
    scheduler : str or distributed.deploy.Cluster
        See `pipelines.cluster.connect`.
    progress : callable
        Called with a stage's name, tasks done and tasks in all.
    name : str, optional
        The release's id; default: a new one. Whoever runs a spec again under the same id gets one release, not two.
    before_reading : callable
        Called with the id and what the release costs a worker, once all that is public is known to be usable and
        before a table is read; it raises to refuse. Default: refuse jobs of a registered dataset, whose ledger keeps
        account (`pipelines.spending.release_and_pay`).
    before_drawing : callable
        Called likewise before anything is drawn. Default: refuse tables that changed since.
    before_publishing : callable
        Called right before the rename that publishes; it raises to refuse.

    Raises
    ------
    SynthmapError
        With one clear message; nothing is left behind.
    KeyboardInterrupt
        It says whether the release was published.
    """
    began = time.perf_counter()
    name = name or new_release_id(spec.name)
    cost = promise(spec)

    unpaid = Unpaid(spec)
    with _interrupts_told(spec.store, name), ExitStack() as store:
        partials: list[Path] = []

        def pay() -> None:
            # first: a store that cannot be written is found before anything is paid
            partials.append(store.enter_context(partial_release(spec.store, name)))
            (before_reading or unpaid.before_reading)(name, cost)

        def draw_from_here() -> None:
            (before_drawing or unpaid.before_drawing)(name, cost)

        with _prepared(spec, scheduler, progress, pay, draw_from_here) as ready:
            directory, spec, [partial] = ready.directory, ready.spec, partials
            _, source = open_prior_table(fetch(directory / _REGION, directory))
            if ready.lengths is None:
                draw_from_here()
            draws = partial / "draws"
            draws.mkdir()
            place = directory if is_remote(directory) or is_remote(spec.store) else draws
            tasks = [
                ready.client.submit(draw, spec, *both, ready.lengths, directory / _REGION, place, pure=False)
                for both in zip(ready.parts, ready.plans, strict=True)
            ]
            lengths = None if ready.lengths is None else read_lengths(ready.lengths, directory)
            about = ready.plan(), ready.settings(), ready.choice, source, lengths
            manifest = prepare(Told(ready.fitted(), name, ready.region, *about), partial)  # while the table is drawn
            drawn = _gather(tasks, "draw", progress)
            progress("publish", 0, 1)
            (partial / "od").mkdir()
            for i, path in enumerate(drawn):
                move(path, partial / "od" / f"part-{i:05}.parquet")
            for path in ready.zones:
                move(path, partial / "zones.parquet")
            shutil.rmtree(draws)
            path, manifest = finish(manifest, partial, spec.store, before_publishing)
            progress("publish", 1, 1)
    return Released(name, path, manifest, time.perf_counter() - began)


@contextmanager
def _interrupts_told(store: Path, name: str) -> Iterator[None]:
    """Let an interrupt say whether the release was published, whenever it came."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            there = is_there(store / name / MANIFEST)
        except SynthmapError:
            told = f"whether release {name} was published could not be seen"
        else:
            told = f"release {name} was published: {shown(store / name)}" if there else "nothing was published"
        raise KeyboardInterrupt(told) from None


def plan(spec: Spec, *, scheduler: str | Cluster = "auto", progress: Progress = quiet) -> Planned:
    """Return the plan of `spec`, made from public headcounts; nothing is drawn.

    No lengths are measured: where the spec has that, a release plans with another decay, and trusts it more.
    """
    with _prepared(spec, scheduler, progress) as ready:
        settings, found = ready.settings(), ready.plan()
    lost = mechanism_of(settings).loss(found, settings)
    summary = summarise(ready.spec, found, settings, ready.choice)
    per_job, lengths = certified_per_job(ready.spec, lost), ready.spec.lengths_epsilon
    return Planned(found, settings, promise(spec), per_job, lengths, lost, summary)


@contextmanager
def _writing() -> Iterator[None]:
    """Turn what a full disk causes in the driver into one error; tasks do so themselves."""
    try:
        yield
    except OSError as fault:
        why = fault.strerror or "the system refused"
        raise UnwritableError(f"the files of a run must be writable: {why}; make room and run it again") from None


@contextmanager
def _prepared(
    spec: Spec,
    scheduler: str | Cluster,
    progress: Progress,
    before_reading: Callable[[], None] = lambda: None,
    before_drawing: Callable[[], None] | None = None,
) -> Iterator[_Prepared]:
    """Read and plan.

    To publish, lengths are measured if the spec wants that, after `before_drawing`; and the zones are written while a
    large table keeps one worker busy.
    """
    for table in spec.tables:
        if table.vintage != spec.zones.vintage:
            raise VintageError(
                f"{table.path.name}: vintage ({table.vintage}) must be that of the zones ({spec.zones.vintage})"
            )
    with _writing(), run_directory(spec.run.scratch) as directory, _client(scheduler, directory) as client:
        progress("zones", 0, 1)
        near = public_inputs(spec, directory)
        region = make_region(read_zones(near.zones))
        for one in candidates(spec):
            settings_of(one, region)
        known, source = read_prior_table(near, region.zones)
        with results(directory) as here:
            (here / _REGION).mkdir()
            write_region(region, here / _REGION)
            write_prior_table(here / _REGION, known, source)
        # there was a worker: `connect` waited for it; one that is lost meanwhile is an error, and need reach nothing
        if False in client.run(reaches, directory, on_error="return").values():
            raise ConfigurationError(
                f"run.scratch ({shown(directory.parent)}) must be a place that all workers of {scheduler} share"
            )
        progress("zones", 1, 1)
        before_reading()
        refuse_confidential(near)
        publishing = before_drawing is not None
        beside = [client.submit(publish_zones, spec, directory / _REGION, directory, pure=False)] if publishing else []
        tables = _read(client, spec, directory, progress, beside)
        headcount = np.sum([load(fetch(blocks / HEADCOUNT, directory)) for _, blocks in tables], axis=0)
        workers = int(headcount.sum())
        if workers == 0:
            raise ConfidentialDataError("the tables must hold at least one worker")
        parts = partitions(headcount, spec.run.partitions or max(4, workers // WORKERS_PER_PARTITION))
        public = directory / _REGION, directory
        there = region.rank_of_position[np.flatnonzero(headcount)].astype(np.int32), headcount[headcount > 0]
        classes = lengths = None
        spec = spec.with_workers(workers)
        if before_drawing is not None and spec.lengths_epsilon:
            classes = length_classes(region, public_decay(spec), *there, spec.lengths_epsilon)
        collected = [
            client.submit(collect, spec, part, tables, headcount[part.first : part.last], classes, *public, pure=False)
            for part in parts
        ]
        if before_drawing is not None and classes is not None:
            _gather(collected, "collect", progress)  # what is wrong with the tables is found before it is paid
            before_drawing()
            measuring = client.submit(measure, spec, classes, collected, *public, pure=False)
            [lengths] = _gather([measuring], "lengths", progress)
        fitted, choice = choose(as_fitted(spec, lengths, directory), region, *there, known)
        spec = spec.model_copy(update={"plan": fitted.plan})
        tasks = [client.submit(plan_partition, spec, part, lengths, *public, pure=False) for part in collected]
        plans = _gather(tasks, "plan", progress)
        written, found = client.gather([beside, collected])
        yield _Prepared(client, directory, region, spec, choice, lengths, found, plans, written)


@contextmanager
def _client(scheduler: str | Cluster, directory: Path) -> Iterator[Client]:
    """Yield a Dask client whose workers keep no copies of a run in the end."""
    with connect(scheduler) as client:
        try:
            yield client
        finally:
            with suppress(Exception):  # of workers that are gone; what they had goes with them
                client.run(forget, directory, on_error="ignore")


def _read(
    client: Client, spec: Spec, directory: Path, progress: Progress, beside: Sequence[Future]
) -> list[tuple[Stretch, Path]]:
    """Return where the blocks of each stretch of all tables lie, several of them and `beside` worked on side by side.

    Where a stretch has a fault, files are read whole, so that what is told does not depend on how they were cut.
    """

    def run(of: int, beside: Sequence[Future] = ()) -> list[tuple[Stretch, Path]]:
        pieces = [of if is_called_parquet(table) else 1 for table in spec.tables]  # CSV is read from its beginning
        cut = [Stretch(table, part, number) for table, number in enumerate(pieces) for part in range(number)]
        tasks = [client.submit(tabulate, spec, stretch, directory / _REGION, directory, pure=False) for stretch in cut]
        found = _gather([*beside, *tasks], "read", progress, to_the_end=True)
        return list(zip(cut, found[len(beside) :], strict=True))

    try:
        return run(_STRETCHES * max(1, sum(client.nthreads().values())), beside)
    except (ConfidentialDataError, UnknownZoneError):
        return run(1)


def _gather(tasks: Sequence[Future], stage: str, progress: Progress, *, to_the_end: bool = False) -> list[Any]:
    """Return the results in the order of `tasks`; an error cancels the others.

    Or all go on `to_the_end` first, so that progress does not tell where in a table a fault is.
    """
    progress(stage, 0, len(tasks))
    failed = None
    for done, task in enumerate(as_completed(tasks), start=1):
        failed = failed or (task if task.status != "finished" else None)
        if failed and not to_the_end:
            break
        progress(stage, done, len(tasks))
    if failed:
        fault = failed.exception() if failed.status == "error" else None
        for other in tasks:
            if not other.done():  # what is done may be of use where tables are read again
                other.cancel()
        if isinstance(fault, ToldElsewhereError):
            raise fault.told()
        if isinstance(fault, SynthmapError):
            raise fault.with_traceback(None)
        raise StageError(f"the workers of the cluster were lost during stage {stage}; nothing was published")
    return list(tasks[0].client.gather(tasks))  # all at once: each on its own is a message there and back
