"""Verification of a release: hashes, sums, invariants, and the promise against the plan."""

import hashlib
import math
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.errors import ReleaseCorruptError
from synthmap.geography.zones import ELSEWHERE
from synthmap.privacy.composition import jobs, round_up, table_pdp_delta
from synthmap.privacy.gaussian import gaussian_delta
from synthmap.release.consistency import check_consistency, need_of
from synthmap.release.manifest import MANIFEST, FileRecord, Manifest, read_manifest
from synthmap.release.statement_files import check_statement

_IDS = ("origin", "destination")
_TOGETHER = 8  # parts at most whose ids are looked up at once: that takes 19 ns for each zone of the release


@dataclass(frozen=True)
class Verified:
    """What was checked, and what a reader must know first."""

    release: str
    files: int
    rows: int
    workers: int
    destinations: int
    private: bool
    warning: str | None


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def records(directory: Path, names: Iterable[str]) -> dict[str, FileRecord]:
    """Return hash and size of files in `directory`, several side by side."""

    def record(name: str) -> tuple[str, FileRecord]:
        path = directory / name
        return name, FileRecord(sha256=sha256(path), bytes=path.stat().st_size)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(record, names))


def verify(directory: Path) -> Verified:
    """Return what was checked in the release in `directory`.

    Checked: every file's size and hash and that there are no others; that the table is sorted, has no pair twice, only
    positive counts, only known zones, segments that sum to the total; that each destination's synthetic
    workers are m(d), that the totals are the manifest's invariants, that manifest, plan and zones say the same
    (`check_consistency`), that its promise covers the plan, and that its statement says what the manifest says.

    Raises
    ------
    ReleaseNotFoundError
        If there is no release.
    ReleaseCorruptError
        On the first rule that is broken, naming it and the file.
    """
    manifest = verify_files(directory)
    try:
        plan = pq.read_table(directory / "plan.parquet")
        rows, workers, destinations = _check_table(directory, manifest, plan)
        check_statement(directory, manifest, plan)
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError):
        raise ReleaseCorruptError(f"{directory.name}: a Parquet file cannot be read") from None
    private, warning = manifest.private, manifest.warning
    return Verified(manifest.release, len(manifest.files), rows, workers, destinations, private, warning)


def verify_files(directory: Path) -> Manifest:
    """Return the manifest of the release in `directory` after checking its files' names, sizes and hashes.

    Raises
    ------
    ReleaseNotFoundError, ReleaseCorruptError
        As `verify`.
    """
    manifest = read_manifest(directory)
    if directory.name != manifest.release and not directory.name.startswith(".partial-"):
        raise ReleaseCorruptError(f"directory ({directory.name}) must be named {manifest.release}")
    _check_files(directory, manifest)
    return manifest


