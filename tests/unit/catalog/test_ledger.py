"""Every loss is recorded once, before what it pays for; sums are exact; a budget is never passed."""

import json
import subprocess
import sys
from datetime import datetime
from fractions import Fraction

import pytest
from losses import CONTENT, loss

from synthmap.catalog.account import Account
from synthmap.catalog.database import open_catalog
from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.entries import Adjacency, Body, Kind, charge
from synthmap.catalog.ledger import begin_drawing, ledger_datasets, read_account, refund, set_budget, spend
from synthmap.catalog.ledger_view import summary
from synthmap.errors import BudgetExceededError, BudgetMissingError, LedgerError, NotFoundError
from synthmap.privacy.loss import ReplaceOrigin

DATA = "ri-2019"


@pytest.fixture
def funded(ready):
    """A catalog with a dataset whose budget is (4, 1e-5)."""
    set_budget(ready, DATA, 4, 1e-5)
    return ready


def pay(catalog, name="r1", charge=None, content=CONTENT, dataset=DATA):
    return spend(catalog, dataset, name, charge or loss(), content)


def test_a_loss_is_recorded_and_counts(funded):
    pay(funded, "r1", loss(1.0, 1e-6, times=3))
    found = read_account(funded, DATA)
    assert found.spent == (3, 3 * Fraction(1e-6))
    assert [entry.body.kind for entry in found.entries] == ["budget", "release"]
    assert found.left[0] == pytest.approx(1)
    part = found.losses["r1"].charge.parts[0]
    assert (part.times, part.epsilon, Fraction(part.delta)) == (3, "1", Fraction(1e-6))


def test_without_a_budget_nothing_is_spent(ready):
    with pytest.raises(BudgetMissingError, match="synthmap ledger budget ri-2019"):
        pay(ready)
    assert read_account(ready, DATA).entries == []


def test_a_budget_is_set_once_and_for_a_known_dataset(funded):
    for values in ((4, 1e-5), (8, 1e-5), (1, 0)):
        with pytest.raises(LedgerError, match="must be set once"):
            set_budget(funded, DATA, *values)
    with pytest.raises(NotFoundError):
        set_budget(funded, "other", 1, 0)
    assert read_account(funded, DATA).budget == (4, Fraction(1, 100_000))


@pytest.mark.parametrize("values", [(0, 0), (-1, 0), (float("nan"), 0), (float("inf"), 0), (1, 1), (1, -1e-9),
                                    (1, float("nan"))])  # fmt: skip
def test_a_budget_is_a_pair_of_figures(ready, values):
    with pytest.raises(LedgerError, match="must be"):
        set_budget(ready, DATA, *values)


@pytest.mark.parametrize("epsilon, delta", [(4.001, 0), (1, 1.01e-5), (0.001, 0.5)])
def test_what_would_pass_the_budget_is_refused_and_leaves_no_entry(funded, epsilon, delta):
    with pytest.raises(BudgetExceededError, match="must be at most what is left"):
        pay(funded, charge=loss(epsilon, delta))
    assert len(read_account(funded, DATA).entries) == 1
    spent = pay(funded, charge=loss(4.0, 1e-5))
    assert str(spent.left[0]) == "0.0"  # not -0.0, which a page would show
    with pytest.raises(BudgetExceededError):
        pay(funded, "r2", loss(1e-6))


def test_decimals_that_no_float_holds_add_up_as_on_paper_and_no_loss_is_rounded_down(ready):
    set_budget(ready, DATA, 0.3, 1e-4)
    for i in range(3):
        account = pay(ready, f"r{i}", loss(0.1, 1e-5))
    assert account.spent[0] == 3 * Fraction(0.1) > Fraction(3, 10)
    assert summary(account, "").spent.epsilon >= account.spent[0]
    assert 0 <= account.left[0] < 1e-12
    with pytest.raises(BudgetExceededError):
        pay(ready, "r3", loss(1e-9))


