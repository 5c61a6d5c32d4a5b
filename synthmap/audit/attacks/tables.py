"""Many published tables of one confidential table: as it is, or drawn through the code of a release."""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.statistical import drawing
from synthmap.audit.worlds import Table, World
from synthmap.geography.zones import ELSEWHERE
from synthmap.kernels.stream import Stream

Draw = Callable[[pl.DataFrame, int], pl.DataFrame]
"""Make so many published tables of a confidential one, with a column ``draw``."""


def unprotected(table: pl.DataFrame, draws: int) -> pl.DataFrame:
    """Return `table` as it is, so many times: what is published without any protection."""
    return pl.DataFrame({"draw": np.arange(draws)}).join(table, how="cross")


def released(world: World, stream: Stream, mechanism: Mechanism = AS_IT_IS) -> Draw:
    """Return what draws releases of tables of `world`, each from random words of its own.

    Raises
    ------
    ValueError
        If the world has segments: attackers here look at flows alone.
    """
    if world.settings.segments != 1:
        raise ValueError(f"settings.segments ({world.settings.segments}) must be 1")
    drawn, names = drawing(world, stream, mechanism), _names(world)
    workplaces = names[list(world.places)]

    def draw(table: pl.DataFrame, draws: int) -> pl.DataFrame:
        rows = drawn(keys(world, table), draws).reshape(draws, len(world.places), world.origins)
        number, destination, origin = np.nonzero(rows)
        return pl.DataFrame(
            {
                "draw": number,
                "origin": names[origin],
                "destination": workplaces[destination],
                "count": rows[number, destination, origin],
            }
        )

    return draw


def keys(world: World, table: pl.DataFrame) -> Table:
    """Return flows between ids as a confidential table of `world`.

    Raises
    ------
    ValueError
        If an id is unknown, or the workers of a destination are not its public headcount.
    """
    rank = {name: at for at, name in enumerate(_names(world).tolist())}
    place = {name: at for at, name in enumerate(_names(world)[list(world.places)].tolist())}
    workers: list[list[int]] = [[] for _ in world.places]
    for origin, destination, count in table.select("origin", "destination", "count").iter_rows():
        if origin not in rank or destination not in place:
            raise ValueError(f"flow ({origin} to {destination}) must be between zones of the world")
        workers[place[destination]] += [rank[origin]] * count
    if [len(here) for here in workers] != list(world.headcount):
        raise ValueError("the workers of each destination must be as many as its headcount")
    return tuple(tuple(sorted(here)) for here in workers)


def places(world: World) -> pl.DataFrame:
    """Return the zones' ids and internal points, as ``zones.parquet`` of a release has them."""
    zones = world.region.zones
    return pl.DataFrame({"id": zones.ids.to_pylist(), "longitude": zones.longitude, "latitude": zones.latitude})


def _names(world: World) -> NDArray[np.str_]:
    return np.array([*world.region.zones.ids.to_pylist(), ELSEWHERE])
