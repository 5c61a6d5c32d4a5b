"""Worlds in which the noisy histogram is audited, and those in which each broken one shows."""

from dataclasses import replace

from synthmap.audit import broken_histogram as broken
from synthmap.audit.mechanism import Mechanism
from synthmap.audit.worlds import SETTINGS, Table, World, four_zones, twelve_zones, two_zones
from synthmap.privacy.rule import Rule

_NOISY = replace(SETTINGS, mechanism="histogram")
_EVERY_ZONE = replace(_NOISY, elsewhere_share=0.0, cells=2)
_LIKELIEST = replace(_NOISY, agreement=True)  # such a table shows more of the counts than one of means
_GAUSSIAN = replace(_LIKELIEST, gaussian=True, rule=Rule.ADP, cells=2)


def exact_worlds() -> list[World]:
    """Return small worlds: one worker and two, both readings, coarsening by prior mass and distance, segments."""
    four, two = four_zones(), two_zones()
    return [
        World("noisy counts, 1 worker", four, (0,), (1,), _NOISY),
        World("noisy counts, likeliest units, 1 worker", four, (0,), (1,), _LIKELIEST),
        World("noisy counts, 2 workers", two, (0,), (2,), _NOISY),
        World("noisy counts, likeliest units, 2 workers", two, (0,), (2,), _LIKELIEST),
        World("noisy counts, two cells, 2 workers", four, (0,), (2,), replace(_LIKELIEST, cells=2)),
        World("noisy counts by distance, 1 worker", four, (0,), (1,), replace(_LIKELIEST, finest=1, cells=4)),
        World("noisy counts, two segments", two, (0,), (1,), replace(_LIKELIEST, segments=2, cells=2)),
        World("noisy counts, two destinations", two, (0, 1), (1, 1), replace(_LIKELIEST, cells=2)),
        World("Gaussian noise, 1 worker", four, (0,), (1,), replace(_GAUSSIAN, cells=3)),
        World("Gaussian noise, posterior means, 2 workers", two, (0,), (2,), replace(_GAUSSIAN, agreement=False)),
        World("Gaussian noise, 3 workers", two, (0,), (3,), replace(_GAUSSIAN, elsewhere_share=0.0)),
        World("Gaussian noise, two segments", two, (0,), (1,), replace(_GAUSSIAN, segments=2)),
    ]


def exact_controls() -> list[tuple[World, Mechanism]]:
    """Return broken histograms, each in a small world."""
    two = two_zones()
    pair = World("noisy counts, 2 workers", two, (0,), (2,), replace(_LIKELIEST, cells=2, elsewhere_share=0.0))
    lone = replace(pair, name="noisy counts, a lone worker", headcount=(1,))
    gaussian = replace(lone, name="Gaussian noise", settings=replace(_GAUSSIAN, elsewhere_share=0.0))
    return [
        (pair, broken.HALF_THE_SCALE),
        (lone, broken.EMPTY_CELLS_FORGOTTEN),
        (lone, broken.PRIOR_FROM_THE_COUNTS),
        (pair, broken.INTERVALS_FROM_THE_COUNTS),
        (replace(gaussian, headcount=(3,)), broken.SEVEN_TENTHS),
        (gaussian, broken.EMPTY_CELLS_FORGOTTEN),
    ]


def attacked() -> list[tuple[World, tuple[Table, Table], int]]:
    """Return larger worlds, two neighbouring tables of each, and how many draws to compare."""
    home = (0,) * 20 + (2,) * 10 + (4,) * 9 + (9,)
    pair = (home,), (tuple(sorted((0, *home[:-1]))),)
    town = replace(_NOISY, epsilon=1.0, cells=8)
    region = twelve_zones()
    settings = {
        "40 workers, noisy counts": town,
        "40 workers, noisy counts, likeliest units": replace(town, agreement=True),
        "40 workers, noisy counts by distance": replace(town, finest=1),
        "40 workers, noisy counts by the planner": replace(town, cells=0, epsilon=3.0),
        "40 workers, Gaussian noise": replace(town, gaussian=True, rule=Rule.ADP, delta=1e-3, agreement=True),
    }
    return [(World(name, region, (0,), (40,), one), pair, 20_000) for name, one in settings.items()]


def attacked_controls() -> list[tuple[World, tuple[Table, Table], int, Mechanism]]:
    """Return attacks on broken histograms."""
    world = World("two workers, noisy counts", two_zones(), (0,), (2,), replace(_EVERY_ZONE, agreement=True))
    pair = ((0, 0),), ((0, 1),)
    return [
        (world, pair, 60_000, broken.HALF_THE_SCALE),
        (world, pair, 10_000, broken.EMPTY_CELLS_FORGOTTEN),
        (world, pair, 10_000, broken.PRIOR_FROM_THE_COUNTS),
    ]
