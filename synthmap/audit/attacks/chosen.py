"""The attacks of the literature, each in a world where it should work, against no protection and against releases."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from synthmap.audit.attacks.averaging import averaged, nearest_tables
from synthmap.audit.attacks.linkage import linked_workplaces
from synthmap.audit.attacks.longest import farthest_homes
from synthmap.audit.attacks.odds import Says, odds
from synthmap.audit.attacks.reconstruction import answers_from, ask, random_subsets, reconstruct
from synthmap.audit.attacks.tables import Draw, places, released, unprotected
from synthmap.audit.broken import ONLY_OCCUPIED_CELLS
from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.statistical import StatisticalFinding
from synthmap.audit.worlds import SETTINGS, World, town_and_hamlet, two_zones
from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism.plan import PlanSettings
from synthmap.privacy.rule import Rule

HAMLET = "48"  # the remote zone
IMPLICATES = 8
_SIMULATED = 2_000  # releases that an attacker makes of each guess
_TOWN = replace(SETTINGS, epsilon=1.5, delta=1e-3, cells=12, elsewhere_share=0.05)


@dataclass(frozen=True)
class Literature:
    """An attack, and two tables that it should tell apart.

    Attributes
    ----------
    name : str
    world : World
    pair : tuple of polars.DataFrame
        Flows: what the attack claims, and another confidential table.
    prepare : callable
        Make the attack; it may draw releases of its own.
    draws : int
        Claims to make about each table.
    implicates : int
        Releases for each claim.
    changes : int
        Workers in whose origin the tables differ.
    """

    name: str
    world: World
    pair: tuple[pl.DataFrame, pl.DataFrame]
    prepare: Callable[["Literature", Draw], Says]
    draws: int
    implicates: int = 1
    changes: int = 1

    def against(self, draw: Draw, name: str, *, charged: int | None = None) -> StatisticalFinding:
        """Return what the attack achieves where tables are published by `draw`, called `name`.

        What it is held against is the loss of all releases of one claim, or of `charged` of them, for all workers that
        differ.
        """
        times = (self.implicates if charged is None else charged) * self.changes
        epsilon, delta = self.world.settings.epsilon * times, self.world.promised_delta * times
        says = self.prepare(self, draw)
        one, other = (draw(table, self.draws * self.implicates) for table in self.pair)
        found = odds(says, one, other, draws=self.draws, delta=delta)
        return StatisticalFinding(
            self.name,
            name,
            self.draws,
            epsilon,
            delta,
            found.epsilon_at_least,
            f"{found.right} to {found.wrong} claims",
        )


def literature() -> list[Literature]:
    """Return all attacks."""
    region = town_and_hamlet()
    ids = [f"{i:02}" for i in range(48)]
    shop, office = ids[0:44:4], ids[1:6]
    here = {"09": [*shop, HAMLET], "20": [*office, "30"]}
    town, resident, others = _told("town", region, _TOWN, here, here | {"09": [*shop, "47"]})
    swapped = _told("town", region, _TOWN, here, {"09": [*shop, "30"], "20": [*office, HAMLET]})
    lone = {workplace: [home] for workplace, home in zip(ids[:20], ids[::-1], strict=False)}
    alone = replace(_TOWN, cells=2, elsewhere_share=0.0)
    bits = _told("lone workers", region, alone, lone | {"00": ["17"]}, lone | {"00": ["47"]})
    small = replace(SETTINGS, epsilon=0.5, rule=Rule.PURE, cells=2, elsewhere_share=0.0)
    worker = _told("a lone worker", two_zones(), small, {"00": ["00"]}, {"00": ["01"]})
    return [
        Literature("linkage of a lone resident", town, (resident, others), _linkage, 12_000),
        Literature("linkage, one of two workplaces", swapped[0], swapped[1:], _linkage, 12_000, changes=2),
        Literature("the longest commute", town, (resident, others), _longest, 12_000),
        Literature("averaging", worker[0], worker[1:], _averaging, 4_000, implicates=IMPLICATES),
        Literature("reconstruction from subset sums", bits[0], bits[1:], _reconstruction, 320),
    ]


def _told(
    name: str, region: Region, settings: PlanSettings, *tables: dict[str, list[str]]
) -> tuple[World, pl.DataFrame, pl.DataFrame]:
    """Return a world and two tables of it, told as the homes of each destination's workers."""
    rank = {zone: at for at, zone in enumerate(region.zones.ids.to_pylist())}
    first, second = tables
    world = World(name, region, tuple(rank[d] for d in first), tuple(map(len, first.values())), settings)
    one, other = (
        pl.DataFrame(
            [(home, d, 1) for d, homes in table.items() for home in homes],
            schema=["origin", "destination", "count"],
            orient="row",
        )
        for table in (first, second)
    )
    return world, one, other


def audit_literature(
    stream: Stream, mechanism: Mechanism = AS_IT_IS
) -> tuple[list[StatisticalFinding], list[StatisticalFinding]]:
    """Return the findings of all attacks against releases, and against tables without protection."""
    found, controls = [], []
    for one in literature():
        draw = released(one.world, stream, mechanism)
        found.append(one.against(draw, mechanism.name))
        controls.append(one.against(unprotected, f"{one.name}, no protection"))
        if one.prepare is _linkage:
            blind = released(one.world, stream, ONLY_OCCUPIED_CELLS)
            controls.append(one.against(blind, f"{one.name}, {ONLY_OCCUPIED_CELLS.name}"))
        if one.implicates > 1:
            controls.append(one.against(draw, f"{one.implicates} releases charged as one", charged=1))
    return found, controls


def _workplaces(world: World) -> list[str]:
    return [str(world.region.zones.ids[rank].as_py()) for rank in world.places]


def _linkage(one: Literature, draw: Draw) -> Says:
    workplace = _workplaces(one.world)[0]

    def says(tables: pl.DataFrame) -> pl.Series:
        found = linked_workplaces(tables, origin=HAMLET)
        return found.filter(pl.col("destination") == workplace)["draw"]

    return says


def _longest(one: Literature, draw: Draw) -> Says:
    workplace, where = _workplaces(one.world)[0], places(one.world)

    def says(tables: pl.DataFrame) -> pl.Series:
        found = farthest_homes(tables, where, destination=workplace)
        return found.filter(pl.col("origin") == HAMLET)["draw"]

    return says


def _averaging(one: Literature, draw: Draw) -> Says:
    guesses = {
        name: averaged(draw(table, _SIMULATED), implicates=_SIMULATED)
        for name, table in zip(("one", "other"), one.pair, strict=True)
    }

    def says(tables: pl.DataFrame) -> pl.Series:
        found = nearest_tables(averaged(tables, implicates=one.implicates), guesses)
        return found.filter(pl.col("name") == "one")["draw"]

    return says


def _reconstruction(one: Literature, draw: Draw) -> Says:
    """Claim that the worker of the first destination lives in the first half of the zones, as they are laid out."""
    every, workplaces = places(one.world)["id"].to_list(), _workplaces(one.world)
    half = every[: len(every) // 2]
    headcount = np.array(one.world.headcount)
    subsets = random_subsets(2 * len(workplaces), len(workplaces), seed=1)

    def says(tables: pl.DataFrame) -> pl.Series:
        claims = []
        for (number,), table in tables.group_by("draw"):
            answers = ask(answers_from(table, half), workplaces, subsets)
            if reconstruct(subsets, answers, headcount)[0]:
                claims.append(number)
        return pl.Series("draw", claims, pl.Int64)

    return says
