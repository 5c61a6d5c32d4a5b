"""A region: zones and their tree, as files that every worker process maps into memory. Public."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.geography.arrays import load
from synthmap.geography.distance import unit_vectors
from synthmap.geography.hierarchy import ZoneTree, build_tree, slots
from synthmap.geography.zones import ELSEWHERE, Zones

_TREE_FIELDS = ("nodes", "cumulative")
_LEVEL_FIELDS = ("level_start", "level_centre", "level_spread")


@dataclass(frozen=True)
class Region:
    """Zones in canonical order with the tree over them."""

    zones: Zones
    tree: ZoneTree

    @cached_property
    def names(self) -> pa.StringArray:
        """The id of each rank, that of everywhere else last."""
        return pa.concat_arrays([self.zones.ids, pa.array([ELSEWHERE], self.zones.ids.type)])

    @cached_property
    def position(self) -> NDArray[np.int32]:
        """Place of each rank, everywhere else included, in the order of ids: what tables are sorted by."""
        out = np.empty_like(self.rank_of_position)
        out[self.rank_of_position] = np.arange(out.size, dtype=np.int32)
        return out

    @cached_property
    def rank_of_position(self) -> NDArray[np.int32]:
        """The rank at each place of the id order; inverse of `position`."""
        before = pc.sum(pc.less(self.zones.ids, ELSEWHERE)).as_py()
        return np.insert(self.zones.by_id, before, len(self.zones))

    def points(self, ranks: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return unit vectors, shape (ranks, 3)."""
        return unit_vectors(self.zones.longitude[ranks], self.zones.latitude[ranks])


def make_region(zones: Zones) -> Region:
    """Return the region over `zones`."""
    return Region(zones, build_tree(zones))


def write_region(region: Region, directory: Path) -> None:
    """Write `region` to files in the existing `directory`."""
    zones, tree = region.zones, region.tree
    columns = {
        "id": zones.ids,
        "by id": zones.by_id,
        "longitude": zones.longitude,
        "latitude": zones.latitude,
        "weight": zones.weight,
        **{f"parent {i}": parent for i, parent in enumerate(zones.parents)},
    }
    if zones.shapes is not None:
        columns["shape"] = zones.shapes
    table = pa.table(columns).replace_schema_metadata({"vintage": zones.vintage, "levels": "\n".join(zones.levels)})
    with (
        pa.OSFile(str(directory / "zones.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table.combine_chunks())
    for name in _TREE_FIELDS:
        np.save(directory / f"tree-{name}.npy", getattr(tree, name))
    for name in _LEVEL_FIELDS:
        for i, values in enumerate(getattr(tree, name)[: len(zones.levels) + 1]):
            np.save(directory / f"{name}-{i}.npy", values)


@lru_cache(maxsize=2)
def open_region(directory: Path) -> Region:
    """Return the region written to `directory`, its arrays mapped from disk, copy on write."""
    with pa.memory_map(str(directory / "zones.arrow")) as source:
        table = pa.ipc.open_file(source).read_all().combine_chunks()
    metadata = table.schema.metadata
    levels = tuple(metadata[b"levels"].decode().split("\n")) if metadata[b"levels"] else ()

    def column(name: str) -> pa.Array:
        chunked = table[name]
        return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()

    zones = Zones(
        ids=column("id"),
        by_id=column("by id").to_numpy(),
        longitude=column("longitude").to_numpy(),
        latitude=column("latitude").to_numpy(),
        weight=column("weight").to_numpy(),
        levels=levels,
        parents=tuple(column(f"parent {i}") for i in range(len(levels))),
        vintage=metadata[b"vintage"].decode(),
        shapes=column("shape") if "shape" in table.column_names else None,
    )
    nodes, cumulative = (load(directory / f"tree-{name}.npy") for name in _TREE_FIELDS)
    each = {
        name: slots([load(directory / f"{name}-{i}.npy") for i in range(len(levels) + 1)]) for name in _LEVEL_FIELDS
    }
    tree = ZoneTree(nodes, cumulative, **each)
    return Region(zones, tree)
