"""Averaging: many releases of one confidential table, each with noise of its own, which the mean does away with.

Each release moves the odds by at most exp(ε), and R of them by at most exp(R·ε): they must be charged so.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.audit.pairs import Law, Outcome


def averaged(tables: pl.DataFrame, *, implicates: int) -> pl.DataFrame:
    """Return the mean count of each flow over draws 0 … R − 1, R … 2R − 1, and so on, which are numbered from 0.

    Parameters
    ----------
    tables : polars.DataFrame
        Flows of many draws; a flow that a draw does not have counts as 0.
    implicates : int
        R, releases of one table.
    """
    group = pl.col("draw") // implicates
    mean = pl.col("count").sum() / implicates
    return tables.group_by(group, "origin", "destination").agg(mean).sort("draw", "destination", "origin")


def nearest_tables(means: pl.DataFrame, expected: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return (draw, name) of the expected table that the means come nearest to, by the sum of squares.

    Parameters
    ----------
    means : polars.DataFrame
        Made by `averaged`.
    expected : mapping of str to polars.DataFrame
        For each guess the flows that it makes one expect: `averaged` over releases that the attacker makes of tables
        that would be confidential if the guess were right. Plans are public, so anyone can.
    """
    pair = ["origin", "destination"]
    draws = means.select("draw").unique().sort("draw")
    distances = []
    for name, table in expected.items():
        shown = means.join(table.select(*pair, mean="count"), on=pair, how="left")
        # Σ (x − e)² = Σ e² + Σ over flows that occur of x² − 2·x·e
        apart = pl.col("count") ** 2 - 2 * pl.col("count") * pl.col("mean").fill_null(0.0)
        every = float((table["count"] ** 2).sum())
        distances.append(shown.group_by("draw").agg(distance=apart.sum() + every).with_columns(name=pl.lit(name)))
    best = pl.concat(distances).sort("draw", "distance", "name").group_by("draw", maintain_order=True).first()
    return draws.join(best, on="draw", how="left").select("draw", "name")


def beliefs(outcomes: Iterable[Outcome], one: Law[Outcome], other: Law[Outcome]) -> NDArray[np.float64]:
    """Return the logarithm of how far the odds of one table against another have moved after each outcome.

    Parameters
    ----------
    outcomes : iterable
        Releases, one after the other, each possible under one of the laws.
    one, other : mapping
        Exact laws of a release, see `synthmap.audit.exact.laws`.
    """

    def move(outcome: Outcome) -> float:
        here, there = one.get(outcome), other.get(outcome)
        if here and there:
            return math.log(here / there)
        return math.inf if here else -math.inf

    return np.array(list(accumulate(map(move, outcomes))))
