"""The worlds that `synthmap audit` and the tests look at; each broken mechanism has one in which its breach shows."""

from dataclasses import dataclass, replace

from synthmap.audit import broken, broken_shares, chosen_histogram
from synthmap.audit.exact import ExactFinding, audit_exactly
from synthmap.audit.float_dirichlet import audit_float_dirichlet
from synthmap.audit.mechanism import AS_IT_IS, Mechanism
from synthmap.audit.statistical import StatisticalFinding, attack
from synthmap.audit.worlds import SETTINGS, Table, World, four_zones, twelve_zones, two_zones
from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism.plan import PlanSettings
from synthmap.privacy.rule import Rule

_TWO_CELLS = replace(SETTINGS, cells=2, elsewhere_share=0.0)
_PURE = replace(_TWO_CELLS, epsilon=1.0, rule=Rule.PURE)
_BETWEEN = {  # settings for four zones and everywhere else
    "cells of equal prior mass": SETTINGS,
    "two cells": replace(SETTINGS, cells=2),
    "every zone a cell": replace(SETTINGS, cells=5),
    "cells by the planner": replace(SETTINGS, cells=0, epsilon=4.0, delta=0.1),
    "cells by distance": replace(SETTINGS, finest=1, cells=4),
    "rule adp": replace(SETTINGS, rule=Rule.ADP, cells=4),
    "rule pure": replace(SETTINGS, rule=Rule.PURE),
    "dropping": replace(SETTINGS, keep=0.5, epsilon=2.5, cells=4),
    "dropping, rule adp": replace(SETTINGS, keep=0.75, epsilon=2.0, cells=4, rule=Rule.ADP),
    "dropping by prior": replace(SETTINGS, keep=0.25, epsilon=3.0, cells=4, keep_by_prior=True),
    "everywhere else in the last cell": replace(SETTINGS, elsewhere_share=0.0),
}


@dataclass(frozen=True)
class Attack:
    """Two neighbouring tables of a world, and how many draws of each to compare."""

    world: World
    pair: tuple[Table, Table]
    draws: int
    mechanism: Mechanism = AS_IT_IS


def exact_worlds() -> list[World]:
    """Return small worlds with every kind of plan.

    Every kind of coarsening, rule and dropping with one and two workers and five origins; three workers and three
    origins under the rules pdp and adp, with spreading inside cells, cells by distance and dropping; two segments with
    one worker and with two, also with dropping and with cells by distance; destinations of one and of two workers.
    """
    four, two = four_zones(), two_zones()
    found = [
        World(f"{name}, {workers} worker{'s' * (workers > 1)}", four, (0,), (workers,), settings)
        for workers in (1, 2)
        for name, settings in _BETWEEN.items()
    ]
    segments = replace(SETTINGS, segments=2)
    loose = replace(SETTINGS, epsilon=1.2, delta=0.25)  # so loose that failures are certified, not excluded
    of_three = {
        "three workers": loose,
        "three workers, rule adp": replace(SETTINGS, rule=Rule.ADP),
        "three workers, spread inside cells": replace(loose, cells=2),
        "three workers, cells by distance": replace(loose, finest=0),
        "three workers, dropping": replace(loose, keep=0.5, epsilon=2.0, delta=0.4),
    }
    return [
        *found,
        *(World(name, two, (0,), (3,), settings) for name, settings in of_three.items()),
        World("two segments, 1 worker", four, (0,), (1,), replace(segments, cells=2)),
        World("two segments, 2 workers", two, (0,), (2,), segments),
        World("two segments, dropping, 2 workers", two, (0,), (2,), replace(segments, cells=2, keep=0.5, epsilon=2.5)),
        World("two segments, cells by distance, 2 workers", two, (0,), (2,), replace(segments, finest=0)),
        World("two destinations", two, (0, 1), (1, 2), replace(_TWO_CELLS, epsilon=0.7, delta=0.6)),
        *chosen_histogram.exact_worlds(),
    ]


def exact_controls() -> list[tuple[World, Mechanism]]:
    """Return broken mechanisms, each in a small world."""
    two = two_zones()
    pair, lone = World("two workers", two, (0,), (2,), SETTINGS), World("a lone worker", two, (0,), (1,), _PURE)
    return [
        (pair, broken.ONLY_OCCUPIED_CELLS),
        (replace(pair, settings=replace(SETTINGS, rule=Rule.ADP)), broken.SEVEN_TENTHS),
        (replace(pair, settings=replace(SETTINGS, keep=0.5, epsilon=2.5)), broken.SEVEN_TENTHS),
        (replace(pair, headcount=(3,), settings=replace(SETTINGS, delta=0.2)), broken.SEVEN_TENTHS),
        (replace(lone, settings=replace(_TWO_CELLS, epsilon=6.0, delta=0.01)), broken.REFERENCE_RULE),
        (replace(lone, settings=replace(_TWO_CELLS, epsilon=1.6, keep=0.3)), broken.DROPPING_BY_THE_MAXIMUM),
        (pair, broken.SIZE_FROM_THE_DATA),
        (World("a lone worker beside two", two, (0, 1), (1, 2), _PURE), broken.LONE_WORKERS_FORGOTTEN),
        *chosen_histogram.exact_controls(),
    ]


