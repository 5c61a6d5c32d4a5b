"""The ledger: an append-only, hash-chained record of every loss, durable before what it pays for exists.

Order of one release, each step a transaction: `spend` before a secret is read, `begin_drawing` before a random number
is drawn, then the release. Whoever died in between goes on under the same name and pays nothing more. A loss for which
no drawing began can be taken back by `refund`; the two exclude each other, so nothing is drawn for a refunded loss.

On SQLite a writer is alone; on PostgreSQL writers of the ledger wait for each other. So two that race for the last of a
budget are told apart here, never by a clock.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from synthmap.catalog.account import Account, Entry
from synthmap.catalog.database import Catalog
from synthmap.catalog.datasets import find_dataset
from synthmap.catalog.entries import (
    SPENDING,
    Charge,
    Content,
    Kind,
    as_typed,
    check_dataset,
    hash_of,
    read_body,
    same_jobs,
)
from synthmap.catalog.tables import LedgerHeadRow, LedgerRow
from synthmap.errors import BudgetExceededError, LedgerError

_LOCK = 5_713_046_221_908  # see schema.py


def set_budget(catalog: Catalog, dataset: str, epsilon: float, delta: float) -> Account:
    """Return the account of a registered dataset after its budget was set, once and for all.

    The ceiling lies 2⁻⁴⁰ of itself above the figures, so that decimals which no float holds exactly add up as on paper.

    Raises
    ------
    NotFoundError
        If there is no such dataset.
    LedgerError
        If it has a budget, or a figure is out of range.
    """
    if not 0 < epsilon <= 1_000_000:
        raise LedgerError(f"epsilon ({epsilon:g}) must be above 0 and at most 1000000")
    if not 0 <= delta < 1:
        raise LedgerError(f"delta ({delta:g}) must be at least 0 and below 1")
    find_dataset(catalog, dataset)
    typed = {"epsilon": epsilon, "delta": delta}
    exact = {name: str(as_typed(value)) for name, value in typed.items()}
    with catalog.write() as session, _writing(session, dataset) as account:
        _append(session, account, account.next(Kind.BUDGET, budget=exact))
    return account


def spend(
    catalog: Catalog, dataset: str, name: str, charge: Charge, content: Content, *, job: str | None = None
) -> Account:
    """Return the account after a loss was recorded under `name`; a loss recorded there already is not recorded twice.

    Parameters
    ----------
    catalog : Catalog
    dataset : str
    name : str
        Id of the release, or of whatever the loss is for; no other loss of the catalog has it.
    charge : Charge
        See `synthmap.catalog.entries.charge`.
    content : Content
        Marks of the data that it is incurred on.
    job : str, optional
        Id of the job.

    Raises
    ------
    BudgetMissingError, BudgetExceededError
        If the dataset has no budget, or not enough left of it; nothing was recorded.
    LedgerError
        If the ledger was damaged, the data changed or belong to another dataset, or the name paid for something else.
    """
    with catalog.write() as session, _writing(session, dataset) as account:
        found = account.check(name, charge)
        account.check_content(content)
        if found is None:
            _refuse_others(session, dataset, name, content)
            _append(session, account, account.next(charge.kind, name, charge=charge, content=content, job=job))
    return account


def begin_drawing(catalog: Catalog, dataset: str, name: str, *, once: bool = False) -> Account:
    """Return the account after it was recorded that random numbers are about to be drawn for the loss `name`.

    Raises
    ------
    LedgerError
        If there is no such loss or it was refunded, or the ledger was damaged, or drawing began already where it may
        do so only `once`; nothing may be drawn.
    """
    with catalog.write() as session, _writing(session, dataset) as account:
        drawn = name in account.losses and account.losses[name].drawn
        if drawn and once:
            raise LedgerError(
                f"name ({name}) must be new: a loss was recorded under it already; another needs another name"
            )
        if not drawn:
            _append(session, account, account.next(Kind.DRAWING, name))
    return account


def refund(
    catalog: Catalog, dataset: str, name: str, *, check: Callable[[Account], None] = lambda account: None
) -> bool:
    """Return whether the loss `name` was taken back: only if no drawing began for it, and none can begin any more.

    Parameters
    ----------
    catalog : Catalog
    dataset, name : str
    check : callable
        Raises unless the account is one to take something back on: a ledger that was cut says of what was drawn that it
        was not. `pipelines.seal.Seal.check_of` makes one.

    Raises
    ------
    LedgerError
        If the ledger was damaged, or does not pass the check.
    """
    with catalog.write() as session, _writing(session, dataset) as account:
        check(account)
        loss = account.losses.get(name)
        if loss is None or loss.drawn:
            return False
        _append(session, account, account.next(Kind.REFUND, name))
        return True


def read_account(catalog: Catalog, dataset: str) -> Account:
    """Return the account of a dataset, its ledger verified; one without entries if nobody set a budget.

    Raises
    ------
    LedgerError
        If the ledger of the dataset was damaged.
    """
    check_dataset(dataset)
    with _reading(catalog) as session:
        return _account(session, dataset)


def ledger_datasets(catalog: Catalog) -> list[str]:
    """Return the ids of all datasets of which the ledger holds anything, sorted."""
    with _reading(catalog) as session:
        places = (select(table.dataset).distinct() for table in (LedgerHeadRow, LedgerRow))
        return sorted({id for place in places for id in session.scalars(place)})


@contextmanager
def _reading(catalog: Catalog) -> Iterator[Session]:
    """Yield a session in which entries and heads are of one moment."""
    with catalog.read() as session:
        if catalog.engine.dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


@contextmanager
def _writing(session: Session, dataset: str) -> Iterator[Account]:
    """Yield the account of a dataset, verified, while nobody else writes to the ledger."""
    check_dataset(dataset)
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"select pg_advisory_xact_lock({_LOCK})"))
    yield _account(session, dataset)


def _account(session: Session, dataset: str) -> Account:
    """Return the account of a dataset; raise unless every row of it is as it was written, and none is missing."""
    account = Account(dataset)
    rows = session.scalars(select(LedgerRow).where(LedgerRow.dataset == dataset).order_by(LedgerRow.number))
    for place, row in enumerate(rows, start=1):
        where = f"entry ({place}) of dataset ({dataset})"
        body = read_body(row.body, where)
        if (row.number, row.kind, row.name, row.hash) != (body.number, body.kind, body.name, hash_of(row.body)):
            raise LedgerError(f"{where} must be as it was written; the ledger was damaged")
        try:
            account.add(Entry(body, row.hash))
        except (LedgerError, BudgetExceededError):
            raise LedgerError(f"{where} must follow from those before it; the ledger was damaged") from None
    head = session.get(LedgerHeadRow, dataset)
    ends = (0, account.head) if head is None else (head.entries, head.hash)
    if ends != (len(account.entries), account.head):
        raise LedgerError(f"the ledger of dataset ({dataset}) must end where it was last written; it was damaged")
    return account


def _append(session: Session, account: Account, entry: Entry) -> None:
    """Add an entry to the account and to the catalog."""
    account.add(entry)
    body = entry.body
    session.add(
        LedgerRow(dataset=body.dataset, number=body.number, kind=body.kind.value, name=body.name,
                  body=body.to_json(), hash=entry.hash)
    )  # fmt: skip
    session.merge(LedgerHeadRow(dataset=body.dataset, entries=body.number, hash=entry.hash))


def _refuse_others(session: Session, dataset: str, name: str, content: Content) -> None:
    """Raise LedgerError if another dataset has paid under the name, for some of the same jobs, or with another key."""
    others = select(LedgerRow.dataset, LedgerRow.name, LedgerRow.body).where(
        LedgerRow.dataset != dataset, LedgerRow.kind.in_([kind.value for kind in SPENDING])
    )
    for other, theirs, body in session.execute(others).all():
        if theirs == name:
            raise LedgerError(f"entry ({name}) must be of one dataset; it was paid for by dataset ({other})")
        if content.key not in body and theirs in _account(session, other).losses:
            raise LedgerError(
                f"dataset ({dataset}) must be compared with dataset ({other}), which was paid for with another key: "
                "copy the .seal file that lies beside the registry of that worker"
            )
        if any(mark in body for mark in content.tables) and theirs in _account(session, other).losses:
            raise LedgerError(same_jobs(dataset, other))
