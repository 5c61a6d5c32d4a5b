"""What anybody may know of a dataset's ledger: no path, no mark of a file, no job."""

from dataclasses import dataclass
from fractions import Fraction

from synthmap.catalog.account import RULE, Account, Entry
from synthmap.catalog.rounds import tighter_sum
from synthmap.privacy.composition import round_up


@dataclass(frozen=True)
class LedgerLoss:
    """(ε, δ), rounded to the safe side."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class LedgerTighter(LedgerLoss):
    """A smaller ε at a δ of at most the budget's, and the rule that gave it."""

    composition: str


@dataclass(frozen=True)
class LedgerEntry:
    """An entry: `epsilon` and `delta` rounded up, `exact` as fractions; all None where it is no loss and no budget."""

    number: int
    kind: str
    name: str
    time: str
    epsilon: float | None
    delta: float | None
    exact: tuple[str, str] | None
    adjacency: str | None
    rule: str | None
    max_jobs_per_worker: int | None
    hash: str


@dataclass(frozen=True)
class LedgerSummary:
    """The account of a dataset.

    Attributes
    ----------
    dataset, title : str
    budget : LedgerLoss or None
        None: nobody set one, so nothing is released.
    spent, left : LedgerLoss
        Rounded up; rounded down.
    composition : str
        The rule that gave `spent`.
    tighter : LedgerTighter or None
        What all losses come to together by a rule with preconditions, where every entry meets these and it is less.
    adjacency : str or None
        The change of the data for which `spent` is stated.
    max_jobs_per_worker : int or None
        Jobs of a person that `spent` covers together.
    count : int
    head : str
        Hash of the last entry. Whoever keeps it can tell later whether anything up to here was changed.
    entries : list of LedgerEntry
    """

    dataset: str
    title: str
    budget: LedgerLoss | None
    spent: LedgerLoss
    left: LedgerLoss
    composition: str
    tighter: LedgerTighter | None
    adjacency: str | None
    max_jobs_per_worker: int | None
    count: int
    head: str
    entries: list[LedgerEntry]


def summary(account: Account, title: str) -> LedgerSummary:
    """Return the public view of an account."""
    spent = LedgerLoss(*map(round_up, account.spent))
    budget = None if account.budget is None else LedgerLoss(*map(float, account.budget))
    return LedgerSummary(
        account.dataset, title, budget, spent, LedgerLoss(*account.left), RULE, _tighter(account),
        account.adjacency, account.max_jobs_per_worker, len(account.entries), account.head,
        [_entry(one) for one in account.entries],
    )  # fmt: skip


def _tighter(account: Account) -> LedgerTighter | None:
    """Return a smaller sum, if there is one."""
    found = tighter_sum(account)
    return None if found is None else LedgerTighter(found.epsilon, found.delta, found.rule)


def _entry(entry: Entry) -> LedgerEntry:
    body = entry.body
    figures, charge = body.charge or body.budget, body.charge
    exact = None if figures is None else (figures.epsilon, figures.delta)
    epsilon, delta = (None, None) if exact is None else (round_up(Fraction(value)) for value in exact)
    return LedgerEntry(
        number=body.number,
        kind=body.kind,
        name=body.name,
        time=body.time,
        epsilon=epsilon,
        delta=delta,
        exact=exact,
        adjacency=None if charge is None else charge.adjacency,
        rule=None if charge is None else charge.rule,
        max_jobs_per_worker=None if charge is None else charge.max_jobs_per_worker,
        hash=entry.hash,
    )
