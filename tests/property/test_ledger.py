"""The ledger as a state machine: whatever workers, crashes and curators do in whatever order, a model agrees."""

import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule
from losses import CONTENT, loss

from synthmap.catalog import ledger
from synthmap.catalog.database import open_catalog
from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.ledger import begin_drawing, read_account, refund, set_budget, spend
from synthmap.errors import BudgetExceededError, BudgetMissingError, LedgerError

ROOM = 1 + Fraction(1, 2**40)
EPSILONS = st.sampled_from([0.1, 0.5, 1.0, 1e-9, 3.0])
DELTAS = st.sampled_from([0.0, 1e-6, 1e-5, 1e-12])
CHANGED = CONTENT.model_copy(update={"tables": ("c" * 64,), "columns": {"count": "c" * 64}})


class Crash(BaseException):
    """The process dies."""


class Ledger(RuleBasedStateMachine):
    """One dataset; losses are `paid`, `drawn` or `refunded`."""

    names = Bundle("names")

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'c.sqlite'}"
        self.catalog = open_catalog(self.url)
        put_dataset(self.catalog, Dataset("x", "X", (), (), "1"))
        self.budget, self.paid, self.content, self.entries = None, {}, {}, 0

    def live(self):
        return {name: charge for name, (charge, state) in self.paid.items() if state != "refunded"}

    def total(self):
        live = self.live().values()
        return sum((Fraction(one.epsilon) for one in live), Fraction(0)), sum(
            (Fraction(one.delta) for one in live), Fraction(0)
        )

    @rule(epsilon=st.sampled_from([0.3, 1.0, 4.0]), delta=st.sampled_from([0.0, 1e-5, 1e-4]))
    def set_budget(self, epsilon, delta):
        try:
            set_budget(self.catalog, "x", epsilon, delta)
        except LedgerError:
            assert self.budget is not None
            return
        assert self.budget is None
        self.budget = Fraction(str(epsilon)), Fraction(f"{delta:.20f}")
        self.entries += 1

    @rule(target=names, number=st.integers(0, 10**6))
    def name(self, number):
        return f"r{number}"

    @rule(name=names, epsilon=EPSILONS, delta=DELTAS, content=st.sampled_from([CONTENT, CONTENT, CHANGED]))
    def spend(self, name, epsilon, delta, content):
        charge = loss(epsilon, delta)
        first = next(iter(self.content[one] for one in self.live()), content)
        known = self.paid.get(name)
        sums = [a + Fraction(b) for a, b in zip(self.total(), (charge.epsilon, charge.delta), strict=True)]
        fits = self.budget is not None and all(a <= b * ROOM for a, b in zip(sums, self.budget, strict=True))
        again = known is not None and known[1] != "refunded" and known[0] == charge
        try:
            spend(self.catalog, "x", name, charge, content)
        except BudgetMissingError:
            assert self.budget is None
        except BudgetExceededError:
            assert known is None
            assert not fits
        except LedgerError:
            assert content != first or (known is not None and not again)
        else:
            assert content == first
            assert again or (known is None and fits)
            if not again:
                self.paid[name], self.content[name] = (charge, "paid"), content
                self.entries += 1

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def resume(self, data):
        """A second attempt pays nothing more."""
        name = data.draw(st.sampled_from(sorted(self.live())))
        spend(self.catalog, "x", name, self.live()[name], self.content[name])

    @rule(name=names)
    def draw(self, name):
        known = self.paid.get(name)
        try:
            begin_drawing(self.catalog, "x", name)
        except LedgerError:
            assert known is None or known[1] == "refunded"
            return
        assert known[1] in ("paid", "drawn")
        self.entries += known[1] == "paid"
        self.paid[name] = known[0], "drawn"

    @rule(name=names)
    def refund(self, name):
        known = self.paid.get(name)
        assert refund(self.catalog, "x", name) == (known is not None and known[1] == "paid")
        if known is not None and known[1] == "paid":
            self.paid[name] = known[0], "refunded"
            self.entries += 1

    @rule(epsilon=EPSILONS)
    def crash_while_spending(self, epsilon):
        """The process dies right before the transaction is durable: nothing has happened."""
        real = ledger._append

        def dying(*words):
            real(*words)
            raise Crash

        ledger._append = dying
        try:
            spend(self.catalog, "x", "dying", loss(epsilon), CONTENT)
        except (Crash, LedgerError, BudgetExceededError):
            pass
        finally:
            ledger._append = real
        self.reopen()

    @rule()
    def reopen(self):
        self.catalog.close()
        self.catalog = open_catalog(self.url)

    @invariant()
    def agrees(self):
        found = read_account(self.catalog, "x")
        assert found.spent == self.total()
        assert {name: one.drawn for name, one in found.losses.items()} == {
            name: self.paid[name][1] == "drawn" for name in self.live()
        }
        assert len(found.entries) == self.entries
        if self.budget is not None:
            assert all(spent <= most * ROOM for spent, most in zip(found.spent, self.budget, strict=True))

    def teardown(self):
        self.catalog.close()
        self.folder.cleanup()


TestLedger = Ledger.TestCase
TestLedger.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