def test_the_same_loss_is_not_recorded_twice(funded):
    one, two = pay(funded), pay(funded)
    begin_drawing(funded, DATA, "r1")
    assert begin_drawing(funded, DATA, "r1").spent == pay(funded).spent == one.spent == two.spent == (1, 0)
    assert [entry.body.kind for entry in read_account(funded, DATA).entries] == ["budget", "release", "drawing"]


@pytest.mark.parametrize("other", [{"charge": loss(0.5)}, {"charge": loss(segments=True)}, {"charge": loss(times=2)},
                                   {"charge": loss(kind=Kind.METRICS)}, {"charge": loss(rule="adp")}])  # fmt: skip
def test_a_name_pays_for_one_thing(funded, other):
    pay(funded)
    with pytest.raises(LedgerError, match="must be for what was paid under it"):
        pay(funded, **other)


def test_a_name_is_of_one_dataset(funded):
    put_dataset(funded, Dataset("b", "B", (), (), "1"))
    set_budget(funded, "b", 4, 0)
    pay(funded)
    with pytest.raises(LedgerError, match=r"paid for by dataset \(ri-2019\)"):
        pay(funded, dataset="b", content=CONTENT.model_copy(update={"tables": ("c" * 64,)}))


def test_the_same_table_has_one_budget(funded):
    put_dataset(funded, Dataset("b", "B", (), (), "1"))
    set_budget(funded, "b", 4, 0)
    pay(funded)
    both = CONTENT.model_copy(update={"tables": ("0" * 64, "a" * 64), "public": "d" * 64})
    with pytest.raises(LedgerError, match="must have tables of its own"):
        pay(funded, "r2", dataset="b", content=both)
    refund(funded, DATA, "r1")
    pay(funded, "r2", dataset="b", content=both)


@pytest.mark.parametrize(
    "part, word", [("columns", "its tables changed"), ("public", "its zones, weights"), ("key", "another")]
)
def test_changed_data_are_refused_until_all_that_was_paid_is_refunded(funded, part, word):
    changed = CONTENT.model_copy(update={part: {"count": "c" * 64} if part == "columns" else "c" * 64})
    pay(funded)
    for name in ("r2", "r1"):
        with pytest.raises(LedgerError, match=word):
            pay(funded, name, content=changed)
    refund(funded, DATA, "r1")
    assert pay(funded, "r2", content=changed).content == changed


def test_each_column_must_stay_as_it_was_first_paid_for(funded):
    def with_(**columns):
        return CONTENT.model_copy(update={"columns": {**CONTENT.columns, **columns}})

    pay(funded, "r1", loss(0.5))
    pay(funded, "r2", loss(0.5), content=with_(SA01="1" * 64))
    pay(funded, "r3", loss(0.5), content=with_(SE01="2" * 64))
    pay(funded, "r4", loss(0.5), content=CONTENT.model_copy(update={"tables": ("a" * 64, "c" * 64)}))  # in other files
    for changed in ({"SA01": "3" * 64}, {"SE01": "3" * 64}, {"SA01": "1" * 64, "SE01": "1" * 64}):
        with pytest.raises(LedgerError, match="its tables changed"):
            pay(funded, "r5", loss(0.5), content=with_(**changed))


def test_another_key_would_hide_that_jobs_are_the_same(funded):
    put_dataset(funded, Dataset("b", "B", (), (), "1"))
    set_budget(funded, "b", 4, 0)
    pay(funded)
    other = CONTENT.model_copy(update={"key": "f" * 64, "tables": ("c" * 64,)})
    with pytest.raises(LedgerError, match=r"dataset \(b\) must be compared with dataset \(ri-2019\).*another key"):
        pay(funded, "r2", dataset="b", content=other)
    refund(funded, DATA, "r1")
    pay(funded, "r2", dataset="b", content=other)


def test_losses_for_different_numbers_of_jobs_do_not_add_up(funded):
    pay(funded, charge=loss(jobs=2))
    with pytest.raises(LedgerError, match=r"max_jobs_per_worker \(1\)"):
        pay(funded, "r2")
    assert read_account(funded, DATA).max_jobs_per_worker == 2


