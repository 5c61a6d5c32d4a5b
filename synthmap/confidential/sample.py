"""A made-up region with made-up commuters, to try things on: no person and no place in it is real.

Zones are laid along a Hilbert curve that slows down where towns are, so every parent is compact, towns
have small zones and the open country large ones. Homes follow the law of intervening opportunities:
the number n of people between workplace and home has the density ``scale / (scale + n)²``, which in
the plane is population times a decay with distance like ``r⁻⁴``.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from synthmap.errors import ConfigurationError

LEVELS = ("region", "state", "county", "tract", "blockgroup")
SEGMENTS = ("SA01", "SA02", "SA03")
VINTAGE = "demo-1"
FILES = ("zones.parquet", "od.parquet", "spec.toml")

_CENTRE = (-45.0, 35.0)  # the middle of the North Atlantic, far from any land
_KM_PER_DEGREE = 111.195
_KM2_PER_ZONE = 0.3
_CURVE_ORDER = 26  # bits a coordinate along the Hilbert curve
_WIDTHS = (2, 2, 3, 4, 2, 3)  # digits each level adds to the id, the zone itself last
_REMOTE_SHARE = 0.04  # of zones, the loneliest ones
_DRIFTER_SHARE = 0.003  # of workers: they live in a remote zone, however far
_NEIGHBOUR_SHARE = 0.08  # of workers: they live around the corner
_COMMUTE_ZONES = 900.0  # scale of an ordinary commute, in zones of mean population
_CORNER_ZONES = 20.0
_LARGEST_SHARE = 0.02  # of all workers, at the largest destination
_BATCH = 500_000  # workers: small enough for the processor's cache
_MOST_BEDS = 2**26
_ROW_GROUP = 1_000_000
_ID = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema([("destination", _ID), ("origin", _ID), *((n, pa.int32()) for n in ("count", *SEGMENTS))])
_SPEC = f"""\
# A made-up region: nobody in it is real. `synthmap` releases it as it would release yours.
# Paths start at the directory of this file.

name = "demo"
title = "Commuting in a made-up region"
segments = "SA"            # columns {", ".join(SEGMENTS)}: three age classes that add up to count

[zones]
path = "zones.parquet"
vintage = "{VINTAGE}"         # tables and weights must name the same one
id = "id"                  # text: leading zeros matter
levels = ["{'", "'.join(LEVELS)}"]   # coarsest first
longitude = "longitude"
latitude = "latitude"
weight = "population"      # public: where people live

[[tables]]
path = "od.parquet"        # the confidential one
vintage = "{VINTAGE}"
format = "long"            # one row a pair
destination = "destination"
origin = "origin"
count = "count"

