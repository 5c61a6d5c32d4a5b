"""What a user would pick instead of synthmap: noisy histograms, thresholded ones, a top-down release."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.table import ODTable
from tests.benchmarks.worlds import World

Noise = Callable[[NDArray[np.int64]], NDArray[np.float64]]  # true counts in, noisy ones out


def projected(noisy: NDArray[np.float64], headcount: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return whole counts at least 0 that sum to each row's headcount: nearest in L2, then by largest remainders.

    Whole numbers less the same excess all have the same remainder, so who gets a unit more is drawn among equals.
    """
    ordered = -np.sort(-noisy, axis=1)
    excess = (np.cumsum(ordered, axis=1) - headcount[:, None]) / np.arange(1, noisy.shape[1] + 1)
    last = noisy.shape[1] - 1 - np.argmax((ordered > excess)[:, ::-1], axis=1)
    real = np.maximum(noisy - excess[np.arange(len(noisy)), last][:, None], 0)
    whole = np.floor(real).astype(np.int64)
    short = headcount - whole.sum(axis=1)
    row, column = np.nonzero(real)
    remainder = np.round((real - whole)[row, column], 9)  # equal ones differ by rounding
    order = np.lexsort((rng.random(row.size), -remainder, row))
    rank = np.arange(row.size) - np.searchsorted(row, row)  # `row` ascends, also in that order
    more = order[rank < short[row]]
    whole[row[more], column[more]] += 1
    return whole


def spread(world: World, counts: NDArray[np.int64], rng: np.random.Generator) -> ODTable:
    """Return workers by area placed in zones of the area by public weight; shape (destinations, areas) in."""
    order = np.argsort(world.area, kind="stable")
    weight = np.append(world.zones.weight, 1).astype(float)[order]
    cumulative = np.cumsum(weight)
    first = np.searchsorted(world.area[order], np.arange(counts.shape[1] + 1))
    before = np.append(0.0, cumulative)[first]
    d, area = np.nonzero(counts)
    workers = counts[d, area]
    d, area = np.repeat(d, workers), np.repeat(area, workers)
    empty = before[area + 1] == before[area]
    at = before[area] + rng.random(area.size) * (before[area + 1] - before[area])
    place = np.minimum(np.searchsorted(cumulative, at, side="right"), first[area + 1] - 1)
    place[empty] = first[area[empty]]
    return ODTable(order[place].astype(np.int32), world.destinations[d], np.ones(area.size, np.int64))


