"""Releases of worlds written by hand."""

import pytest
from handmade import World, Zone, open_world


@pytest.fixture
def opened(tmp_path):
    """Open a release with zones at points, or of a world."""
    made = iter(range(100))

    def make(world):
        if not isinstance(world, World):
            zones = [Zone(name, ("all",), x, y) for name, (x, y) in world.items()]
            world = World(zones, [(zones[0].id, zones[0].id, (1,))], ("land",))
        return open_world(tmp_path / str(next(made)), world, memory=2**24)

    return make


@pytest.fixture
def names():
    """Return the ids of an area's zones."""
    from synthmap.published.areas.area import zone_ids
    from synthmap.published.places import ZONE
    from synthmap.published.table import units_of

    return lambda release, area: zone_ids(units_of(release, ZONE), area)
