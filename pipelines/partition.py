"""Stage 2: collect a partition's destinations from all blocks and check for double pairs."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.places import fetch, results
from pipelines.stage import attempt, stage
from pipelines.tabulate import Stretch
from synthmap.confidential.duplicates import merge_tables
from synthmap.confidential.table import Chunk, one_row_a_worker
from synthmap.geography.arrays import load, rows_at
from synthmap.geography.region import Region, open_region
from synthmap.mechanism.lengths import LengthClasses, LengthSums, class_of_each, length_sums, public_decay
from synthmap.mechanism.table import Counts
from synthmap.spec import Spec

_DESTINATION = 100  # workers that cost as much to collect, plan and draw as a destination does without any
CLASSES, SUMS = "class.npy", "lengths.npy"


@dataclass(frozen=True)
class Partition:
    """Destinations whose places in the order of ids are in [first, last)."""

    first: int
    last: int


def partitions(headcount: NDArray[np.int64], number: int) -> list[Partition]:
    """Return at most `number` partitions of about equal work, from public headcounts."""
    places = np.flatnonzero(headcount)
    cost = np.cumsum(headcount[places] + _DESTINATION)
    cuts = np.searchsorted(cost, np.arange(1, number) * (cost[-1] / number))
    edges = np.unique(np.concatenate([[0], cuts, [places.size]]))
    bounds = [int(places[e]) if e < places.size else headcount.size for e in edges]
    bounds[0] = 0
    return [Partition(a, b) for a, b in itertools.pairwise(bounds)]


@stage
def collect(
    spec: Spec,
    partition: Partition,
    tables: Sequence[tuple[Stretch, Path]],
    headcount: NDArray[np.int64],
    classes: LengthClasses | None,
    region_directory: Path,
    directory: Path,
) -> Path:
    """Return the directory to which the confidential counts of a partition were written.

    `tables` are the directories of the blocks of all stretches. `headcount` is that of the partition's places. Every
    pair occurs once afterwards, by the spec's policy. If lengths are to be measured, the class of each destination,
    which is public, and the sums by class are there too.
    """
    region = open_region(fetch(region_directory, directory))
    each = [
        (one_row_a_worker(spec.tables[stretch.table]), _rows(fetch(blocks, directory), partition, region))
        for stretch, blocks in tables
    ]
    listed, flows = (
        [chunk for one_row, chunks in each if one_row == kind for chunk in chunks] for kind in (True, False)
    )
    destination, origin, workers = merge_tables(listed, flows, policy=spec.duplicates, zones=region.zones)
    order = np.argsort(region.position[destination], kind="stable")  # within a destination origins ascend already
    destination, origin, workers = destination[order], origin[order], rows_at(workers, order)
    starts = np.append(np.flatnonzero(np.diff(destination, prepend=-1)), destination.size)
    ranks = region.rank_of_position[partition.first + np.flatnonzero(headcount)].astype(np.int32)
    headcount = headcount[headcount > 0]
    with results(directory) as here:
        path = attempt(here, "partition")
        path.mkdir()
        np.save(path / "destination.npy", ranks)
        np.save(path / "headcount.npy", headcount)
        np.save(path / "first.npy", starts)
        np.save(path / "origin.npy", origin)
        np.save(path / "workers.npy", workers)
        if classes is not None:
            of = class_of_each(region, public_decay(spec), classes, ranks)
            sums = length_sums(region, classes, of, ranks, headcount, Counts(starts, origin, workers))
            np.save(path / CLASSES, of)
            np.save(path / SUMS, np.stack(sums))
    return directory / path.name


def _rows(blocks: Path, partition: Partition, region: Region) -> list[Chunk]:
    """Return the rows of a partition in each block of a table."""
    bounds = [partition.first, partition.last]
    rows = []
    for path in sorted(blocks.glob("*-destination.npy")):
        of = path.name.removesuffix("destination.npy")
        place, origin, workers, far, beyond = (
            load(blocks / f"{of}{name}.npy", "r") for name in ("destination", "origin", "workers", "far", "beyond")
        )
        here, away = (slice(*np.searchsorted(sorted_places, bounds)) for sorted_places in (place, far))
        if here.start < here.stop:
            destination = region.rank_of_position[place[here]]
            rows.append(Chunk(destination, origin[here], workers[here], beyond[away]))
    return rows


def read_headcounts(path: Path) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the destinations in the directory of a partition, as ranks, and their headcounts. Public."""
    return load(path / "destination.npy"), load(path / "headcount.npy")


def read_classes(path: Path) -> NDArray[np.int64]:
    """Return the classes of the destinations in the directory of a partition whose lengths were measured. Public."""
    return load(path / CLASSES)


def read_counts(path: Path) -> Counts:
    """Return the confidential counts in the directory of a partition."""
    return Counts(*(load(path / f"{name}.npy") for name in ("first", "origin", "workers")))


def read_sums(path: Path) -> LengthSums:
    """Return the sums of lengths in the file `SUMS` of a partition: all but workers confidential."""
    return LengthSums(*load(path))
