"""The account of a dataset: its entries in order, and all that is derived from them.

An entry that is read from the catalog passes the same rules as one that is to be added, so a ledger that was tampered
with or put in another order does not become an account. That the sums are a loss: privacy/proofs/composition.md.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from synthmap.catalog.entries import GENESIS, SPENDING, Adjacency, Body, Budget, Charge, Content, Kind, hash_of
from synthmap.errors import BudgetExceededError, BudgetMissingError, LedgerError
from synthmap.privacy.composition import round_up
from synthmap.privacy.shown import shown_budget, shown_loss
from synthmap.release.store import time_in

ROOM = 1 + Fraction(1, 2**40)  # ten floats 1e-5 add up to a hair more than 1e-4; a curator means them to fit
RULE = "basic composition: the sum of all losses, exact"


@dataclass(frozen=True)
class Entry:
    """An entry and its hash."""

    body: Body
    hash: str


@dataclass(frozen=True)
class Loss:
    """A loss that was recorded, and whether random numbers may have been drawn for it."""

    body: Body
    charge: Charge
    content: Content
    drawn: bool


class Account:
    """The account of one dataset.

    Attributes
    ----------
    dataset : str
    entries : list of Entry
        All, oldest first.
    losses : dict of str to Loss
        Those that count, by name; not those that were refunded.
    """

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.entries: list[Entry] = []
        self.losses: dict[str, Loss] = {}
        self._budget: Budget | None = None
        self._names: set[str] = set()
        self._epsilon = self._delta = Fraction(0)

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.entries[-1].hash if self.entries else GENESIS

    @property
    def budget(self) -> tuple[Fraction, Fraction] | None:
        """The ceilings (ε, δ), as they were typed."""
        return None if self._budget is None else (Fraction(self._budget.epsilon), Fraction(self._budget.delta))

    @property
    def spent(self) -> tuple[Fraction, Fraction]:
        """What was spent, (ε, δ), exact: by basic composition, which also holds for losses chosen after seeing others.

        It is stated for `adjacency` and for a person with up to `max_jobs_per_worker` jobs.
        """
        return self._epsilon, self._delta

    @property
    def left(self) -> tuple[float, float]:
        """What may yet be spent, (ε, δ), rounded down."""
        if self.budget is None:
            return 0.0, 0.0
        left = [max(Fraction(0), most - spent) for most, spent in zip(self.budget, self.spent, strict=True)]
        return 0.0 - round_up(-left[0]), 0.0 - round_up(-left[1])  # never -0.0

    @property
    def adjacency(self) -> Adjacency | None:
        """The change for which all losses hold; None before there are any.

        A loss for another origin *or* segment covers another origin, not the other way round.
        """
        found = {loss.charge.adjacency for loss in self.losses.values()}
        return None if not found else Adjacency.ORIGIN if Adjacency.ORIGIN in found else Adjacency.ORIGIN_OR_SEGMENT

    @property
    def max_jobs_per_worker(self) -> int | None:
        """Jobs of a person that all losses cover together; None before there are any."""
        return next((loss.charge.max_jobs_per_worker for loss in self.losses.values()), None)

    @property
    def content(self) -> Content | None:
        """Marks of the data that the first loss was incurred on; None before there is any."""
        return next((loss.content for loss in self.losses.values()), None)

    def check(self, name: str, charge: Charge) -> Loss | None:
        """Return the loss that was recorded under `name` already; None if it may be added now.

        Raises
        ------
        BudgetMissingError, BudgetExceededError
        LedgerError
            If the name paid for something else or was refunded, or the loss is for other jobs than the others.
        """
        if (found := self.losses.get(name)) is not None:
            if found.charge != charge:
                raise LedgerError(f"entry ({name}) must be for what was paid under it; choose another name")
            return found
        if name in self._names:
            raise LedgerError(f"entry ({name}) must not have been refunded; ask again under another name")
        if self.budget is None:
            raise BudgetMissingError(
                f"dataset ({self.dataset}) must have a budget first: "
                f"synthmap ledger budget {self.dataset} --epsilon … --delta …"
            )
        jobs = self.max_jobs_per_worker
        if jobs not in (None, charge.max_jobs_per_worker):
            raise LedgerError(
                f"max_jobs_per_worker ({charge.max_jobs_per_worker}) must be that of the losses before ({jobs}): "
                "losses for different numbers of jobs do not add up"
            )
        costs = (Fraction(charge.epsilon), Fraction(charge.delta))
        for symbol, cost, spent, ceiling, left in zip("εδ", costs, self.spent, self.budget, self.left, strict=True):
            if spent + cost > ceiling * ROOM:
                raise BudgetExceededError(
                    f"{symbol} ({shown_loss(round_up(cost))}) must be at most what is left of the budget of dataset "
                    f"{self.dataset}: {shown_budget(left)} of {shown_budget(float(ceiling))}"
                )
        return None

    def check_content(self, content: Content) -> None:
        """Raise LedgerError unless the data are those of the losses before."""
        known = self.content
        if known is None:
            return
        if known.key != content.key:
            raise LedgerError(
                f"dataset ({self.dataset}) must be compared with the key of its first loss; this registry has another: "
                "copy the .seal file that lies beside the registry of that worker"
            )
        columns = {name: mark for loss in self.losses.values() for name, mark in loss.content.columns.items()}
        if any(columns.get(name, mark) != mark for name, mark in content.columns.items()):
            which = "tables"
        elif known.public != content.public:
            which = "zones, weights or the way tables are read"
        else:
            return
        raise LedgerError(
            f"dataset ({self.dataset}) must stay as it was when it was first paid for; its {which} changed: "
            "register what is new under another id"
        )

    def next(self, kind: Kind, name: str = "", **values: object) -> Entry:
        """Return a new entry to be added at the end.

        Its time is that in the release's id, else that of the loss: a later one would tell how long the confidential
        tables took to read, also by its hash, of which all else may be known.
        """
        paid = self.losses.get(name)
        time = paid.body.time if paid else (time_in(name) or datetime.now(UTC)).isoformat(timespec="seconds")
        body = Body.model_validate(
            {"dataset": self.dataset, "number": len(self.entries) + 1, "kind": kind, "name": name, "time": time,
             "previous": self.head, **values}
        )  # fmt: skip
        return Entry(body, hash_of(body.to_json()))

    def add(self, entry: Entry) -> None:
        """Add an entry at the end.

        Raises
        ------
        LedgerError, BudgetMissingError, BudgetExceededError
            If it breaks a rule; the account is as before.
        """
        body = entry.body
        if (body.dataset, body.number, body.previous) != (self.dataset, len(self.entries) + 1, self.head):
            raise LedgerError(f"entry ({body.number}) of dataset ({self.dataset}) must follow the one before it")
        self._admit(body)
        self.entries.append(entry)

    def _admit(self, body: Body) -> None:
        """Change what is derived by an entry, or raise."""
        if body.budget is not None:
            if self._budget is not None:
                raise LedgerError(f"budget of dataset ({self.dataset}) must be set once; it was set already")
            self._budget = body.budget
        elif body.kind in SPENDING:
            assert body.charge is not None and body.content is not None  # noqa: S101
            if self.check(body.name, body.charge) is not None:
                raise LedgerError(f"entry ({body.name}) must be paid for once")
            self.check_content(body.content)
            self.losses[body.name] = Loss(body, body.charge, body.content, drawn=False)
            self._names.add(body.name)
            self._count(body.charge, 1)
        else:
            loss = self.losses.get(body.name)
            if loss is None or loss.drawn:
                raise LedgerError(f"{body.kind} ({body.name}) must be of a loss for which nothing was drawn yet")
            if body.kind is Kind.DRAWING:
                self.losses[body.name] = Loss(loss.body, loss.charge, loss.content, drawn=True)
            else:
                del self.losses[body.name]
                self._count(loss.charge, -1)

    def _count(self, charge: Charge, sign: int) -> None:
        self._epsilon += sign * Fraction(charge.epsilon)
        self._delta += sign * Fraction(charge.delta)
