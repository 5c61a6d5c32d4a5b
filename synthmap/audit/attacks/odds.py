"""How far an attack's answers move the odds between two neighbouring tables, with the bounds of Clopper and Pearson."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from synthmap.audit.statistical import FALSE_ALARM, epsilon_at_least

Says = Callable[[pl.DataFrame], pl.Series]
"""An attack: the numbers of the draws in which it claims the first of two tables."""


@dataclass(frozen=True)
class Odds:
    """What an attack achieved.

    Attributes
    ----------
    draws : int
        Of each of the two tables.
    right, wrong : int
        In how many draws of the first table, and of the other, the attack claimed the first.
    epsilon_at_least : float
        A lower bound on ε at the promised δ, wrong with a probability of at most `FALSE_ALARM`.
    """

    draws: int
    right: int
    wrong: int
    epsilon_at_least: float

    def posterior(self, prior: float) -> float:
        """Return how likely a claim is right, as counted, for somebody who thought it `prior` likely before."""
        claims = prior * self.right + (1.0 - prior) * self.wrong
        return prior * self.right / claims if claims else prior


def odds(says: Says, one: pl.DataFrame, other: pl.DataFrame, *, draws: int, delta: float) -> Odds:
    """Return what an attack achieves on `draws` published tables of each of two neighbours.

    (ε, δ)-DP bounds claims and their absence, in both directions: each of the four bounds takes a quarter of the
    probability of a false alarm.
    """
    right, wrong = says(one).n_unique(), says(other).n_unique()
    seen = np.array([right, wrong, draws - right, draws - wrong])
    found = epsilon_at_least(seen, seen[[1, 0, 3, 2]], draws, delta, false_alarm=FALSE_ALARM / 4)
    return Odds(draws, right, wrong, float(found.max()))
