"""A town counted by hand, and worlds of all kinds."""

import pytest
from handmade import World, Zone, open_world

# zones a1, a2 in A; b1 in B; c1 in C where nobody works; A and B next to each other, C far north
ZONES = [
    Zone("a1", ("A",), 10.0, 50.0),
    Zone("a2", ("A",), 10.1, 50.0),
    Zone("b1", ("B",), 10.2, 50.0),
    Zone("c1", ("C",), 10.0, 52.0),
]
FLOWS = [  # origin, destination, (young, old)
    ("a1", "a1", (4, 1)),
    ("a2", "a1", (3, 0)),
    ("b1", "a1", (2, 2)),
    ("elsewhere", "a1", (1, 0)),
    ("a1", "a2", (0, 6)),
    ("c1", "a2", (5, 5)),
    ("a1", "b1", (7, 0)),
    ("b1", "b1", (1, 8)),
    ("c1", "b1", (0, 2)),
    ("elsewhere", "b1", (0, 9)),
]
TOWN = World(ZONES, FLOWS, ("county",), ("young", "old"))


@pytest.fixture
def opened(tmp_path):
    """Open a release of a world written by hand."""
    made = iter(range(100))
    return lambda world, **options: open_world(tmp_path / str(next(made)), world, group=3, memory=2**24, **options)


@pytest.fixture
def town(opened):
    """The town's release."""
    return opened(TOWN)


@pytest.fixture
def rows():
    """Return the rows of an analysis as (keys…, workers, segments…)."""

    def of(found, *keys):
        return [
            (*(key.get(name) for name in keys), *workers)
            for key, workers in zip(found.keys, found.figures.workers.tolist(), strict=True)
        ]

    return of