[privacy]                  # what is promised, for one job at one destination
epsilon = 4.0
delta = 1e-6
"""


@dataclass(frozen=True)
class _Land:
    """Zones in depth-first order."""

    longitude: NDArray[np.float64]
    latitude: NDArray[np.float64]
    population: NDArray[np.int64]
    density: NDArray[np.float32]  # zones a km², relative
    remote: NDArray[np.int64]  # which zones have few people and no town near


def write_sample(
    directory: Path,
    *,
    workers: int,
    zones: int,
    destinations: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, object]:
    """Return what was written to `directory`: the zones, commuters and spec of a made-up region.

    Parameters
    ----------
    directory : Path
        Made if it is not there; must not yet hold a file of these names.
    workers, zones, destinations : int
        Exact totals, each at least 1; as many workers and zones as destinations, or more.
    seed : int
        At least 0. The same arguments give the same files, byte for byte.
    progress : callable, optional
        Called now and then with the finished share, 0 to 1.

    Returns
    -------
    dict
        ``directory``, ``workers``, ``zones``, ``destinations`` and ``rows`` (pairs with a worker).

    Raises
    ------
    ConfigurationError
        If the totals are impossible, or a file is there already.

    Notes
    -----
    ``zones.parquet``: id, five nested parents, longitude, latitude, population. ``od.parquet``: one
    row a pair, sorted by destination: destination, origin, count, and SA01 to SA03, its parts.
    ``spec.toml``: a spec that releases them. Some workers live alone in a remote zone, far away.

    Only half a million workers are in memory at a time, or those of one destination if they are
    more. The stream is a plain generator: nothing here needs protection.
    """
    _check(directory, workers=workers, zones=zones, destinations=destinations, seed=seed)
    report = progress or (lambda share: None)
    rng = np.random.Generator(np.random.PCG64(seed))
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".sample-", dir=directory) as scratch:
        land = _land(rng, zones, workers)
        codes = _codes(rng, zones)
        ids = _write_zones(Path(scratch) / FILES[0], land, codes)
        report(0.1)
        places = _places(rng, land, destinations)
        headcounts = _headcounts(rng, workers, land.density[places])
        commuters = _Commuters(rng, land, places, headcounts)
        rows = _write_table(Path(scratch) / FILES[1], commuters, ids, places, headcounts, report)
        (Path(scratch) / FILES[2]).write_text(_SPEC, encoding="utf-8")
        for name in FILES:
            (Path(scratch) / name).rename(directory / name)
    report(1.0)
    totals = {"workers": workers, "zones": zones, "destinations": destinations}
    return {"directory": directory, **totals, "rows": rows}


def _check(directory: Path, **numbers: int) -> None:
    """Refuse totals that cannot be, and files that would be overwritten."""
    for name, value in numbers.items():
        if value < (least := 0 if name == "seed" else 1):
            raise ConfigurationError(f"{name} ({value}) must be at least {least}")
    for name in ("workers", "zones"):
        if numbers[name] < numbers["destinations"]:
            most = f"{name} ({numbers[name]})"
            raise ConfigurationError(f"destinations ({numbers['destinations']}) must be at most {most}")
    if directory.exists() and not directory.is_dir():
        raise ConfigurationError(f"directory ({directory}) must be a directory, not a file")
    if there := ", ".join(name for name in FILES if (directory / name).exists()):
        raise ConfigurationError(f"directory ({directory}) must not hold {there} yet; name an empty one")


def _land(rng: np.random.Generator, zones: int, workers: int) -> _Land:
    """Return points and populations of the zones."""
    side_km = np.sqrt(zones * _KM2_PER_ZONE)
    bits = int(np.clip(np.ceil(np.log2(side_km)), 6, 11))
    density = _town_density(rng, 1 << bits, side_km)
    tiles = np.arange(1 << 2 * bits)
    along = density[_hilbert_point(tiles, bits)]
    reached = np.concatenate(([0.0], np.cumsum(along)))
    at = (np.arange(zones) + rng.random(zones)) / zones * reached[-1]
    place = np.interp(at, reached, np.arange(tiles.size + 1.0))  # in tiles along the curve
    tile = np.minimum(place.astype(np.int64), tiles.size - 1)
    x, y = _hilbert_point((place * 4.0 ** (_CURVE_ORDER - bits)).astype(np.int64), _CURVE_ORDER)
    latitude = _CENTRE[1] + (y / 2**_CURVE_ORDER - 0.5) * side_km / _KM_PER_DEGREE
    shrink = _KM_PER_DEGREE * np.cos(np.radians(latitude))
    longitude = _CENTRE[0] + (x / 2**_CURVE_ORDER - 0.5) * side_km / shrink
    crowd = along[tile].astype(np.float32)
    population, remote = _population(rng, crowd, workers)
    return _Land(longitude.round(7), latitude.round(7), population, crowd, remote)


def _town_density(rng: np.random.Generator, side: int, side_km: float) -> NDArray[np.float64]:
    """Return zones a tile, relative: towns of Pareto size, the larger the wider, and open country."""
    towns = max(3, int(side_km**2 / 120))
    size = np.minimum((1 - rng.random(towns)) ** (-1 / 1.25), towns)
    kind = np.digitize(size, np.quantile(size, (0.7, 0.96)))
    tile = rng.integers(side * side, size=towns)
    density = np.zeros((side, side))
    for index, radius_km in enumerate((1.5, 4.0, 12.0)):
        peaks = np.bincount(tile[kind == index], size[kind == index], minlength=side * side)
        blur = radius_km * side / side_km
        density += gaussian_filter(peaks.reshape(side, side), blur, mode="nearest", truncate=3.0)
    country = 0.15 * density.mean() * (0.5 + rng.random((side, side)))
    return np.asarray(density + country, dtype=np.float64)


def _hilbert_point(index: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cell (x, y) at each place along a Hilbert curve of order `bits`."""
    x, y = np.zeros_like(index), np.zeros_like(index)
    for bit in range(bits):
        right = (index >> 2 * bit + 1) & 1
        upper = ((index >> 2 * bit) & 1) ^ right
        turned = np.where((right == 1) & (upper == 0), (1 << bit) - 1, 0)
        x, y = x ^ turned, y ^ turned
        x, y = np.where(upper == 1, x, y), np.where(upper == 1, y, x)
        x, y = x | right << bit, y | upper << bit
    return x, y


