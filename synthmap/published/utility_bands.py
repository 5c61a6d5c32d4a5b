"""Commutes by band of distance: what the public prior expects of each, and what was drawn."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.geography.sphere import arc_km, unit_vectors
from synthmap.published.expected import LENGTH_EDGES_KM
from synthmap.published.places import Places
from synthmap.published.store import OpenedRelease
from synthmap.release.manifest import PriorSummary

BANDS = len(LENGTH_EDGES_KM) - 1
ELSEWHERE_BAND = BANDS  # origins without a place, after those with a distance
PAIRS = 30_000_000  # pairs of destination and zone looked at for one answer: about a second
FEWEST = 50


@dataclass(frozen=True)
class Sample:
    """Destinations that stand for all of a release.

    Attributes
    ----------
    rows : ndarray of int64, shape (K,)
        Rows of the plan, ascending.
    workers : ndarray of float64, shape (K,)
        Synthetic workers that each stands for; they sum to those of the release.
    """

    rows: NDArray[np.int64]
    workers: NDArray[np.float64]


def sample_destinations(size: NDArray[np.int64], zones: int) -> Sample:
    """Return all destinations, or as many as `PAIRS` allow, chosen in proportion to their workers.

    Parameters
    ----------
    size : ndarray of int64
        Synthetic workers of each destination, at least 1.
    zones : int

    Notes
    -----
    Every M/K-th worker is taken, and the destination where it works: fixed, so an answer never changes, and for any
    figure Σ m·f its estimate is Σ workers·f over the sample.
    """
    most = max(FEWEST, PAIRS // max(1, zones))
    if size.size <= most:
        return Sample(np.arange(size.size), size.astype(float))
    step = size.sum() / most
    taken = np.searchsorted(np.cumsum(size), (np.arange(most) + 0.5) * step, side="right")
    rows, times = np.unique(taken, return_counts=True)
    return Sample(rows, times * step)


def prior_by_band(
    places: Places, prior: PriorSummary, at: NDArray[np.int64], scale_km: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the prior's share of each band seen from the zones at rows `at`, shape (destinations, BANDS + 1).

    `scale_km` is that of each destination's decay, as its plan tells. Distances are exact here; the mechanism takes
    them as equal over far groups of zones, so shares differ slightly.
    """
    weight = places.table["weight"].to_numpy().astype(float)
    points = unit_vectors(places.longitude, places.latitude)
    out = np.zeros((at.size, BANDS + 1))
    for i, row in enumerate(at):
        km = arc_km(points, points[row])
        out[i, :BANDS] = np.bincount(_band(km), weight * (1.0 + km / scale_km[i]) ** -prior.power, BANDS)
    total = out.sum(axis=1, keepdims=True)
    out *= (1.0 - prior.elsewhere_share) / np.where(total > 0, total, 1.0)
    out[:, ELSEWHERE_BAND] = prior.elsewhere_share
    return out


def drawn_by_band(opened: OpenedRelease, destinations: pl.Series, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of synthetic workers in each band, shape (destinations, BANDS + 1).

    Parameters
    ----------
    destinations : polars.Series
        Ids, ascending.
    at : ndarray of int64
        Their rows among the places.
    """
    places = opened.places
    first, last = pl.lit(destinations[0]), pl.lit(destinations[-1])
    wanted = pl.col("destination").is_between(first, last)  # lets row groups be skipped
    wanted &= pl.col("destination").is_in(destinations.implode())
    found = opened.collect(opened.flows.filter(wanted).select("origin", "destination", "count"))
    row = np.minimum(places.ids.search_sorted(found["origin"]).to_numpy(), len(places) - 1)
    known = (places.ids.gather(row) == found["origin"]).to_numpy()
    mine = destinations.search_sorted(found["destination"]).to_numpy()
    start, end = (unit_vectors(places.longitude[i], places.latitude[i]) for i in (row, at))
    band = np.where(known, _band(arc_km(start, end[mine])), ELSEWHERE_BAND)
    key = mine * (BANDS + 1) + band
    workers = np.bincount(key, found["count"].to_numpy(), at.size * (BANDS + 1)).reshape(at.size, BANDS + 1)
    total = workers.sum(axis=1, keepdims=True)
    return np.asarray(workers / np.where(total > 0, total, 1.0))


def _band(km: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.searchsorted(LENGTH_EDGES_KM, km, side="right") - 1)
