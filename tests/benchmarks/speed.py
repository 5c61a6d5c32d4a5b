"""How near to the machine's limit the work is: ``python -m tests.benchmarks.speed [PART …]``.

Ratios are taken side by side in one run, medians of several. Parts: ``kernel``, ``planning``, ``whole``, ``growth``,
``workers``; ``large`` (20 million workers) and ``nation`` (130 million), which are run only where they are named.

Where the time goes (progress, 5 million workers, 250,000 zones, 50,000 destinations, one process with one worker, warm,
9.0 s in a slow hour): zones 4 %, reading 17, collecting 10, planning 18, drawing 40, verifying and publishing
6, between 4.
Zones, verifying, publishing and what lies between are the driver's and take as long with two workers. The first run
calibrates each new headcount and number of cells, too: 43 µs each, 1 s in all. Starting takes 2.3 s of imports (numba
and what it loads of scipy, Dask, polars, pandas for pyarrow), in each process.

By destination (50,000 zones, 100 workers, one thread; in brackets with 500,000 zones, a larger region): the prior takes
6.6 µs (8.4), of which the walk through the tree 4.6 (6.0); surveying up to 64 cells 3.2, which a fiftieth (a
thirteenth) of the destinations do again with 256 for 30; cutting 13 cells (18) 2.2 (2.5), finding those of workers 1.4,
the urn 0.6, spreading 4.4 (5.1), sorting 1.3; then random words and writing, half as much again. Rhode Island, 0.43 s
in a quiet hour: zones 0.05, reading 0.10, collecting 0.05, lengths 0.02, planning 0.07, drawing 0.10, publishing 0.04.

What made a difference, in turns with the code before: nodes of one cache line; the decay of all pieces at once; pieces
where the mass is (242 of them instead of 345, as exact; 176 instead of 340 in Rhode Island); splits along the nodes
visited for pieces, without a search (64 cells: 2.2 µs instead of 4.7), from a mass that a tenth more nodes have than
are asked for (instead of half more); their order by counting how many are in each small step of mass (380 splits: 4 µs
instead of 12), that of workers by counting them (0.2 instead of 2.9); noise of lengths digit by digit
(0.001 s instead of 0.1 to 0.3 of one worker while others wait); calibrations looked up once a headcount; partitions
even by what a destination costs (14 + 0.19·workers µs to draw); no sampling by Dask (two workers a twentieth faster,
one a hundredth); rows of three segments summed by `einsum` and moved by `take` (2 ms instead of 8 for 500,000).

What did not: nodes of 32 bytes, several walks side by side with or without branches, touching nodes beforehand, large
pages (files have them already), fewer cells looked at first, planning after all is collected, more or other partitions,
reading a block of CSV ahead, finding a zone by its share of a piece's weight or without branches, more stretches of a
table (collecting loses what reading gains), smaller groups of rows. Ids that are dictionaries already make files a
fifth smaller and take a third longer to write. A loop of no turns in the walk's condition, or one more condition, costs
1 µs a prior. Drawing a partition as soon as it was planned gained next to nothing, and needed a check that what is
drawn is what is stated after a worker was lost; writing the zones while tables are read a second time saved 3 %, but
progress told how soon a fault was found. ISA-L unpacks gzip in a quarter of the time, but Arrow's threads would call
Python for it: a process that ends early then hangs or aborts. Two threads get 1.6 to 1.7 times as much done as one in a
kernel on its own.

10 times the zones: a larger region has a quarter more pieces, as more of its mass is far, and longer commutes, so that
four times as many destinations are looked at with 256 cells. In one thread, without writing, it takes 43 µs a
destination instead of 34.6. Where each zone of the same region is cut in ten, pieces and cells stay as they are;
spreading takes longer (more zones in a piece; 39.5 µs in all), and a quarter more pairs are written, with three times
as many ids in a group of rows: 16 µs instead of 10.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.cluster import local_cluster
from pipelines.release import release
from synthmap.compiled import compiled
from synthmap.confidential.sample import write_sample
from synthmap.geography.read import read_zones
from synthmap.geography.region import Region, make_region
from synthmap.kernels.stream import seeded_stream
from synthmap.kernels.urn import draw
from synthmap.mechanism.chosen import plan_destinations
from synthmap.mechanism.plan import settings_of
from synthmap.spec import Spec, read_spec
from tests.benchmarks import worlds

RUNS = 5
SHORT: list[str] = []  # figures below what was asked
SYNTHMAP = str(Path(sys.executable).with_name("synthmap"))


def asked(what: str, found: float, *, least: float | None = None, most: float | None = None) -> None:
    """Print a figure beside what is asked of it, and keep it where it falls short."""
    bounds = [f" (asked: at {word} {one:g})" for word, one in (("least", least), ("most", most)) if one is not None]
    told = f"{what}: {found:.3g}{''.join(bounds)}"
    print(told, flush=True)
    if (least is not None and found < least) or (most is not None and found > most):
        SHORT.append(told)


def timed(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median seconds of `work`, after one run that is not counted."""
    work()
    found = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def sampled(directory: Path, workers: int, zones: int, destinations: int) -> Spec:
    """Return the spec of a made-up region, written to `directory`."""
    write_sample(directory, workers=workers, zones=zones, destinations=destinations, seed=1)
    return read_spec(directory / "spec.toml")