def test_the_sum_is_stated_for_what_every_loss_covers(funded):
    assert read_account(funded, DATA).adjacency is None
    assert pay(funded, "r1", loss(segments=True)).adjacency == ReplaceOrigin(segments=True).statement
    assert pay(funded, "r2").adjacency == ReplaceOrigin().statement
    assert list(Adjacency) == [ReplaceOrigin(segments=one).statement for one in (False, True)]


def test_what_was_drawn_is_not_refunded_and_what_was_refunded_is_not_drawn(funded):
    pay(funded, "r1")
    pay(funded, "r2")
    begin_drawing(funded, DATA, "r1")
    assert [refund(funded, DATA, name) for name in ("r1", "r2", "r2", "none")] == [False, True, False, False]
    assert read_account(funded, DATA).spent == (1, 0)
    for name in ("r2", "none"):
        with pytest.raises(LedgerError, match="nothing was drawn yet"):
            begin_drawing(funded, DATA, name)
    with pytest.raises(LedgerError, match="must not have been refunded"):
        pay(funded, "r2")


def test_nothing_is_refunded_on_an_account_that_does_not_pass_a_check(funded):
    pay(funded)

    def check(account):
        assert account.spent == (1, 0)
        raise LedgerError("the ledger must go on from entry 3")

    with pytest.raises(LedgerError, match="must go on"):
        refund(funded, DATA, "r1", check=check)
    assert read_account(funded, DATA).spent == (1, 0)


UNKNOWN = {
    "a rule": {"rule": "zcdp"},
    "a kind": {"kind": "gift"},
    "the kind budget": {"kind": Kind.BUDGET},
    "an adjacency": {"adjacency": "one worker is added"},
    "no jobs": {"max_jobs_per_worker": 0},
    "a negative loss": {"parts": [("table", 1, Fraction(-1), Fraction(0))]},
    "no times": {"parts": [("table", 0, Fraction(1), Fraction(0))]},
    "no parts": {"parts": []},
    "a δ under rule pure": {"rule": "pure", "parts": [("table", 1, Fraction(1), Fraction(1, 10))]},
}


@pytest.mark.parametrize("change", UNKNOWN.values(), ids=UNKNOWN)
def test_a_loss_that_cannot_be_added_up_is_refused(change):
    usual = {"kind": Kind.RELEASE, "parts": [("table", 1, Fraction(1), Fraction(0))], "adjacency": Adjacency.ORIGIN,
             "rule": "pdp", "max_jobs_per_worker": 1}  # fmt: skip
    charge(**usual)
    with pytest.raises(LedgerError):
        charge(**usual | change)


def test_several_parts_and_kinds_add_up(funded):
    parts = [("histogram", 2, Fraction(1, 4), Fraction(0)), ("mean", 1, Fraction(1, 3), Fraction(1, 10**6))]
    paid = charge(Kind.METRICS, parts, adjacency=Adjacency.ORIGIN, rule="dp", max_jobs_per_worker=1)
    pay(funded, "m1", paid)
    assert pay(funded, "q1", loss(0.5, kind=Kind.QUERY)).spent == (Fraction(4, 3), Fraction(1, 10**6))


def test_a_damaged_text_is_not_an_entry():
    """Another order of keys, a doubled key, more blanks: what was not written so was not hashed so."""
    from synthmap.catalog.entries import read_body

    text = Account("x").next(Kind.BUDGET, budget={"epsilon": "4", "delta": "0"}).body.to_json()
    assert isinstance(read_body(text, "it"), Body)
    wrong = [text.replace(",", ", ", 1), text.replace('"4"', '"8/2"'), text[:-1] + ',"job":null}', text + " ", "[]", "",
             json.dumps(json.loads(text) | {"more": 1}), text.replace('"number":1', '"number":true')]  # fmt: skip
    for one in wrong:
        with pytest.raises(LedgerError, match="damaged"):
            read_body(one, "it")


