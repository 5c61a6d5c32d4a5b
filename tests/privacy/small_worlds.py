"""Exact enumeration of small destinations: nothing here shares code or floats with what it checks.

A `World` is one destination: n workers, k cells, m synthetic workers, one α for every cell, a keep
probability for each cell. All probabilities are integers over one common denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

Histogram = tuple[int, ...]


def histograms(total: int, cells: int) -> Iterator[Histogram]:
    """Yield every way to put `total` workers into `cells` cells."""
    if cells == 1:
        yield (total,)
        return
    for value in range(total + 1):
        for rest in histograms(total - value, cells - 1):
            yield (value, *rest)


def neighbours(counts: Histogram) -> Iterator[tuple[int, int, Histogram]]:
    """Yield (left, entered, histogram) for every move of one worker."""
    for left, value in enumerate(counts):
        if value:
            for entered in range(len(counts)):
                if entered != left:
                    moved = list(counts)
                    moved[left] -= 1
                    moved[entered] += 1
                    yield left, entered, tuple(moved)


def rising(start: Fraction, steps: int) -> Fraction:
    result = Fraction(1)
    for t in range(steps):
        result *= start + t
    return result


@dataclass(frozen=True)
class World:
    n: int
    k: int
    m: int
    alpha: Fraction
    keep: Fraction | tuple[Fraction, ...] = Fraction(1)

    @cached_property
    def keeps(self) -> tuple[Fraction, ...]:
        return self.keep if isinstance(self.keep, tuple) else (Fraction(self.keep),) * self.k

    @cached_property
    def every(self) -> list[Histogram]:
        return list(histograms(self.n, self.k))

    @cached_property
    def representatives(self) -> list[Histogram]:
        """One histogram of each shape when cells are alike, else all of them."""
        if len(set(self.keeps)) > 1:
            return self.every
        return [counts for counts in self.every if list(counts) == sorted(counts, reverse=True)]

    @cached_property
    def outputs(self) -> list[Histogram]:
        return list(histograms(self.m, self.k))

    def _mix(self, needed: frozenset[int], occupied: frozenset[int]) -> Fraction:
        """Return Σ over kept sets ⊇ `needed` of P(kept set) / (n + A)_m, given the occupied cells."""
        weights = [Fraction(1)]
        for cell in range(self.k):
            if cell in occupied:
                continue
            keep = self.keeps[cell]
            if cell in needed:
                weights = [w * keep for w in weights]
            else:
                longer = [Fraction(0)] * (len(weights) + 1)
                for size, w in enumerate(weights):
                    longer[size] += w * (1 - keep)
                    longer[size + 1] += w * keep
                weights = longer
        return sum(
            (w / rising(self.n + (len(needed) + size) * self.alpha, self.m) for size, w in enumerate(weights) if w),
            Fraction(0),
        )

    @cached_property
    def _laws(self) -> tuple[dict[Histogram, dict[Histogram, int]], int]:
        p, q = self.alpha.numerator, self.alpha.denominator
        power = [[1] * (self.m + 1) for _ in range(self.n + 1)]
        for v in range(self.n + 1):
            for x in range(self.m):
                power[v][x + 1] = power[v][x] * (q * (v + x) + p)
        mixes: dict[tuple[frozenset[int], frozenset[int]], Fraction] = {}
        keys: dict[tuple[Histogram, Histogram], tuple[frozenset[int], frozenset[int]]] = {}
        occupied = {c: frozenset(i for i, v in enumerate(c) if v) for c in self.every}
        support = {x: frozenset(i for i, v in enumerate(x) if v) for x in self.outputs}
        for counts in self.every:
            for x in self.outputs:
                key = (occupied[counts] | support[x], occupied[counts])
                keys[counts, x] = key
                if key not in mixes:
                    mixes[key] = self._mix(*key)
        common = math.lcm(*(value.denominator for value in mixes.values()))
        scaled = {key: value.numerator * (common // value.denominator) for key, value in mixes.items()}
        coefficient = {x: math.factorial(self.m) // math.prod(math.factorial(v) for v in x) for x in self.outputs}
        laws = {
            counts: {
                x: coefficient[x]
                * math.prod(power[v][y] for v, y in zip(counts, x, strict=True))
                * scaled[keys[counts, x]]
                for x in self.outputs
            }
            for counts in self.every
        }
        return laws, common * q**self.m

    def probability(self, counts: Histogram, x: Histogram) -> Fraction:
        laws, one = self._laws
        return Fraction(laws[counts][x], one)

    def failure_at(self, counts: Histogram, ratio: Fraction) -> Fraction:
        """Return P(some neighbour is told apart by more than `ratio`, in either direction | counts)."""
        laws, one = self._laws
        law = laws[counts]
        others = [laws[other] for _, _, other in neighbours(counts)]
        up, down = ratio.numerator, ratio.denominator
        bad = 0
        for x, p in law.items():
            if any(p * down > up * other[x] or other[x] * down > up * p for other in others):
                bad += p
        return Fraction(bad, one)

    def failure(self, ratio: Fraction) -> Fraction:
        """Return the true δ of (ln ratio, δ)-probabilistic DP."""
        return max(self.failure_at(counts, ratio) for counts in self.representatives)

    def adp(self, ratio: Fraction) -> Fraction:
        """Return the true δ of (ln ratio, δ)-DP."""
        laws, one = self._laws
        up, down = ratio.numerator, ratio.denominator
        worst = max(
            sum(max(0, p * down - up * laws[other][x]) for x, p in laws[counts].items())
            for counts in self.representatives
            for _, _, other in neighbours(counts)
        )
        return Fraction(worst, one * down)

    def worst_ratio(self) -> Fraction:
        laws, _ = self._laws
        best = (0, 1)
        for counts in self.representatives:
            for _, _, other in neighbours(counts):
                for x, p in laws[counts].items():
                    if p * best[1] > best[0] * laws[other][x]:
                        best = (p, laws[other][x])
        return Fraction(*best)
