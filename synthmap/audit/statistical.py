"""The statistical audit: many draws of two neighbouring tables, and the event that tells them apart best.

A quarter of the draws teaches what to look at, a quarter chooses the event, and on the other half its probabilities are
bounded: so the bound on ε errs with the stated probability only, however many events there were to choose from.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from synthmap.audit.events import Draws, Score, scores
from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.worlds import Table, World
from synthmap.kernels.stream import Stream
from synthmap.mechanism.chosen import synthesize

FALSE_ALARM = 1e-6  # at most so likely is a bound on ε above the truth, for each attack
_CUTS = 64  # of a score that are tried


@dataclass(frozen=True)
class StatisticalFinding:
    """What is promised in a world, and what an attack showed to be lost at least.

    Attributes
    ----------
    world, mechanism : str
    draws : int
        Of each of the two tables.
    promised_epsilon, promised_delta : float
        As asked for.
    epsilon_at_least : float
        A lower bound on ε at the promised δ, wrong with a probability of at most `FALSE_ALARM`.
    event : str
        What told the tables apart.
    """

    world: str
    mechanism: str
    draws: int
    promised_epsilon: float
    promised_delta: float
    epsilon_at_least: float
    event: str

    @property
    def holds(self) -> bool:
        """Whether the attack is no evidence against the promise."""
        return self.epsilon_at_least <= self.promised_epsilon


def epsilon_at_least(
    seen: NDArray[np.int64],
    seen_other: NDArray[np.int64],
    size: int,
    delta: float,
    *,
    false_alarm: float = FALSE_ALARM,
) -> NDArray[np.float64]:
    """Return lower bounds on ε from how often events happened among `size` draws of each of two tables.

    Parameters
    ----------
    seen, seen_other : ndarray of int64
        Draws of the table for which the event is the likelier one, and of the other.
    size : int
    delta : float
        Promised.
    false_alarm : float
        At most so likely is each bound above the truth.

    Notes
    -----
    ln((p − δ)/q) at the Clopper–Pearson bounds of p (lower) and q (upper).
    """
    each = false_alarm / 2
    low = np.where(seen > 0, stats.beta.ppf(each, np.maximum(seen, 1), size - seen + 1), 0.0)
    high = np.where(seen_other < size, stats.beta.ppf(1 - each, seen_other + 1, np.maximum(size - seen_other, 1)), 1.0)
    return np.asarray(np.log(np.maximum((low - delta) / high, 1.0)), np.float64)


def drawing(world: World, stream: Stream, mechanism: Mechanism = AS_IT_IS) -> Callable[[Table, int], Draws]:
    """Return a function that draws a table of `world` many times, through the code of a release.

    Every destination of every draw has a number of its own in `stream`, whatever was drawn before.
    """
    places, headcount = np.array(world.places, np.int32), np.array(world.headcount, np.int64)
    plan = mechanism.plan(world.region, places, headcount, world.settings)
    draw = mechanism.around(synthesize)
    done = 0

    def drawn(table: Table, draws: int) -> Draws:
        nonlocal done
        first, done = done, done + draws
        region, numbered = world.copies(plan, draws, first=first)
        found = draw(numbered, world.counts(table, draws), region, world.settings, stream)
        return world.outcomes(found, draws, first=first)

    return drawn


def attack(
    world: World,
    pair: tuple[Table, Table],
    stream: Stream,
    *,
    draws: int,
    mechanism: Mechanism = AS_IT_IS,
) -> StatisticalFinding:
    """Return what `draws` tables drawn from each of two neighbours tell.

    Parameters
    ----------
    world : World
    pair : tuple of tables
        Neighbours.
    stream : Stream
        Where the randomness comes from; every destination of every draw has a number of its own.
    draws : int
        Of each table, at least 4; half of them to choose the event, half to test it.
    mechanism : Mechanism
    """
    drawn = drawing(world, stream, mechanism)
    parts = [np.split(drawn(table, draws), [draws // 4, draws // 2]) for table in pair]
    taught, choosing, tested = zip(*parts, strict=True)
    looks = scores(*taught, destinations=len(world.places))
    chosen = _choose(looks, choosing, world.promised_delta)
    seen = [np.array([chosen.count(part)]) for part in tested]
    if chosen.reversed:
        seen.reverse()
    found = float(epsilon_at_least(seen[0], seen[1], len(tested[0]), world.promised_delta)[0])
    return StatisticalFinding(
        world=world.name,
        mechanism=mechanism.name,
        draws=draws,
        promised_epsilon=world.settings.epsilon,
        promised_delta=world.promised_delta,
        epsilon_at_least=found,
        event=chosen.name,
    )


@dataclass(frozen=True)
class _Event:
    """That a score is at least `cut`, or at most; `reversed` where it is likelier for the second table."""

    name: str
    score: Score
    cut: float
    at_least: bool
    reversed: bool

    def count(self, draws: Draws) -> int:
        """Return in how many draws it happens."""
        values = self.score(draws)
        return int((values >= self.cut if self.at_least else values <= self.cut).sum())


def _choose(looks: Iterable[tuple[str, Score]], draws: tuple[Draws, ...], delta: float) -> _Event:
    """Return the event that tells the draws of two tables apart best."""
    best, chosen = -1.0, None
    size = len(draws[0])
    for name, score in looks:
        values = [np.sort(score(part)) for part in draws]
        cuts = np.unique(np.concatenate(values))
        if cuts.size > _CUTS:
            cuts = cuts[np.linspace(0, cuts.size - 1, _CUTS).astype(int)]
        for at_least in (True, False):
            if at_least:
                seen = [size - np.searchsorted(part, cuts, side="left") for part in values]
            else:
                seen = [np.searchsorted(part, cuts, side="right") for part in values]
            for turned in (False, True):
                found = epsilon_at_least(seen[turned], seen[not turned], size, delta)
                at = int(found.argmax())
                if found[at] > best:
                    best = float(found[at])
                    words = f"{name} {'≥' if at_least else '≤'} {cuts[at]:.4g}"
                    chosen = _Event(words, score, float(cuts[at]), at_least, turned)
    if chosen is None:
        raise ValueError("there must be draws to choose from")
    return chosen