def opendp_noise(counts: NDArray[np.int64], epsilon: float, *, floating: bool) -> NDArray[np.float64]:
    """Return counts with OpenDP's Laplace noise (integers: the two-sided geometric), L1 sensitivity 2."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    kind = float if floating else int
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False) if floating else dp.atom_domain(T=int))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=2.0 / epsilon)
    assert measurement.map(kind(2)) <= epsilon * (1 + 1e-9)
    return np.array(measurement(counts.ravel().astype(kind).tolist()), float).reshape(counts.shape)


def geometric_by_tract(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    noisy = opendp_noise(world.by_area, epsilon, floating=False)
    return spread(world, projected(noisy, world.by_area.sum(axis=1), rng), rng)


def laplace_by_tract(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    noisy = opendp_noise(world.by_area, epsilon, floating=True)
    return spread(world, projected(noisy, world.by_area.sum(axis=1), rng), rng)


def largest_of_zones(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    """Noise on every zone, of which the n(d) largest counts are kept; then made to add up to the headcount."""
    return _noisy_zones(world, numpy_noise(epsilon, rng, floating=False), rng, keep_largest=True)


def laplace_by_zone(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    return _noisy_zones(world, numpy_noise(epsilon, rng, floating=True), rng)


def geometric_by_zone(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    return _noisy_zones(world, numpy_noise(epsilon, rng, floating=False), rng)


def numpy_noise(epsilon: float, rng: np.random.Generator, *, floating: bool) -> Noise:
    """Return noise of the law of `opendp_noise`, a hundred times as fast or more: zones are many."""
    if floating:
        return lambda counts: counts + rng.laplace(0.0, 2.0 / epsilon, counts.size)
    ratio = 1 - np.exp(-epsilon / 2)
    return lambda counts: (counts + rng.geometric(ratio, counts.size) - rng.geometric(ratio, counts.size)).astype(float)


def _noisy_zones(world: World, noise: Noise, rng: np.random.Generator, *, keep_largest: bool = False) -> ODTable:
    """One destination after the other, so that only the zones of one are in memory."""
    order = np.argsort(world.table.destination, kind="stable")
    starts = np.searchsorted(world.table.destination[order], world.destinations)
    out = []
    for d, low, high in zip(world.destinations, starts, np.append(starts[1:], order.size), strict=True):
        rows = order[low:high]
        true = np.zeros(len(world.zones) + 1, np.int64)
        np.add.at(true, world.table.origin[rows], world.table.count[rows])
        noisy, headcount = noise(true), int(true.sum())
        if keep_largest:
            noisy[np.argsort(-noisy - rng.random(noisy.size))[headcount:]] = 0.0  # whole, so this draws among equals
        origin = np.flatnonzero(noisy > noisy.max() - headcount).astype(np.int32)  # all others become 0
        counts = projected(noisy[None, origin], np.array([headcount]), rng)[0]
        out.append(ODTable(origin[counts > 0], np.full((counts > 0).sum(), d, np.int32), counts[counts > 0]))
    return _joined(out)


def stability(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    """OpenDP's stability histogram of occupied pairs; what it drops is drawn by the public weights."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = (
        dp.map_domain(dp.atom_domain(T=int), dp.atom_domain(T=int)),
        dp.l01inf_distance(dp.absolute_distance(T=int)),
    )

    def make(threshold: int) -> object:
        return dp.m.make_laplace_threshold(*space, scale=2.0 / epsilon, threshold=threshold)

    threshold = next(t for t in range(1, 10_000) if make(t).map((2, 2, 1))[1] <= delta)
    key = world.table.destination.astype(np.int64) * (len(world.zones) + 1) + world.table.origin
    kept = make(threshold)(dict(zip(key.tolist(), world.table.count.tolist(), strict=True)))
    pairs = np.array(list(kept), np.int64)
    order = np.argsort(pairs)
    destination, origin = pairs[order] // (len(world.zones) + 1), pairs[order] % (len(world.zones) + 1)
    count = np.array(list(kept.values()), np.int64)[order]
    weight = world.zones.weight / world.zones.weight.sum()
    out = []
    for d, headcount in zip(world.destinations, world.by_area.sum(axis=1), strict=True):
        mine = slice(*np.searchsorted(destination, [d, d + 1]))
        known = count[mine]
        if known.sum() > headcount:
            known = projected(known[None, :].astype(float), np.array([headcount]), rng)[0]
        drawn = rng.choice(weight.size, int(headcount - known.sum()), p=weight)
        both = np.append(origin[mine], drawn).astype(np.int32)
        workers = np.append(known, np.ones(drawn.size, np.int64))
        out.append(ODTable(both, np.full(both.size, d, np.int32), workers))
    return _joined(out)


def top_down(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    """inf-tda on each destination: areas within the next coarser level, where that has several units, then areas."""
    from unittest import mock

    import pandas as pd
    from InfTDA import mechanism

    noise = mechanism.make_gaussian_noise

    def copying(**scale: float) -> Callable[[NDArray[np.int64]], object]:
        """Pandas 3 hands out read-only arrays, which OpenDP refuses."""
        made = noise(**scale)
        return lambda values: made(values.copy())

    areas = world.by_area.shape[1]
    above = _above(world)
    levels = [[above[a] for a in range(areas)], list(range(areas))]
    told_apart = len(set(levels[0][:-1])) > 1  # the last is elsewhere; a level costs its part of ρ
    index = pd.MultiIndex.from_arrays(levels if told_apart else levels[1:])
    out = np.zeros_like(world.by_area)
    with mock.patch.object(mechanism, "make_gaussian_noise", copying):
        for i, counts in enumerate(world.by_area):
            told = pd.Series(counts.astype(np.int32), index=index)
            found = mechanism.inf_tda(told, (float(epsilon), float(delta)), 1)
            out[i, [key[-1] for key in found.index]] = found.to_numpy()
    return spread(world, out, rng)


def _above(world: World) -> NDArray[np.int32]:
    """Return the unit of the next coarser level of each area."""
    from synthmap.analysis.table import units_by_level

    units = units_by_level(world.zones)
    names = list(units)
    coarser = names.index(world.level) + 1
    out = np.zeros(int(world.area.max()) + 1, np.int32)
    if coarser < len(names):
        out[world.area] = units[names[coarser]]
    return out


def _joined(tables: list[ODTable]) -> ODTable:
    return ODTable(*(np.concatenate([getattr(t, name) for t in tables]) for name in ("origin", "destination", "count")))
