"""What an attacker looks at to tell two tables apart: scores of what is published, some learnt from draws of both."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64]
Score = Callable[[Draws], NDArray[np.float64]]


def scores(one: Draws, other: Draws, *, destinations: int) -> Iterator[tuple[str, Score]]:
    """Yield (name, score) of everything an attacker looks at; the last two are learnt from the draws.

    Parameters
    ----------
    one, other : ndarray of int64, shape (draws, figures)
        Of the two tables.
    destinations : int
        The first and the last of them are compared.
    """
    first, second = one.mean(axis=0), other.mean(axis=0)
    for figure in np.argsort(-np.abs(first - second))[:4].tolist():
        yield f"workers in figure {figure}", partial(_workers, figure)
    yield "workers in all", lambda x: x.sum(axis=1).astype(float)
    yield "figures above 0", lambda x: (x > 0).sum(axis=1).astype(float)
    if destinations > 1:
        yield "difference of two destinations", partial(_apart, destinations)
    weights = np.log((first + 0.01) / (second + 0.01))
    yield "sum weighted by means", lambda x: np.asarray(x @ weights, np.float64)
    yield "whole outcomes", _likelihood(one, other)


def _workers(figure: int, draws: Draws) -> NDArray[np.float64]:
    return draws[:, figure].astype(np.float64)


def _apart(destinations: int, draws: Draws) -> NDArray[np.float64]:
    """Return how many workers differ between the first and the last destination."""
    each = draws.reshape(len(draws), destinations, -1)
    apart: NDArray[np.float64] = np.abs(each[:, 0] - each[:, -1]).sum(axis=1).astype(np.float64)
    return apart


def _likelihood(one: Draws, other: Draws) -> Score:
    """Return the log of how much oftener an outcome was seen among `one` than among `other`."""
    mix = np.random.default_rng(1).integers(1, 2**63, one.shape[1], dtype=np.uint64)  # outcomes as numbers

    def numbers(x: Draws) -> NDArray[np.uint64]:
        return x.astype(np.uint64) @ mix

    known, which = np.unique(np.append(numbers(one), numbers(other)), return_inverse=True)
    seen = [np.bincount(part, minlength=known.size) for part in (which[: len(one)], which[len(one) :])]
    value = np.log((seen[0] + 0.5) / (seen[1] + 0.5))

    def score(x: Draws) -> NDArray[np.float64]:
        found = numbers(x)
        at = np.minimum(np.searchsorted(known, found), known.size - 1)
        return np.where(known[at] == found, value[at], 0.0)

    return score
