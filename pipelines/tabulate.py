"""Stage 1: read a confidential table once, in blocks, into files sorted by destination."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.stage import attempt, stage
from synthmap.confidential.table import one_row_a_worker, read_table
from synthmap.geography.region import open_region
from synthmap.spec import Spec


@dataclass(frozen=True)
class Tabulated:
    """Where the blocks of a table lie."""

    blocks: tuple[Path, ...]
    one_row_a_worker: bool


@stage
def tabulate(spec: Spec, index: int, region_directory: Path, directory: Path) -> tuple[Tabulated, NDArray[np.int64]]:
    """Return the blocks of table number `index` of `spec`, written to `directory`, and its public headcounts.

    Each block is three arrays, sorted by the destination's place in the order of ids: that place, the origin's rank,
    workers by segment. `headcount` counts workers by place, shape (zones + 1,).
    """
    region = open_region(region_directory)
    table = spec.tables[index]
    headcount = np.zeros(region.position.size, np.int64)
    blocks = []
    chunks = read_table(table, region.zones, segments=spec.segment_columns, outside=spec.outside)
    stem = attempt(directory, "table")
    for number, chunk in enumerate(chunks):
        place = region.position[chunk.destination]
        order = np.argsort(place, kind="stable")
        headcount += np.bincount(place, chunk.counts.sum(axis=1), headcount.size).astype(np.int64)
        path = stem.with_name(f"{stem.name}-{number}")
        np.save(f"{path}-destination.npy", place[order])
        np.save(f"{path}-origin.npy", chunk.origin[order])
        np.save(f"{path}-workers.npy", chunk.counts[order])
        blocks.append(path)
    return Tabulated(tuple(blocks), one_row_a_worker(table)), headcount
