"""Losses and marks of files for tests of the ledger."""

from fractions import Fraction

from synthmap.catalog.entries import Adjacency, Charge, Content, Kind, charge

CONTENT = Content(key="d" * 64, tables=("a" * 64,), columns={"count": "e" * 64}, public="b" * 64)


def loss(epsilon=1.0, delta=0.0, *, times=1, jobs=1, kind=Kind.RELEASE, rule="pdp", segments=False) -> Charge:
    """Return a loss of one part."""
    part = ("table", times, Fraction(epsilon), Fraction(delta))
    adjacency = Adjacency.ORIGIN_OR_SEGMENT if segments else Adjacency.ORIGIN
    return charge(kind, [part], adjacency=adjacency, rule=rule, max_jobs_per_worker=jobs)
