"""Stage 1: read a confidential table once, in blocks, into files sorted by destination."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.places import fetch, results
from pipelines.stage import attempt, stage
from synthmap.confidential.table import read_table
from synthmap.geography.arrays import row_sums, rows_at
from synthmap.geography.region import open_region
from synthmap.spec import Spec

HEADCOUNT = "headcount.npy"


@dataclass(frozen=True)
class Stretch:
    """The part of a table that one task reads: number `part` of `of`. How many there are tells nothing of the table."""

    table: int
    part: int
    of: int


@stage
def tabulate(spec: Spec, stretch: Stretch, region_directory: Path, directory: Path) -> Path:
    """Return the directory, in `directory`, of the blocks of a stretch of a table, and of its headcounts.

    Each block is three arrays, sorted by the destination's place in the order of ids: that place, the origin's rank,
    workers by segment. And two for its rows from off the map, sorted likewise: that place, a number for the origin's
    id. Headcounts count workers by place, shape (zones + 1,). Only their sum over all tables is public: one table may
    hold just those who live elsewhere. So nothing but the directory's name is returned.
    """
    region = open_region(fetch(region_directory, directory))
    table = spec.tables[stretch.table]
    table = table.model_copy(update={"path": fetch(table.path, directory)})
    headcount = np.zeros(region.position.size, np.int64)
    part = (stretch.part, stretch.of)
    chunks = read_table(table, region.zones, segments=spec.segment_columns, outside=spec.outside, part=part)
    with results(directory) as here:
        blocks = attempt(here, "table")
        blocks.mkdir()
        for number, chunk in enumerate(chunks):
            place = region.position[chunk.destination]
            order = np.argsort(place, kind="stable")
            headcount += np.bincount(place, row_sums(chunk.counts), headcount.size).astype(np.int64)
            np.save(blocks / f"{number}-destination.npy", place[order])
            np.save(blocks / f"{number}-origin.npy", chunk.origin[order])
            np.save(blocks / f"{number}-workers.npy", rows_at(chunk.counts, order))
            far = place[chunk.origin == len(region.zones)]
            order = np.argsort(far, kind="stable")
            np.save(blocks / f"{number}-far.npy", far[order])
            np.save(blocks / f"{number}-beyond.npy", chunk.beyond[order])
        np.save(blocks / HEADCOUNT, headcount)
    return directory / blocks.name