def _population(
    rng: np.random.Generator, density: NDArray[np.float32], workers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return heavy-tailed populations, a fifth of them 0, and the remote zones of 1 to 3 people."""
    zones = density.size
    mean = max(10.0, 2.1 * workers / zones)
    spread = np.exp(1.1 * rng.standard_normal(zones, dtype=np.float32) - 0.6)
    population = np.floor(mean / 0.8 * spread + rng.random(zones, dtype=np.float32))
    population[rng.random(zones, dtype=np.float32) < 0.2] = 0
    count = max(1, int(_REMOTE_SHARE * zones))
    remote = np.sort(np.argpartition(density, count - 1)[:count])
    population[remote] = rng.integers(1, 4, size=count)
    return population.astype(np.int64), remote


def _cuts(rng: np.random.Generator, children: int, parents: int) -> NDArray[np.int64]:
    """Return the first child of each of `parents` contiguous, non-empty ranges of uneven length."""
    step = children / parents
    slack = max(0.0, min(0.7, 1 - 1 / step))
    cuts = np.floor((np.arange(parents) + slack * rng.random(parents)) * step).astype(np.int64)
    cuts[0] = 0
    return cuts


def _codes(rng: np.random.Generator, zones: int) -> list[NDArray[np.int64]]:
    """Return a number for each zone's unit at every level, coarsest first, the zone itself last.

    A unit's number is its parent's with the place among its siblings appended, from 1.
    """
    groups = -(-zones // 30)
    tracts = -(-groups * 2 // 7)
    counties = min(tracts, max(4, tracts // 25))
    states = min(counties, max(2, counties // 60))
    sizes = [-(-states // 12), states, counties, tracts, groups, zones]
    codes = [np.arange(1, sizes[0] + 1)]
    parent_of = []
    for parents, children, width in zip(sizes, sizes[1:], _WIDTHS[1:], strict=False):
        first = _cuts(rng, children, parents)
        parent = np.repeat(np.arange(parents), np.diff(first, append=children))
        place = np.arange(children) - first[parent] + 1
        codes.append(codes[-1][parent] * 10**width + place)
        parent_of.append(parent)
    unit = np.arange(zones)
    for level in range(len(LEVELS) - 1, -1, -1):
        unit = parent_of[level][unit]
        codes[level] = codes[level][unit]
    return codes


def _text(code: NDArray[np.int64], width: int) -> pa.StringArray:
    """Return numbers as text, filled with leading zeros."""
    return pc.utf8_lpad(pa.array(code).cast(pa.string()), width, "0")


def _write_zones(path: Path, land: _Land, codes: list[NDArray[np.int64]]) -> pa.StringArray:
    """Return the ids of the zones, after writing all that is known of them."""
    ids = _text(codes[-1], sum(_WIDTHS))
    columns: dict[str, pa.Array] = {"id": ids}
    for depth, level in enumerate(LEVELS, start=1):
        starts = np.flatnonzero(np.diff(codes[depth - 1], prepend=-1))
        runs = np.repeat(np.arange(starts.size, dtype=np.int32), np.diff(starts, append=len(ids)))
        names = _text(codes[depth - 1][starts], sum(_WIDTHS[:depth]))
        columns[level] = pa.DictionaryArray.from_arrays(pa.array(runs), names)
    for name in ("longitude", "latitude", "population"):
        columns[name] = pa.array(getattr(land, name))
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=_ROW_GROUP, store_schema=False)
    return ids


def _places(rng: np.random.Generator, land: _Land, destinations: int) -> NDArray[np.int64]:
    """Return which zones are destinations, ascending: one of few people can be one, too."""
    pull = 0.3 * land.population.mean() + land.population
    key = rng.standard_exponential(pull.size) / pull
    return np.sort(np.argpartition(key, destinations - 1)[:destinations])


def _headcounts(rng: np.random.Generator, workers: int, density: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return headcounts ≥ 1 that add up to `workers`: Pareto, cut at a share, larger where it is dense."""
    destinations = density.size
    size = np.maximum((1 - rng.random(destinations)) ** (-1 / 1.1) - 1.25, 1e-3)  # many at the least
    share = max(_LARGEST_SHARE, 3 / destinations)
    blunt = 1 - 0.5 * rng.random(destinations)
    for _ in range(20):
        size = np.minimum(size, share * size.sum() * blunt)
    rank = np.argsort(np.log(density) + 1.5 * rng.standard_normal(destinations))
    wanted = np.empty(destinations)
    wanted[rank] = np.sort(size) * ((workers - destinations) / size.sum())
    headcounts = 1 + np.floor(wanted).astype(np.int64)
    if (rest := workers - int(headcounts.sum())) > 0:
        headcounts[np.argpartition(headcounts - wanted, rest - 1)[:rest]] += 1
    return headcounts


class _Commuters:
    """Draws homes and ages of the workers at a range of destinations.

    A position along the curve is counted in beds: one a person, fewer in a crowded region.
    """

    def __init__(
        self, rng: np.random.Generator, land: _Land, places: NDArray[np.int64], headcounts: NDArray[np.int64]
    ) -> None:
        self._rng = rng
        self._remote = land.remote
        self._zones = land.population.size
        self._headcounts = headcounts
        people = np.concatenate(([0], np.cumsum(land.population)))
        first = np.floor(people * min(1.0, _MOST_BEDS / people[-1])).astype(np.int64)
        self._beds = np.repeat(np.arange(self._zones, dtype=np.int32), np.diff(first))
        self._work = first[places]
        self._mean = self._beds.size / self._zones
        self._young, self._middle = (
            np.clip(256 * rng.normal(share, 0.06, places.size), 0, 255).astype(np.uint8) for share in (0.23, 0.77)
        )

    def pairs(self, start: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int64], list[NDArray[np.int32]]]:
        """Return destination (its place from `start`), origin and the count in each age class."""
        counts = self._headcounts[start:stop]
        home = self._homes(np.repeat(self._work[start:stop], counts))
        dice = self._rng.integers(256, size=home.size, dtype=np.uint8)
        bits = self._zones.bit_length()
        key = np.repeat(np.arange(stop - start) << bits + 2, counts)
        key |= home.astype(np.int64) << 2
        key += dice >= np.repeat(self._young[start:stop], counts)
        key += dice >= np.repeat(self._middle[start:stop], counts)
        key.sort()
        pair = key >> 2
        first = np.append(np.flatnonzero(pair[1:] != pair[:-1]) + 1, key.size)
        pair = pair[first - 1]
        age = key.astype(np.int8) & 3
        reached = (np.cumsum(age == kind, dtype=np.int32)[first - 1] for kind in (0, 1, 2))
        ages = [np.diff(until, prepend=np.int32(0)) for until in reached]
        return (pair >> bits).astype(np.int32), pair & (1 << bits) - 1, ages

    def _homes(self, work: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the home zone of workers whose workplaces lie at bed `work`."""
        offset = self._rng.random(work.size)
        offset *= 2
        offset -= 1
        kind = self._rng.random(work.size, dtype=np.float32)
        scale = np.where(kind < _NEIGHBOUR_SHARE, _CORNER_ZONES, _COMMUTE_ZONES) * self._mean
        offset *= scale / (1 + 1e-7 - np.abs(offset))
        bed = work + offset.astype(np.int64)
        bed %= 2 * self._beds.size  # reflected at both ends of the curve
        bed = np.minimum(bed, 2 * self._beds.size - 1 - bed)
        home: NDArray[np.int32] = self._beds[bed]
        lone = np.flatnonzero(kind > 1 - _DRIFTER_SHARE)
        home[lone] = self._rng.choice(self._remote, lone.size)
        return home


def _write_table(
    path: Path,
    commuters: _Commuters,
    ids: pa.StringArray,
    places: NDArray[np.int64],
    headcounts: NDArray[np.int64],
    report: Callable[[float], None],
) -> int:
    """Return the number of pairs, after writing them batch by batch while a thread draws ahead."""
    reached = np.concatenate(([0], np.cumsum(headcounts)))
    bounds = np.flatnonzero(np.diff(reached[:-1] // _BATCH, prepend=-1)).tolist()
    bounds.append(places.size)
    place_of = np.empty(len(ids), np.int32)
    rows = 0
    writer = pq.ParquetWriter(path, _SCHEMA, compression="zstd", store_schema=False)
    with writer, ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(commuters.pairs, 0, bounds[1])
        for start, stop, after in zip(bounds, bounds[1:], [*bounds[2:], None], strict=False):
            destination, origin, ages = ahead.result()
            if after is not None:
                ahead = pool.submit(commuters.pairs, stop, after)
            homes = np.unique(origin)
            place_of[homes] = np.arange(homes.size, dtype=np.int32)
            columns = [
                pa.DictionaryArray.from_arrays(destination, ids.take(pa.array(places[start:stop]))),
                pa.DictionaryArray.from_arrays(place_of[origin], ids.take(pa.array(homes))),
                *(pa.array(column) for column in (np.sum(ages, axis=0, dtype=np.int32), *ages)),
            ]
            writer.write_table(pa.table(columns, schema=_SCHEMA))
            rows += origin.size
            report(0.1 + 0.9 * float(reached[stop] / reached[-1]))
    return rows
