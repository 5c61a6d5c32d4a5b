"""How well an outcome tells two exact laws apart."""

from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

Outcome = TypeVar("Outcome", bound=Hashable)
Law = Mapping[Outcome, Fraction]


def excess(law: Law[Outcome], other: Law[Outcome], ratio: Fraction) -> Fraction:
    """Return Σ (P − ratio·Q)₊: the δ at ε = ln(ratio) of this pair in this direction."""
    return sum((max(Fraction(0), p - ratio * other.get(x, 0)) for x, p in law.items()), Fraction(0))


def ratio_at(law: Law[Outcome], other: Law[Outcome], delta: Fraction) -> Fraction | None:
    """Return the least ratio, at least 1, at which `excess` is at most `delta`; None if there is none."""
    above = sum((p for x, p in law.items() if not other.get(x)), Fraction(0))
    if above > delta:
        return None
    below = Fraction(0)
    pairs = ((p / other[x], p, other[x]) for x, p in law.items() if other.get(x))
    for ratio, p, q in sorted(pairs, reverse=True):
        if above - ratio * below > delta:
            break
        above, below = above + p, below + q
    return max(Fraction(1), (above - delta) / below) if below else Fraction(1)


def failure(law: Law[Outcome], others: Iterable[Law[Outcome]], ratio: Fraction) -> Fraction:
    """Return how likely an outcome tells one of `others` apart by more than `ratio`, in either direction."""
    bad: set[Outcome] = set()
    for other in others:
        bad |= {x for x, p in law.items() if p > ratio * other.get(x, 0) or other.get(x, 0) > ratio * p}
    return sum((law[x] for x in bad), Fraction(0))