# kernel


@compiled
def _fill(words: NDArray[np.uint64], out: NDArray[np.int64], bound: int) -> None:
    """Fill `out` with uniform integers below `bound` as fast as a loop can, by Lemire's rule; calls nothing of ours."""
    wide, half, low = np.uint64(bound), np.uint64(32), np.uint64(0xFFFFFFFF)
    wide_low, wide_high = wide & low, wide >> half
    reject, at = (np.uint64(0) - wide) % wide, 0
    for i in range(out.size):
        word = words[at]
        at += 1
        while word * wide < reject:
            word = words[at]
            at += 1
        word_low, word_high = word & low, word >> half
        upper, lower = word_high * wide_low, word_low * wide_high
        carried = ((word_low * wide_low) >> half) + (upper & low) + (lower & low)
        out[i] = word_high * wide_high + (upper >> half) + (lower >> half) + (carried >> half)


@compiled
def _urns(homes: NDArray[np.int64], size: int, cells: int, words: NDArray[np.uint64]) -> int:
    none, start, keep = np.empty(0, np.int64), np.array([0, cells]), np.array([1 << 16])
    reader = np.zeros(1, np.int64)
    total = 0
    for d in range(homes.size // size):
        total += draw(homes[d * size : (d + 1) * size], size, cells, 3, 8, none, start, keep, words, reader)[0]
    return total


def kernel(_: Path) -> None:
    """Draw 2 million workers of 10,000 destinations from 50,000 cells, in memory."""
    size, destinations, cells = 200, 10_000, 50_000
    rng = np.random.default_rng(1)
    homes = np.sort(rng.integers(0, cells, (destinations, size)), axis=1).reshape(-1)
    words, out = seeded_stream(1).words(0, 2 * homes.size), np.empty(homes.size, np.int64)
    filled = timed(lambda: _fill(words, out, 1_000_003))
    drawn = timed(lambda: _urns(homes, size, cells, words))
    fresh = timed(lambda: seeded_stream(1).batch(np.arange(destinations), np.full(destinations, size + 2)))
    some = 20  # destinations that numpy draws: each costs the same

    def dense() -> None:
        for d in range(some):
            alpha = np.full(cells, 0.375)
            np.add.at(alpha, homes[d * size : (d + 1) * size], 1.0)
            rng.multinomial(size, rng.dirichlet(alpha))

    numpy = timed(dense, 3) / some * destinations
    print(
        f"kernel: {homes.size:,} draws in {drawn:.4f} s, words {fresh:.4f} s more; an array filled with as "
        f"many bounded integers in {filled:.4f} s, words as many; dense vector {numpy:.0f} s"
    )
    asked("kernel: share of the rate of filling from the stream", (filled + fresh) / (drawn + fresh), least=0.3)
    asked("kernel: the same with words at hand", filled / drawn)
    asked("kernel: times as fast as the dense vector", numpy / (drawn + fresh), least=100)


# planning


def _destinations(region: Region, number: int, headcount: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    ranks = np.linspace(0, len(region.zones) - 1, number).astype(np.int32)
    return ranks, np.random.default_rng(1).geometric(1 / headcount, number).astype(np.int64)


def planning(directory: Path) -> None:
    """Plan 5,000 destinations of Rhode Island's zones, one core."""
    if (worlds.DATA / "lodes7_ri_2019").is_dir():
        spec = worlds.world(worlds.RHODE_ISLAND, directory).spec
    else:
        spec = sampled(directory / "planning", 200_000, 25_000, 5_000)
    region = make_region(read_zones(spec.zones))
    ranks, headcount = _destinations(region, 5_000, 56)
    for cells in (100, "auto"):
        settings = settings_of(spec.model_copy(update={"plan": spec.plan.model_copy(update={"cells": cells})}), region)
        seconds = timed(lambda s=settings: plan_destinations(region, ranks, headcount, s))
        name = f"planning: {len(region.zones):,} zones, cells {cells}: µs a destination"
        asked(name, seconds / ranks.size * 1e6, most=50 if cells == 100 else None)


# whole runs


@contextmanager
def warm(spec: Spec, workers: int, *, processes: bool) -> Iterator[Callable[[], tuple[float, float]]]:
    """Yield what releases `spec` on a cluster that has done so before.

    It returns the seconds it took, and those from the first task to the last: what is divided among workers.
    """
    with local_cluster(workers, processes=processes) as cluster:

        def run() -> tuple[float, float]:
            seen: dict[tuple[str, bool], float] = {}

            def progress(stage: str, done: int, total: int) -> None:
                seen[stage, done == total] = time.perf_counter()

            seconds = release(spec, scheduler=cluster, progress=progress).seconds
            return seconds, seen["draw", True] - seen["read", False]

        run()
        yield run


def measured(arguments: list[str]) -> tuple[float, float]:
    """Return seconds and peak memory (GB; shared pages counted once) of a `synthmap` command with all its children."""
    began, peak = time.perf_counter(), 0
    process = psutil.Popen([SYNTHMAP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            family = [process, *process.children(recursive=True)]
            peak = max(peak, sum(one.memory_full_info().pss for one in family))
        except psutil.Error:
            pass
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"synthmap {' '.join(arguments)} failed")
    return time.perf_counter() - began, peak / 1e9


def whole(directory: Path) -> None:
    """Release Rhode Island 2019, main and auxiliary jobs; or a made-up region of its size."""
    if (worlds.DATA / "lodes7_ri_2019").is_dir():
        spec_path = directory / "ri.toml"
        spec_path.write_text(worlds.RHODE_ISLAND_WITH_AUX.format(data=worlds.DATA))
        spec = read_spec(spec_path)
    else:
        spec = sampled(directory / "whole", 476_789, 25_181, 8_505)
        spec_path = directory / "whole" / "spec.toml"
    spec = spec.model_copy(update={"store": directory / "releases"})

    def copied() -> float:
        began = time.perf_counter()
        for table in spec.tables:
            pq.read_table(table.path) if table.path.suffix == ".parquet" else pacsv.read_csv(table.path)
        for source in [spec.zones.path, *([spec.zones.weights.path] if spec.zones.weights else [])]:
            pq.read_table(source) if source.suffix == ".parquet" else pacsv.read_csv(source)
        for table in written:
            pq.write_table(table, directory / "copy.parquet", compression="zstd")
        return time.perf_counter() - began

    with warm(spec, os.cpu_count() or 1, processes=False) as run:
        newest = sorted((directory / "releases").iterdir())[-1]
        written = [pq.read_table(path) for path in newest.rglob("*.parquet")]
        copied()
        pairs = [(run()[0], copied()) for _ in range(2 * RUNS + 1)]  # one after the other: the machine's speed changes
    ours, theirs = (statistics.median(one) for one in zip(*pairs, strict=True))
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    process = [measured(["release", str(spec_path)]) for _ in range(3)]
    command = [SYNTHMAP, "--help"]
    start = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    print(
        f"whole: {ours:.2f} s without start-up, {statistics.median(ratios):.1f} times ({ratios[0]:.1f} to "
        f"{ratios[-1]:.1f}) only reading the same files and writing the same tables with pyarrow ({theirs:.2f} s); as "
        f"a process {statistics.median(s for s, _ in process):.1f} s, {max(gb for _, gb in process):.2f} GB; "
        f"synthmap --help {start:.2f} s"
    )
    asked("whole: times pyarrow", statistics.median(ratios), most=4)
    asked("whole: synthmap --help, s", start, most=0.5)


def growth(directory: Path) -> None:
    """Release regions of 10 times the workers, and of 10 times the zones with the same workers, in turns.

    These zones make a larger region, or the same one: each zone cut in ten.
    """
    sizes = {
        "base": (1_000_000, 50_000, 10_000),
        "workers × 10": (10_000_000, 50_000, 10_000),
        "all × 10": (10_000_000, 500_000, 100_000),
        "zones × 10": (1_000_000, 500_000, 10_000),
        "zones cut in 10": (1_000_000, 500_000, 10_000),
    }
    specs = {name: sampled(directory / name, *size) for name, size in sizes.items() if name != "zones cut in 10"}
    specs["zones cut in 10"] = worlds.cut_finer(directory / "base", directory / "zones cut in 10", 10)
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in sizes}
    with local_cluster(os.cpu_count() or 1, processes=False) as cluster:
        for turn in range(1 + RUNS):
            for name, spec in specs.items():
                steps: dict[str, float] = {}

                def progress(stage: str, done: int, total: int, steps: dict[str, float] = steps) -> None:
                    if done in (0, total):
                        steps[f"{stage} {'from' if done == 0 else 'to'}"] = time.perf_counter()

                whole = release(spec, scheduler=cluster, progress=progress).seconds
                if turn:
                    drawn = sum(steps[f"{one} to"] - steps[f"{one} from"] for one in ("plan", "draw"))
                    took[name].append((whole, drawn))
    seconds, drawing = ({name: [row[i] for row in rows] for name, rows in took.items()} for i in (0, 1))
    for name, size in sizes.items():
        print(
            f"growth: {name} ({size[0]:,} workers, {size[1]:,} zones, {size[2]:,} destinations): "
            f"{statistics.median(seconds[name]):.2f} s ({_times(seconds, name)}), planning and drawing "
            f"{statistics.median(drawing[name]):.2f} s ({_times(drawing, name)})"
        )
    for name in ("workers × 10", "all × 10"):
        asked(f"growth: {name}, times as long", _ratios(seconds, name)[1], most=11)
    for name in ("zones × 10", "zones cut in 10"):
        asked(f"growth: {name}, planning and drawing", _ratios(drawing, name)[1], most=1.2)


def _ratios(took: dict[str, list[float]], name: str) -> tuple[float, float, float]:
    """Return the least, median and largest ratio to the base of the same turn."""
    found = [one / base for one, base in zip(took[name], took["base"], strict=True)]
    return min(found), statistics.median(found), max(found)


def _times(took: dict[str, list[float]], name: str) -> str:
    low, middle, high = _ratios(took, name)
    return f"{middle:.2f} times, {low:.2f} to {high:.2f}"


def workers(directory: Path) -> None:
    """Release a region of 5 million workers with one Dask worker, with two, and twice at once with one each.

    The last tells what a second core of this machine adds where nothing is divided or waited for: in turns with the
    others, as neighbours on the same machine come and go.
    """
    spec = sampled(directory / "workers", 5_000_000, 250_000, 50_000)
    with (
        warm(spec, 1, processes=True) as one,
        warm(spec, 1, processes=True) as other,
        warm(spec, 2, processes=True) as two,
        ThreadPoolExecutor(2) as pool,
    ):

        def both() -> float:
            began = time.perf_counter()
            list(pool.map(lambda run: run(), (one, other)))
            return time.perf_counter() - began

        rows = [(*one(), *two(), both()) for _ in range(RUNS)]
    ratios = [(one / two, tasks / shared, 2 * one / twice) for one, tasks, two, shared, twice in rows]
    one_s, tasks_s, two_s, shared_s, both_s = (statistics.median(column) for column in zip(*rows, strict=True))
    reached, divided, most = (statistics.median(column) for column in zip(*ratios, strict=True))
    low, high = min(ratio[0] for ratio in ratios), max(ratio[0] for ratio in ratios)
    print(f"workers: one {one_s:.1f} s, two {two_s:.1f} s: {reached:.2f} times ({low:.2f} to {high:.2f})")
    print(f"workers: all tasks {tasks_s:.1f} s and {shared_s:.1f} s: {divided:.2f} times; the driver does the rest")
    print(f"workers: two releases at once {both_s:.1f} s: the machine itself does {most:.2f} times as much")
    asked("workers: times as fast with two", reached, least=1.7)


def _sized(directory: Path, size: list[str], seconds_most: float, memory_most: float) -> None:
    subprocess.run([SYNTHMAP, "sample", str(directory), *size], check=True, stdout=subprocess.DEVNULL)
    seconds, peak = measured(["release", str(directory / "spec.toml")])
    asked(f"{' '.join(size)}: whole process, s", seconds, most=seconds_most)
    asked(f"{' '.join(size)}: GB", peak, most=memory_most)


def large(directory: Path) -> None:
    """Release 20 million workers, 1 million zones, 200,000 destinations."""
    _sized(directory / "large", ["--workers", "20000000", "--zones", "1000000", "--destinations", "200000"], 90, 6)


def nation(directory: Path) -> None:
    """Release 130 million workers, 8 million zones, 4 million destinations."""
    size = ["--workers", "130000000", "--zones", "8000000", "--destinations", "4000000"]
    _sized(directory / "nation", size, 600, 12)


PARTS = {part.__name__: part for part in (kernel, planning, whole, growth, workers, large, nation)}
USUAL = ("kernel", "planning", "whole", "growth", "workers")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args(arguments).parts or USUAL
    print(f"{_machine()}, Python {platform.python_version()}")
    for name in chosen:
        with tempfile.TemporaryDirectory() as directory:
            PARTS[name](Path(directory))
    sys.exit("falls short: " + "; ".join(SHORT) if SHORT else 0)


def _machine() -> str:
    """Return which processor, how many cores and how much memory."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, {psutil.virtual_memory().total / 1e9:.0f} GB"


if __name__ == "__main__":
    main()
