"""A release that is paid for in the ledger: before its tables are read, and once more before anything is drawn.

For one payment at most one draw is ever shown. Right before a release gets its name in the store, the seal keeps that
it may have been shown: whoever finds that and no release (it was moved away since) draws nothing more for that payment.
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipelines.registry import locked, read_registry, registered_spec
from pipelines.release import Released, release
from pipelines.seal import Seal, check_goes_on, states_of
from pipelines.unfinished import Unfinished, begun
from synthmap.catalog.account import Account
from synthmap.catalog.database import Catalog
from synthmap.catalog.datasets import find_dataset
from synthmap.catalog.entries import Adjacency, Charge, Content, Kind, charge
from synthmap.catalog.ledger import begin_drawing, read_account, refund, spend
from synthmap.errors import AlreadyShownError, ConfigurationError, LedgerError, SynthmapError
from synthmap.mechanism.chosen import promised
from synthmap.release.manifest import MANIFEST, Loss, read_manifest
from synthmap.release.store import new_release_id, sweep_scratch, sweep_store, withdraw
from synthmap.spec import Spec, read_spec


class Spending:
    """What `pipelines.release.release`, and others alike, call to pay for a release of `spec` as one of `dataset`.

    Parameters
    ----------
    catalog : Catalog
    registry : Path
        Whose seal holds the key of the marks.
    dataset : str
    spec : Spec
    job : str, optional
        Id of the job.
    asked : Charge, optional
        What is to be paid, unless for a release of `spec`.
    """

    def __init__(
        self, catalog: Catalog, registry: Path, dataset: str, spec: Spec, *, job: str | None = None,
        asked: Charge | None = None,
    ) -> None:  # fmt: skip
        self._catalog, self._registry, self._dataset, self._spec, self._job = catalog, registry, dataset, spec, job
        self._seal = Seal(registry)
        self._asked = asked
        self._files: list[tuple[object, ...]] = []

    def before_reading(self, name: str, cost: Loss | None = None) -> None:
        """Record what the release `name` costs; raise if the dataset's budget or ledger forbids it.

        What public numbers decide is decided before the tables are looked at: they are marked only then. Who pays for
        the same dataset meanwhile waits, so that whoever comes too late for the budget does not look at them either.
        """
        if self._seal.may_be_shown(name):
            raise already_shown(name)
        asked = self._asked or charge_of(self._spec)
        with locked(self._registry, self._dataset):
            self._seen(lambda: read_account(self._catalog, self._dataset)).check(name, asked)
            self._files = states_of(self._spec)
            content = self._seal.content(self._spec)
            self._refuse_others(content)
            paid = self._seen(lambda: spend(self._catalog, self._dataset, name, asked, content, job=self._job))
        self._seal.remember(paid)

    def before_drawing(self, name: str, cost: Loss | None = None, *, once: bool = False) -> None:
        """Record that the loss can no longer be refunded; raise if it was, or if a table changed while it was read.

        Raise, too, where that was recorded before and may be only `once`.
        """
        if states_of(self._spec) != self._files:
            raise LedgerError(
                f"tables of dataset ({self._dataset}) must not change while they are read; release it again"
            )
        self._seal.remember(self._seen(lambda: begin_drawing(self._catalog, self._dataset, name, once=once)))

    def before_publishing(self, name: str) -> None:
        """Keep that the release may have been shown from now on; raise if another attempt at it came that far."""
        if not self._seal.remember_shown(name):
            raise already_shown(name)

    def _refuse_others(self, content: Content) -> None:
        """Let the first loss of a dataset be of the tables it is registered with; those after it are held to the first.

        A spec may name other files than the registered one, where a command was given it.
        """
        place = read_registry(self._registry).get(self._dataset)
        if place is None or self._job is not None or read_account(self._catalog, self._dataset).content is not None:
            return
        if not set(content.tables) <= set(self._seal.content(read_spec(place)).tables):
            raise LedgerError(
                f"tables must be those of dataset ({self._dataset}), which the registered spec names; register others "
                "under an id of their own"
            )

    def _seen(self, read: Callable[[], Account]) -> Account:
        """Return an account that goes on from where workers have seen it."""
        seen = self._seal.seen(self._dataset)
        account = read()
        check_goes_on(account, seen)
        return account


def already_shown(name: str) -> AlreadyShownError:
    """Return what to say where a release may have been shown and is not in the store."""
    return AlreadyShownError(
        f"release ({name}) must be put back into the store, if it was moved away: its run ended when it was about to "
        "be published, or was, so it may have been shown and nothing more is drawn for what was paid; asked again, "
        "another release is made and paid for"
    )


def charge_of(spec: Spec) -> Charge:
    """Return what a release of `spec` costs a person, all jobs together, exact.

    Raises
    ------
    ConfigurationError
        If it is drawn with a fixed seed: it promises nothing.
    """
    if spec.run.seed is not None:
        raise ConfigurationError(
            f"run.seed ({spec.run.seed}) must be left out where losses are accounted for: such a release is not private"
        )
    privacy = spec.privacy
    rule, delta = promised(spec)
    adjacency = Adjacency.ORIGIN_OR_SEGMENT if spec.segment_columns else Adjacency.ORIGIN
    jobs, epsilon, failure = privacy.max_jobs_per_worker, Fraction(privacy.epsilon), Fraction(delta)
    if spec.plan.noise == "gaussian":  # certified for all jobs together: one of them alone may cost more than its share
        parts = [("table, all jobs together", 1, jobs * epsilon, jobs * failure)]
    elif not spec.lengths_epsilon:  # jobs at different destinations are losses of their own
        parts = [("table", jobs, epsilon, failure)]
    elif spec.prior.lengths_epsilon == "auto":  # how it is divided only headcounts will tell
        parts = [("mean lengths and table, all jobs together", 1, jobs * epsilon, jobs * failure)]
    else:
        lengths = Fraction(spec.lengths_epsilon)
        together = ("mean lengths, all jobs together", 1, jobs * lengths, Fraction(0))  # one sum may hold them all
        parts = [together, ("table", jobs, epsilon - lengths, failure)]
    return charge(Kind.RELEASE, parts, adjacency=adjacency, rule=rule.value, max_jobs_per_worker=jobs)


def record(catalog: Catalog, registry: Path, dataset: str, name: str, asked: Charge) -> Account:
    """Return the account of a dataset after a loss was recorded that another program than synthmap incurs on it.

    Raises
    ------
    SynthmapError
        As `Spending`; nothing was recorded then, and nothing may be drawn or shown.
    """
    find_dataset(catalog, dataset)
    paying = Spending(catalog, registry, dataset, registered_spec(registry, dataset), asked=asked)
    paying.before_reading(name)
    paying.before_drawing(name, once=True)  # of several at once under a name, one
    return read_account(catalog, dataset)


def release_and_pay(catalog: Catalog, registry: Path, dataset: str, spec: Spec, **options: Any) -> Released:
    """Return the release of `spec`, paid for by `dataset`; if it fails before anything is drawn, it is refunded.

    A run that died, or failed after it drew, is gone on with by the next one of the same spec: it makes the same
    release and pays nothing more. If it had published, that release is returned; if it may have, and the release is no
    longer there, the next one is refused, and the one after it makes and pays for another release.

    Parameters
    ----------
    **options
        `scheduler` and `progress` of `pipelines.release.release`.

    Raises
    ------
    NotFoundError
        If there is no such dataset.
    AlreadyShownError
        If a dead run may have shown a release that is not in the store.
    SynthmapError
        As `Spending` and `pipelines.release.release`.
    """
    find_dataset(catalog, dataset)
    with begun(registry, dataset, spec) as unfinished:
        if unfinished.again and (made := _published(catalog, registry, dataset, spec, unfinished)) is not None:
            return made
        try:
            found = _paid_release(catalog, registry, dataset, spec, unfinished.name, **options)
        except BaseException:
            with suppress(SynthmapError):
                refund(catalog, dataset, unfinished.name, check=Seal(registry).check_of(dataset))
                unfinished.ended = unfinished.name not in read_account(catalog, dataset).losses
            raise
        unfinished.ended = True
        return found


def _paid_release(catalog: Catalog, registry: Path, dataset: str, spec: Spec, name: str, **options: Any) -> Released:
    paying = Spending(catalog, registry, dataset, spec)
    return release(
        spec,
        name=name,
        before_reading=paying.before_reading,
        before_drawing=paying.before_drawing,
        before_publishing=lambda: paying.before_publishing(name),
        **options,
    )


def _published(catalog: Catalog, registry: Path, dataset: str, spec: Spec, unfinished: Unfinished) -> Released | None:
    """Return the release that a dead run had published; else None, and a name under which it can be made."""
    withdraw(spec.store, unfinished.name)
    sweep_store(spec.store)
    sweep_scratch(spec.run.scratch)
    path = spec.store / unfinished.name
    if (path / MANIFEST).exists():
        unfinished.ended = True
        return Released(unfinished.name, path, read_manifest(path), 0.0)
    if Seal(registry).may_be_shown(unfinished.name):
        unfinished.ended = True  # the loss stands
        raise already_shown(unfinished.name)
    entries = read_account(catalog, dataset).entries
    if any(entry.body.kind is Kind.REFUND and entry.body.name == unfinished.name for entry in entries):
        unfinished.rename(new_release_id(spec.name))
    return None
