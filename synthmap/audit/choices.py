"""Drive drawing code through every choice that its random stream could make, with exact weights.

Compiled kernels are run as the Python they were compiled from. `Choices.uniform_below` and `Choices.binomial` stand in
for the stream's and follow a script that is replayed until every branch has been taken. A large uniform integer is kept
as an interval, which splits only where the code compares or divides it, so planned α (denominators of 2^17) are no
problem.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from synthmap.geography import prior
from synthmap.kernels import destination, noise, reading, urn
from synthmap.kernels import histogram as kernel
from synthmap.kernels.noise import NOISE_UNITS
from synthmap.mechanism import dirichlet, histogram
from synthmap.mechanism.plan import PlanSettings
from synthmap.mechanism.table import SyntheticCounts

_FEW = 16  # uniform integers below so small a bound are told apart at once
Outcome = TypeVar("Outcome", bound=Hashable)


class Choices:
    """The choices of one run; `paths` runs all of them."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._options: list[int] = []
        self._at = 0
        self._weight = Fraction(1)

    def paths(self, run: Callable[[], Outcome]) -> Iterator[tuple[Fraction, Outcome]]:
        """Yield (probability, result) of every path through `run`, which must be the same whenever it is called."""
        self._script = []
        while True:
            self._at, self._weight, self._options = 0, Fraction(1), []
            result = run()
            yield self._weight, result
            while self._options and self._options[-1] < 0:
                self._options.pop()
            if not self._options:
                return
            self._script = [*self._script[: len(self._options) - 1], self._options[-1]]

    def law(self, run: Callable[[], Outcome]) -> dict[Outcome, Fraction]:
        """Return the exact probability of every result of `run`."""
        found: dict[Outcome, Fraction] = {}
        for weight, result in self.paths(run):
            found[result] = found.get(result, Fraction(0)) + weight
        if sum(found.values()) != 1:
            raise ArithmeticError("the probabilities of all paths must add up to 1")
        return found

    def pick(self, weights: Sequence[Fraction | int]) -> int:
        """Return the place of one of `weights`, in proportion to them."""
        if self._at == len(self._script):
            self._script.append(next(i for i, w in enumerate(weights) if w))
        chosen = self._script[self._at]
        following = next((i for i in range(chosen + 1, len(weights)) if weights[i]), -1)
        self._options = [*self._options[: self._at], following]
        self._at += 1
        self._weight *= Fraction(weights[chosen]) / sum(weights)
        return chosen

    def uniform_below(self, words: object, reader: object, bound: int) -> "int | Unit":
        """Stand in for `kernels.bounded.uniform_below`."""
        if bound <= _FEW:
            return self.pick([1] * int(bound))
        return Unit(self, [0, int(bound)])

    def binomial(self, words: object, reader: object, trials: int, units: int, bits: int) -> int:
        """Stand in for `kernels.bounded.binomial`."""
        p, trials = Fraction(int(units), 2 ** int(bits)), int(trials)
        return self.pick([math.comb(trials, v) * p**v * (1 - p) ** (trials - v) for v in range(trials + 1)])

    def geometric(self, words: object, reader: object, units: int, most: int) -> int:
        """Stand in for `kernels.noise.geometric`."""
        q = Fraction(int(units), NOISE_UNITS - int(units))
        return self.pick([*((1 - q) * q**g for g in range(most)), q**most])

    def free_cell(self, words: object, reader: object, taken: NDArray[np.bool_]) -> int:
        """Stand in for `kernels.noise.free_cell`, a loop that tries until it succeeds."""
        free = np.flatnonzero(~taken)
        return int(free[self.pick([1] * free.size)])

    def untouched_cell(
        self,
        first: int,
        last: int,
        position: NDArray[np.int64],
        occupied: NDArray[np.int64],
        table: NDArray[np.int64],
        words: object,
        reader: object,
    ) -> int:
        """Stand in for a loop that tries until it succeeds: uniform over what it may return."""
        cells = [int(position[at]) if position.size else int(at) for at in range(first, last)]
        free = [cell for cell in cells if cell not in occupied and cell not in table]
        cell = free[self.pick([1] * len(free))]
        urn._insert(table, cell)
        return cell


class Unit:
    """⌊(v + offset)/divisor⌋ for a uniform integer v in [low, high), which all that is made from it narrow down."""

    __array_ufunc__ = None

    def __init__(self, choices: "Choices", span: list[int], offset: int = 0, divisor: int = 1) -> None:
        self.choices, self.span, self.offset, self.divisor = choices, span, offset, divisor

    def __lt__(self, other: int) -> bool:
        low, high = self.span
        cut = min(max(int(other) * self.divisor - self.offset, low), high)
        below = self.choices.pick([cut - low, high - cut]) == 0
        self.span[:] = [low, cut] if below else [cut, high]
        return below

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __le__(self, other: int) -> bool:
        return self < int(other) + 1

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __sub__(self, other: int) -> "Unit":
        return self + -int(other)

    def __add__(self, other: int) -> "Unit":
        return Unit(self.choices, self.span, self.offset + int(other) * self.divisor, self.divisor)

    __radd__ = __add__

    def __floordiv__(self, divisor: int) -> "Unit":
        return Unit(self.choices, self.span, self.offset, self.divisor * int(divisor))

    def __index__(self) -> int:
        low, high = self.span
        first, last = (low + self.offset) // self.divisor, (high - 1 + self.offset) // self.divisor
        edges = [min(max(v * self.divisor - self.offset, low), high) for v in range(first, last + 2)]
        chosen = self.choices.pick([b - a for a, b in pairwise(edges)])
        self.span[:] = edges[chosen : chosen + 2]
        return first + chosen

    __int__ = __index__


