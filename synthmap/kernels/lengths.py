"""Commute lengths as whole numbers, added up by destination."""

import math

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.distance import great_circle_km

PARTS = 1000  # a length is a whole number of parts of the cap, which is the sensitivity of every sum


@compiled
def lengths_of(
    places: NDArray[np.float64],
    destination: NDArray[np.int32],
    first_row: NDArray[np.int64],
    origin: NDArray[np.int32],
    workers: NDArray[np.int64],
    cap_km: float,
) -> NDArray[np.int64]:
    """Return what is known of the lengths at each destination, shape (2, D): confidential.

    Parameters
    ----------
    places : ndarray of float64, shape (zones, 3)
        Unit vectors by rank.
    destination : ndarray of int32, shape (D,)
        Ranks.
    first_row : ndarray of int64, shape (D + 1,)
        Where the rows of each start.
    origin : ndarray of int32, shape (rows,)
        Ranks; the number of zones means elsewhere. Confidential.
    workers : ndarray of int64, shape (rows, S)
        By segment. Confidential.
    cap_km : float
        Longer commutes count as this long.

    Returns
    -------
    ndarray of int64, shape (2, D)
        The sum of the workers' lengths, each rounded to a whole number of parts of the cap; and the workers who live
        elsewhere, who are not in it.
    """
    out = np.zeros((2, destination.size), np.int64)
    for d in range(destination.size):
        here = places[destination[d]]
        for row in range(first_row[d], first_row[d + 1]):
            if origin[row] >= len(places):
                out[1, d] += workers[row].sum()
                continue
            share = min(1.0, great_circle_km(places[origin[row]], here) / cap_km)
            out[0, d] += workers[row].sum() * np.int64(math.floor(share * PARTS + 0.5))
    return out
