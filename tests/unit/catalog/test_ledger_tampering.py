"""A ledger that is not as it was written is found out, and nothing is paid on it."""

# ruff: noqa: S608

import json

import pytest
from losses import CONTENT, loss
from sqlalchemy import text

from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.entries import hash_of
from synthmap.catalog.ledger import begin_drawing, read_account, refund, set_budget, spend
from synthmap.errors import LedgerError

DATA = "ri-2019"


@pytest.fixture
def written(ready):
    """A catalog with two ledgers, one of budget, two losses and the drawing of the first."""
    put_dataset(ready, Dataset("b", "B", (), (), "1"))
    set_budget(ready, "b", 4, 0)
    set_budget(ready, DATA, 4, 1e-5)
    spend(ready, DATA, "r1", loss(1.0, 1e-6), CONTENT)
    spend(ready, DATA, "r2", loss(2.0, 1e-6), CONTENT)
    begin_drawing(ready, DATA, "r1")
    return ready


def change(catalog, *statements, **values):
    with catalog.write() as session:
        for statement in statements:
            assert session.execute(text(statement), values).rowcount > 0


def body(catalog, number):
    with catalog.read() as session:
        found = session.execute(
            text("select body from ledger where dataset = :d and number = :n"), {"d": DATA, "n": number}
        )
        return found.scalar_one()


OF = f"where dataset = '{DATA}' and number"
STATEMENTS = {
    "dataset": [f"update ledger set dataset = 'c' {OF} = 2"],
    "dataset of the last": [f"update ledger set dataset = 'c' {OF} = 4"],
    "number": [f"update ledger set number = 9 {OF} = 4"],
    "kind": [f"update ledger set kind = 'refund' {OF} = 4"],
    "name": [f"update ledger set name = 'r2' {OF} = 4"],
    "hash": [f"update ledger set hash = '{'0' * 64}' {OF} = 2"],
    "hash of the last": [f"update ledger set hash = '{'0' * 64}' {OF} = 4"],
    "a missing entry": [f"delete from ledger {OF} = 3"],
    "cut at the end": [f"delete from ledger {OF} = 4"],
    "cut down to the budget": [f"delete from ledger {OF} > 1"],
    "all gone": [f"delete from ledger {OF} > 0"],
    "another order": [f"update ledger set number = 9 {OF} = 2", f"update ledger set number = 2 {OF} = 3",
                      f"update ledger set number = 3 {OF} = 9"],
    "the head's number": [f"update ledger_heads set entries = 3 where dataset = '{DATA}'"],
    "the head's hash": [f"update ledger_heads set hash = '{'0' * 64}' where dataset = '{DATA}'"],
    "no head": [f"delete from ledger_heads where dataset = '{DATA}'"],
    "the head of another": ["delete from ledger_heads where dataset = 'b'",
                            f"update ledger_heads set dataset = 'b' where dataset = '{DATA}'"],
}  # fmt: skip


def refuses(catalog):
    """Everything that reads the ledger refuses it."""
    for act in (
        lambda: read_account(catalog, DATA),
        lambda: spend(catalog, DATA, "r3", loss(0.5), CONTENT),
        lambda: begin_drawing(catalog, DATA, "r2"),
        lambda: refund(catalog, DATA, "r2"),
        lambda: set_budget(catalog, DATA, 100, 0.5),
    ):
        with pytest.raises(LedgerError, match=r"damaged|where it was last written|follow"):
            act()


@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS)
def test_a_column_that_was_changed_is_found(written, statements):
    change(written, *statements)
    refuses(written)


EDITS = [
    ('"epsilon":"2"', '"epsilon":"1"'),
    ('"release"', '"query"'),
    ("r2", "r3"),
    ("T", "U"),
    ('"pdp"', '"adp"'),
    ("b" * 64, "c" * 64),
    (DATA, "b"),
    ('"job":null', f'"job":"{"0" * 32}"'),
    ('"max_jobs_per_worker":1', '"max_jobs_per_worker":2'),
    ("another origin", "another Origin"),
    ("synthmap-ledger-1", "synthmap-ledger-2"),
    ('"times":1', '"times":2'),
]


@pytest.mark.parametrize("old, new", EDITS)
@pytest.mark.parametrize("rehashed", [False, True])
def test_a_word_that_was_changed_is_found_also_with_a_new_hash(written, old, new, rehashed):
    before = body(written, 3)
    edited = before.replace(old, new)
    assert edited != before
    hash = ", hash = :h" if rehashed else ""
    values = {"b": edited, "h": hash_of(edited)} if rehashed else {"b": edited}
    change(written, f"update ledger set body = :b{hash} {OF} = 3", **values)
    refuses(written)


def test_a_chain_that_was_made_anew_must_still_follow_the_rules(written):
    """Someone writes the chain and its head anew, to refund what was drawn."""
    values = json.loads(body(written, 4))
    forged = values | {"kind": "refund", "number": 5, "previous": hash_of(body(written, 4))}
    row = json.dumps(forged, sort_keys=True, separators=(",", ":"))
    change(
        written,
        f"insert into ledger values ('{DATA}', 5, 'refund', 'r1', :b, :h)",
        f"update ledger_heads set entries = 5, hash = :h where dataset = '{DATA}'",
        b=row,
        h=hash_of(row),
    )
    with pytest.raises(LedgerError, match="must follow from those before it"):
        read_account(written, DATA)


def test_the_ledger_of_another_dataset_goes_on(written):
    change(written, STATEMENTS["cut at the end"][0])
    assert spend(written, "b", "r3", loss(1.0), CONTENT.model_copy(update={"tables": ("c" * 64,)})).spent == (1, 0)


def test_a_table_that_a_damaged_ledger_paid_for_gets_no_other_budget(written):
    change(written, STATEMENTS["cut at the end"][0])
    with pytest.raises(LedgerError, match="where it was last written"):
        spend(written, "b", "r3", loss(1.0), CONTENT)
