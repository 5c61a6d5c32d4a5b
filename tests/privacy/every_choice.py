"""Drive the real drawing code through every choice that its random stream could make, with exact weights.

The compiled kernels are run as the Python they were compiled from. `uniform_below` and `binomial` are
replaced by a script that is replayed until every branch has been taken. A large uniform integer is kept as an
interval, which splits only where the code compares or divides it, so planned α (denominators of 2^17) are no
problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import FunctionType

import numpy as np
import pytest

from synthmap.geography import prior
from synthmap.kernels import destination, urn
from synthmap.kernels.bounded import KEEP_UNITS


class Choices:
    def __init__(self) -> None:
        self.script: list[int] = []
        self.at = 0
        self.weight = Fraction(1)
        self.options: list[int] = []

    def pick(self, weights: list[Fraction | int]) -> int:
        total = sum(weights)
        if self.at == len(self.script):
            self.script.append(next(i for i, w in enumerate(weights) if w))
        chosen = self.script[self.at]
        following = next((i for i in range(chosen + 1, len(weights)) if weights[i]), -1)
        self.options = [*self.options[: self.at], following]
        self.at += 1
        self.weight *= Fraction(weights[chosen]) / total
        return chosen

    def paths(self, run: Callable[[], object]) -> Iterator[tuple[Fraction, object]]:
        """Yield (probability, result) of every path through `run`."""
        self.script = []
        while True:
            self.at, self.weight, self.options = 0, Fraction(1), []
            result = run()
            yield self.weight, result
            while self.options and self.options[-1] < 0:
                self.options.pop()
            if not self.options:
                return
            self.script = [*self.script[: len(self.options) - 1], self.options[-1]]

    def uniform_below(self, words: object, reader: object, bound: int) -> int | Unit:
        if bound <= 16:
            return self.pick([1] * int(bound))
        return Unit(self, 0, int(bound))

    def binomial(self, words: object, reader: object, trials: int, keep: int) -> int:
        p, trials = Fraction(int(keep), KEEP_UNITS), int(trials)
        return self.pick([math.comb(trials, v) * p**v * (1 - p) ** (trials - v) for v in range(trials + 1)])

    def untouched_cell(self, first, last, position, occupied, table, words, reader) -> int:
        """Stand in for a loop that tries until it succeeds: uniform over what it may return."""
        cells = [int(position[at]) if position.size else int(at) for at in range(first, last)]
        free = [cell for cell in cells if cell not in occupied and cell not in table]
        cell = free[self.pick([1] * len(free))]
        assert urn._insert(table, cell)
        return cell


class Unit:
    """A uniform integer in [low, high), plus an offset that is known."""

    __array_ufunc__ = None

    def __init__(self, choices: Choices, low: int, high: int, offset: int = 0) -> None:
        self.choices, self.low, self.high, self.offset = choices, low, high, offset

    def __lt__(self, other: int) -> bool:
        cut = min(max(int(other) - self.offset, self.low), self.high)
        below = self.choices.pick([cut - self.low, self.high - cut]) == 0
        if below:
            self.high = cut
        else:
            self.low = cut
        return below

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __le__(self, other: int) -> bool:
        return self < int(other) + 1

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __sub__(self, other: int) -> Unit:
        return Unit(self.choices, self.low, self.high, self.offset - int(other))

    def __add__(self, other: int) -> Unit:
        return Unit(self.choices, self.low, self.high, self.offset + int(other))

    __radd__ = __add__

    def __floordiv__(self, divisor: int) -> int:
        low, high, divisor = self.low + self.offset, self.high + self.offset, int(divisor)
        first, last = low // divisor, (high - 1) // divisor
        weights = [min(high, (v + 1) * divisor) - max(low, v * divisor) for v in range(first, last + 1)]
        return first + self.choices.pick(weights)


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> Choices:
    """The choices of a stream that is replaced everywhere in the drawing code."""
    made = Choices()
    for module in (urn, destination):
        monkeypatch.setattr(module, "uniform_below", made.uniform_below)
    monkeypatch.setattr(urn, "binomial", made.binomial)
    monkeypatch.setattr(urn, "_untouched_cell", made.untouched_cell)
    monkeypatch.setattr(urn, "_draw_dropping", urn._draw_dropping.py_func)
    monkeypatch.setattr(destination, "draw", urn.draw.py_func)
    monkeypatch.setattr(destination, "spread", destination.spread.py_func)
    names = {**vars(prior), "_piece": prior._piece.py_func}  # compiled code must keep the compiled one
    monkeypatch.setattr(destination, "rank_at", FunctionType(prior.rank_at.py_func.__code__, names))
    return made


def law_of(choices: Choices, run: Callable[[], np.ndarray], size: int) -> dict[tuple[int, ...], Fraction]:
    """Return the exact law of the histogram of `run`'s values, which lie in 0 … size − 1."""
    law: dict[tuple[int, ...], Fraction] = {}
    for weight, values in choices.paths(run):
        x = tuple(np.bincount(values, minlength=size).tolist())
        law[x] = law.get(x, Fraction(0)) + weight
    assert sum(law.values()) == 1
    return law