def test_only_the_datasets_of_the_ledger_are_in_it(funded):
    put_dataset(funded, Dataset("b", "B", (), (), "1"))
    assert ledger_datasets(funded) == [DATA]


RACE = """
import sys
from losses import CONTENT, loss
from synthmap.catalog.database import open_catalog
from synthmap.catalog.ledger import refund, spend, begin_drawing
from synthmap.errors import BudgetExceededError, LedgerError
catalog = open_catalog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
won = []
for name in sys.argv[3:]:
    try:
        if sys.argv[2] == "spend":
            spend(catalog, "ri-2019", name, loss(1.0), CONTENT)
            won.append(name)
        elif sys.argv[2] == "refund":
            won += [name] if refund(catalog, "ri-2019", name) else []
        else:
            begin_drawing(catalog, "ri-2019", name, once=sys.argv[2] == "once")
            won.append(name)
    except (BudgetExceededError, LedgerError):
        pass
print(" ".join(won))
"""


def race(database, helpers, *each):
    """Let processes begin together; return what each of them won."""
    started = [
        subprocess.Popen([sys.executable, "-c", RACE, database, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env={"PYTHONPATH": helpers, "PATH": ""})
        for words in each
    ]  # fmt: skip
    assert [one.stdout.readline() for one in started] == ["ready\n"] * len(started)
    for one in started:
        one.stdin.write("go\n")
        one.stdin.flush()
    return [one.communicate()[0].split() for one in started]


@pytest.fixture
def helpers(repository):
    return str(repository / "tests" / "helpers")


def test_of_those_who_race_for_the_last_of_a_budget_just_so_many_win_as_it_pays_for(funded, database, helpers):
    each = [["spend", *(f"{who}{i}" for i in range(4))] for who in "abc"]
    won = race(database, helpers, *each)
    assert sum(map(len, won)) == 4
    catalog = open_catalog(database)
    assert set(read_account(catalog, DATA).losses) == {name for one in won for name in one}
    catalog.close()


def test_a_refund_and_a_drawing_exclude_each_other(ready, database, helpers):
    set_budget(ready, DATA, 100, 0)
    names = [f"r{i}" for i in range(12)]
    for name in names:
        pay(ready, name)
    refunded, drawn = race(database, helpers, ["refund", *names], ["draw", *reversed(names)])
    assert sorted(refunded + drawn) == sorted(names)
    assert read_account(ready, DATA).spent == (len(drawn), 0)


def test_what_may_be_drawn_for_once_is_drawn_for_by_one_of_those_who_race(ready, database, helpers):
    set_budget(ready, DATA, 100, 0)
    names = [f"r{i}" for i in range(12)]
    for name in names:
        pay(ready, name)
    won = race(database, helpers, *[["once", *names] for _ in "abc"])
    assert sorted(name for one in won for name in one) == sorted(names)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on a minute with each look."""

    class Clock(datetime):
        minute = 0

        @classmethod
        def now(cls, tz=None):
            cls.minute += 1
            return datetime(2026, 1, 1, 0, cls.minute, tzinfo=tz)

    monkeypatch.setattr("synthmap.catalog.account.datetime", Clock)


@pytest.mark.parametrize("end", [begin_drawing, refund])
def test_no_entry_tells_how_long_tables_took_to_read(funded, clock, end):
    for name, times in (
        ("r-20200102T030405Z-0123456789abcdef", {"2020-01-02T03:04:05+00:00"}),
        ("r-20200199T030405Z-0123456789abcdef", {"2026-01-01T00:01:00+00:00"}),
        ("r1", {"2026-01-01T00:02:00+00:00"}),
    ):
        pay(funded, name)
        end(funded, DATA, name)
        assert {one.body.time for one in read_account(funded, DATA).entries if one.body.name == name} == times
    told = summary(read_account(funded, DATA), "").entries
    assert [one.time for one in told[1:3]] == ["2020-01-02T03:04:05+00:00"] * 2