def _check_files(directory: Path, manifest: Manifest) -> None:
    """Raise unless the files are exactly those of the manifest."""
    inside = (path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
    present = {path.relative_to(directory).as_posix() for path in inside}
    expected = set(manifest.files) | {MANIFEST}
    for name in sorted(present ^ expected):
        state = "is missing" if name in expected else "does not belong to it"
        raise ReleaseCorruptError(f"release {manifest.release}: file {name} {state}")
    for name, found in records(directory, manifest.files).items():
        if found != manifest.files[name]:
            raise ReleaseCorruptError(
                f"release {manifest.release}: file {name} must have the hash in the manifest; it was changed"
            )


def _check_table(directory: Path, manifest: Manifest, plan: pa.Table) -> tuple[int, int, int]:
    """Raise unless the table, the plan and the manifest agree; return rows, workers and destinations."""
    need = need_of(manifest)
    zones = pq.read_table(directory / "zones.parquet", columns=["id"])["id"].cast(pa.string())
    inside = pc.not_equal(zones, ELSEWHERE)
    need(pc.sum(inside).as_py() == manifest.zones.zones, "zones.parquet must hold the manifest's number of zones")
    need(manifest.zones.elsewhere in (None, ELSEWHERE), f"elsewhere must be called {ELSEWHERE}")
    outside = ELSEWHERE if len(zones) > pc.sum(inside).as_py() else None
    need(
        manifest.zones.elsewhere == outside,
        "elsewhere must be in the manifest and in zones.parquet, or neither",
    )
    known = [*zones.filter(inside).chunks, *([pa.array([ELSEWHERE])] if manifest.zones.elsewhere else [])]
    origins = pl.Series(pa.concat_arrays(known), dtype=pl.String).sort().to_arrow().cast(pa.string())
    parts = sorted(name for name in manifest.files if name.startswith("od/"))
    need(parts, "od/ must hold the table")
    threads = os.cpu_count() or 1
    size = min(_TOGETHER, -(-len(parts) // threads))
    groups = [parts[first : first + size] for first in range(0, len(parts), size)]
    with ThreadPoolExecutor(threads) as pool:
        checked = list(
            chain.from_iterable(pool.map(lambda names: _check_parts(directory, names, manifest, origins), groups))
        )
    rows = sum(part_rows for part_rows, _ in checked)
    totals = pa.concat_tables([part_totals for _, part_totals in checked])
    destination = totals["destination"].combine_chunks()
    rising = len(destination) < 2 or pc.all(pc.greater(destination[1:], destination[:-1])).as_py()
    need(rising, "parts must be in order of destinations")
    same = totals.equals(plan.select(totals.column_names))
    need(same, "each destination's synthetic workers must sum to its m(d)")
    workers = pc.sum(totals["synthetic_size"]).as_py() or 0
    need(workers == manifest.invariants.workers, "workers must be the manifest's total")
    need(len(destination) == manifest.invariants.destinations, "destinations must be the manifest's total")
    check_consistency(directory, manifest, plan)
    _check_promise(manifest, plan)
    return rows, workers, len(destination)


def _check_parts(
    directory: Path, names: list[str], manifest: Manifest, known: pa.StringArray
) -> list[tuple[int, pa.Table]]:
    """Raise unless some parts of the table keep their rules; return of each what `_check_order` does.

    `known` are the ids of all origins, sorted.
    """
    tables = [_read_part(directory / name, name, manifest) for name in names]
    places = _places(tables, known)
    return [_check_order(*each, manifest, known) for each in zip(names, tables, places, strict=True)]


def _read_part(path: Path, name: str, manifest: Manifest) -> pa.Table:
    """Return one part, its ids dictionary-encoded, after checking its columns and counts."""
    need = need_of(manifest)
    schema = pa.schema(
        [("origin", pa.string()), ("destination", pa.string())]
        + [(column, pa.int64()) for column in ("count", *manifest.segments)]
        + [(column, pa.int32()) for column in ("low", "high") if manifest.plan.interval is not None]
    )
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    need(pq.read_schema(path).equals(schema), f"{name} must have the columns {columns}")
    table = pq.read_table(path, use_threads=False, read_dictionary=list(_IDS))
    need(not any(column.null_count for column in table.columns), f"{name}: no value may be missing")
    count = table["count"].to_numpy()
    need((count > 0).all(), f"{name}: every count must be above 0")
    if manifest.segments:
        segments = [table[segment].to_numpy() for segment in manifest.segments]
        need(np.array_equal(sum(segments), count), f"{name}: segments must sum to count")
        need(all((segment >= 0).all() for segment in segments), f"{name}: every segment must be at least 0")
    if manifest.plan.interval is not None:
        low, count, high = (table[column].to_numpy() for column in ("low", "count", "high"))
        inside = (low >= 0).all() and (low <= count).all() and (count <= high).all()
        need(inside, f"{name}: low must be at least 0 and count lie between low and high")
    return table


def _places(tables: list[pa.Table], known: pa.StringArray) -> list[NDArray[np.int32]]:
    """Return of each part the places of its origins and destinations among `known`, shape (2, rows); −1 if not there.

    All of `known` are looked up among the few ids of the parts, not the other way round: few ids are hashed sooner.
    """
    coded = pa.concat_arrays([chunk for table in tables for name in _IDS for chunk in table[name].chunks])
    found = pc.index_in(known, value_set=coded.dictionary)
    place = np.full(len(coded.dictionary), -1, np.int32)
    place[found.drop_null()] = np.flatnonzero(found.is_valid())
    ends = np.cumsum([2 * table.num_rows for table in tables])
    return [both.reshape(2, -1) for both in np.split(place[coded.indices], ends[:-1])]


def _check_order(
    name: str, table: pa.Table, places: NDArray[np.int32], manifest: Manifest, known: pa.StringArray
) -> tuple[int, pa.Table]:
    """Raise unless a part's rows are in order; return its rows, and workers by destination in the part's order."""
    need = need_of(manifest)
    origin, destination = places
    need((origin >= 0).all(), f"{name}: every origin must be a zone")
    need((destination >= 0).all(), f"{name}: every destination must be a zone")
    pair = destination * np.int64(len(known)) + origin
    need((pair[1:] > pair[:-1]).all(), f"{name}: rows must be sorted by destination and origin, each pair once")
    start = np.flatnonzero(np.diff(destination, prepend=np.int32(-1)))
    count = table["count"].to_numpy()
    workers = np.add.reduceat(count, start) if start.size else np.empty(0, np.int64)
    ids = known.take(pa.array(destination[start]))
    return table.num_rows, pa.table({"destination": ids, "synthetic_size": workers})


def _check_promise(manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless what the manifest promises covers what the plan's noise was certified for."""
    need = need_of(manifest)
    privacy = manifest.privacy
    deltas = plan["delta"].to_numpy()
    epsilon, delta = float(plan["epsilon"].to_numpy().max()), float(deltas.max())
    lengths = 0.0 if manifest.prior.lengths is None else manifest.prior.lengths.epsilon
    need(privacy.steps.lengths_epsilon == lengths, "steps must tell the ε of measured lengths")
    if manifest.prior.lengths is not None:
        need(manifest.plan.noise_law != "gaussian", "no lengths may be measured beside gaussian noise")
        need(lengths > 0 and math.isfinite(lengths + epsilon), "the ε of lengths must be above 0 and finite")
        epsilon = round_up(Fraction(epsilon) + Fraction(lengths))
    stated = privacy.certified_per_job
    need(stated.epsilon >= epsilon and stated.delta >= delta, "certified_per_job must cover every destination's plan")
    if manifest.plan.noise_law == "gaussian":
        _check_gaussian(manifest, plan)
        return
    all_jobs = jobs(epsilon, delta, privacy.max_jobs_per_worker)
    need(privacy.dp.epsilon >= all_jobs[0] and privacy.dp.delta >= all_jobs[1], "the promise must cover the plan")
    if privacy.pdp_cells is not None:
        cells = privacy.pdp_cells
        need(cells.epsilon >= all_jobs[0], "the promise for cells must cover the plan")
        need(cells.delta_destination >= delta, "the promise for a destination must cover the plan")
        need(cells.delta_table >= table_pdp_delta(deltas), "the promise for the table must cover the plan")


def _check_gaussian(manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless one Gaussian noise at all destinations covers the promise for all jobs of a person together."""
    need, privacy = need_of(manifest), manifest.privacy
    units = pc.unique(plan["gaussian_units"]).to_pylist()
    need(len(units) == 1, "gaussian noise must be the same at every destination")
    if plan["delta"].to_numpy().any():  # else nothing is told by any noisy count
        together = gaussian_delta(units[0], privacy.dp.epsilon, privacy.max_jobs_per_worker)
        need(privacy.dp.delta * (1.0 + 1e-6) >= together, "the promise must cover the plan")
