"""Reconstruction from sums over many subsets, after Dinur and Nissim (PODS 2003), as a linear program.

The secret is, for each destination, how many of its workers live in some area; of a destination of one worker it is one
person's bit. The attacker asks only for sums over many destinations, each harmless by itself.
"""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

Answer = Callable[[Sequence[str]], float]
"""How many workers of these destinations, taken together, live in the area; of a table, of a service."""


def answers_from(table: pl.DataFrame, origins: Sequence[str]) -> Answer:
    """Return what answers from a table of flows how many workers of some destinations live in `origins`."""
    inside = table.filter(pl.col("origin").is_in(origins)).group_by("destination").agg(pl.col("count").sum())
    known = dict(inside.iter_rows())
    return lambda destinations: float(sum(known.get(one, 0) for one in destinations))


def random_subsets(queries: int, size: int, *, seed: int) -> NDArray[np.bool_]:
    """Return `queries` subsets of `size` destinations, each destination in half of them; shape (queries, size)."""
    return np.random.default_rng(seed).random((queries, size)) < 0.5


def ask(answer: Answer, destinations: Sequence[str], subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the answers for all subsets."""
    return np.array([answer([destinations[at] for at in np.flatnonzero(one).tolist()]) for one in subsets])


def reconstruct(
    subsets: NDArray[np.bool_], answers: NDArray[np.float64], headcount: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each destination how many of its workers live in the area, as the answers have it.

    Parameters
    ----------
    subsets : ndarray of bool, shape (queries, destinations)
    answers : ndarray of float64, shape (queries,)
        Sums over the subsets, exact or not.
    headcount : ndarray of int64, shape (destinations,)
        Public: no destination has more.

    Returns
    -------
    ndarray of int64, shape (destinations,)
        The x in [0, headcount] that minimises Σ |subsets·x − answers|, rounded.
    """
    queries, size = subsets.shape
    sums, slack = sparse.csr_array(subsets.astype(np.float64)), sparse.eye_array(queries)
    found = linprog(
        np.append(np.zeros(size), np.ones(queries)),
        A_ub=sparse.block_array([[sums, -slack], [-sums, -slack]]),
        b_ub=np.append(answers, -answers),
        bounds=[*((0.0, float(most)) for most in headcount), *([(0.0, None)] * queries)],
        method="highs",
    )
    if not found.success:
        raise ArithmeticError("the linear program must have a solution: x = 0 is one")
    return np.asarray(np.rint(found.x[:size]), np.int64)