def rebuilt(function: Callable[..., Any], **instead: Any) -> Callable[..., Any]:
    """Return `function` as the Python it was compiled from, with others in place of those it names.

    The module that holds it stays as it is.

    Raises
    ------
    NameError
        If `function` does not name what is to be replaced, or calls what names it too and is not replaced: the code has
        changed, and the choices would pass it by.
    """
    source = _python(function)
    named = _names(source.__code__)
    if unknown := instead.keys() - named:
        raise NameError(f"{source.__name__} must call {', '.join(sorted(unknown))}")
    names = {**source.__globals__, **instead}
    replaced = {(name, id(source.__globals__.get(name))) for name in instead}
    for called in sorted(named):
        if called not in instead and (passed := _named(source.__globals__.get(called)) & replaced):
            also = ", ".join(sorted(name for name, _ in passed))
            raise NameError(f"{source.__name__} calls {called}, which names {also} too: rebuild it")
    return FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)


def _python(function: Any) -> Any:
    """Return the Python that `function` was compiled from, or itself."""
    return getattr(function, "py_func", function)


def _names(code: CodeType) -> set[str]:
    """Return what some code names, comprehensions in it too."""
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


@cache
def _named(function: object) -> frozenset[tuple[str, int]]:
    """Return what a function of this package names, itself or through those it calls: name and identity."""
    found: set[tuple[str, int]] = set()
    waiting, seen = [_python(function)], []
    while waiting:
        source = waiting.pop()
        if not isinstance(source, FunctionType) or not source.__module__.startswith("synthmap.") or source in seen:
            continue
        seen.append(source)
        known = [(name, source.__globals__.get(name)) for name in _names(source.__code__)]
        found |= {(name, id(one)) for name, one in known}
        waiting += [_python(one) for _, one in known]
    return frozenset(found)


def draw(choices: Choices) -> Callable[..., Any]:
    """Return `kernels.urn.draw` driven by `choices`."""
    dropping = rebuilt(
        urn._draw_dropping,
        uniform_below=choices.uniform_below,
        binomial=choices.binomial,
        _untouched_cell=choices.untouched_cell,
    )
    return rebuilt(urn.draw, uniform_below=choices.uniform_below, _draw_dropping=dropping)


def synthesize(choices: Choices, settings: PlanSettings) -> Callable[..., SyntheticCounts]:
    """Return the `synthesize` of a mechanism driven by `choices`: all that a release does to draw a table."""
    return {"dirichlet": _dirichlet, "histogram": _histogram}[settings.mechanism](choices)


def _spread(choices: Choices) -> Callable[..., Any]:
    rank_in = rebuilt(prior.rank_in, piece_at=rebuilt(prior.piece_at))
    return rebuilt(destination.spread, uniform_below=choices.uniform_below, rank_in=rank_in)


def _dirichlet(choices: Choices) -> Callable[..., SyntheticCounts]:
    one = rebuilt(destination.synthesize_one, draw=draw(choices), spread=_spread(choices))
    many = rebuilt(destination.synthesize_many, synthesize_one=one)
    return rebuilt(dirichlet.synthesize, synthesize_many=many)


def _histogram(choices: Choices) -> Callable[..., SyntheticCounts]:
    geometric = choices.geometric
    signed = rebuilt(noise.two_sided, uniform_below=choices.uniform_below, geometric=geometric)
    add_noise = rebuilt(
        noise.add_noise,
        uniform_below=choices.uniform_below,
        gaussian=rebuilt(noise.gaussian, uniform_below=choices.uniform_below, reach=rebuilt(noise.reach)),
        reach=rebuilt(noise.reach),
        binomial=choices.binomial,
        free_cell=choices.free_cell,
        geometric=geometric,
        two_sided=signed,
    )
    whole_counts = rebuilt(reading.whole_counts)
    noisy_levels = rebuilt(kernel.noisy_levels, add_noise=add_noise)
    one = rebuilt(
        kernel.publish_one,
        noisy_levels=noisy_levels,
        uniform_below=choices.uniform_below,
        whole_counts=whole_counts,
        likely_counts=rebuilt(reading.likely_counts, whole_counts=whole_counts),
        spread=_spread(choices),
    )
    many = rebuilt(kernel.publish_many, publish_one=one)
    return rebuilt(histogram.synthesize, publish_many=many)