def attacks() -> list[Attack]:
    """Return attacks on larger worlds, and on small ones in which the promise is used up."""
    lone, pair, twins, beside = _small()
    home = (0,) * 20 + (2,) * 10 + (4,) * 9 + (9,)
    town = replace(SETTINGS, epsilon=1.0, delta=1e-3, cells=8)
    settings: dict[str, PlanSettings] = {
        "40 workers": town,
        "40 workers, rule adp": replace(town, rule=Rule.ADP),
        "40 workers, cells by distance": replace(town, finest=1),
        "40 workers, cells by the planner": replace(town, cells=0, epsilon=4.0),
        "40 workers, dropping": replace(town, keep=0.9, epsilon=2.0),
        "40 workers, dropping by prior": replace(town, keep=0.8, keep_by_prior=True, epsilon=3.0),
    }
    region: Region = twelve_zones()
    return [
        Attack(*lone, 60_000),
        Attack(*pair, 30_000),
        Attack(*twins, 30_000),
        Attack(*beside, 30_000),
        *(
            Attack(World(name, region, (0,), (40,), one), ((home,), (tuple(sorted((0, *home[:-1]))),)), 20_000)
            for name, one in settings.items()
        ),
        *(Attack(*one) for one in chosen_histogram.attacked()),
    ]


def attack_controls() -> list[Attack]:
    """Return attacks on broken mechanisms."""
    lone, pair, twins, beside = _small()

    def changed(one: tuple[World, tuple[Table, Table]], settings: PlanSettings) -> tuple[World, tuple[Table, Table]]:
        return replace(one[0], settings=settings), one[1]

    def of_three(epsilon: float) -> tuple[World, tuple[Table, Table]]:
        """Return a lone worker of three cells, in the second or in the first."""
        settings = replace(SETTINGS, rule=Rule.PURE, epsilon=epsilon)
        return World("a lone worker, three cells", two_zones(), (0,), (1,), settings), (((1,),), ((0,),))

    return [
        Attack(*pair, 4_000, broken.ONLY_OCCUPIED_CELLS),
        Attack(*lone, 60_000, broken.SEVEN_TENTHS),
        Attack(*changed(lone, replace(_TWO_CELLS, epsilon=6.0, delta=0.01)), 40_000, broken.REFERENCE_RULE),
        Attack(*changed(lone, replace(_TWO_CELLS, epsilon=1.6, keep=0.3)), 60_000, broken.DROPPING_BY_THE_MAXIMUM),
        Attack(*twins, 4_000, broken.ONE_STREAM_FOR_TWO),
        Attack(*pair, 4_000, broken.SIZE_FROM_THE_DATA),
        Attack(*beside, 4_000, broken.LONE_WORKERS_FORGOTTEN),
        Attack(*of_three(7.5), 200_000, broken_shares.SHARES_IN_SINGLES),
        Attack(*of_three(8.7), 1_000_000, broken_shares.SHARES_IN_DOUBLES),
        *(Attack(*one) for one in chosen_histogram.attacked_controls()),
    ]


def _small() -> tuple[tuple[World, tuple[Table, Table]], ...]:
    """Return a lone worker, two workers, two lone workers, a lone worker beside two; each with its neighbours."""
    two = two_zones()
    return (
        (World("a lone worker", two, (0,), (1,), _PURE), (((0,),), ((1,),))),
        (World("two workers", two, (0,), (2,), _TWO_CELLS), (((0, 0),), ((0, 1),))),
        (World("two lone workers", two, (0, 1), (1, 1), _PURE), (((0,), (0,)), ((1,), (0,)))),
        (World("a lone worker beside two", two, (0, 1), (1, 2), _PURE), (((0,), (0, 1)), ((1,), (0, 1)))),
    )


def audit_exactly_all() -> tuple[list[ExactFinding], list[ExactFinding]]:
    """Return the findings of all exact audits, and of those of broken mechanisms."""
    broken_ones = [audit_exactly(world, mechanism) for world, mechanism in exact_controls()]
    return [audit_exactly(world) for world in exact_worlds()], [*broken_ones, audit_float_dirichlet(20.0)]


def attack_all(stream: Stream) -> tuple[list[StatisticalFinding], list[StatisticalFinding]]:
    """Return the findings of all attacks, and of those on broken mechanisms."""

    def run(one: Attack) -> StatisticalFinding:
        return attack(one.world, one.pair, stream, draws=one.draws, mechanism=one.mechanism)

    return [run(one) for one in attacks()], [run(one) for one in attack_controls()]
