"""Verification of a release: hashes, sums, invariants and the certificate of its noise."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from synthmap.errors import ReleaseCorruptError
from synthmap.geography.zones import ELSEWHERE
from synthmap.release.manifest import MANIFEST, Manifest, read_manifest


@dataclass(frozen=True)
class Verified:
    """What was checked."""

    release: str
    files: int
    rows: int
    workers: int
    destinations: int


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(directory: Path) -> Verified:
    """Return what was checked in the release in `directory`.

    Checked: every file's size and hash and that there are no others; that the table is sorted, has no pair twice, only
    positive counts, only known zones, segments that sum to the total; that each destination's synthetic
    workers are m(d), and that the totals are the manifest's invariants.

    Raises
    ------
    ReleaseNotFoundError
        If there is no release.
    ReleaseCorruptError
        On the first rule that is broken, naming it and the file.
    """
    manifest = read_manifest(directory)
    if directory.name != manifest.release and not directory.name.startswith(".partial-"):
        raise ReleaseCorruptError(f"directory ({directory.name}) must be named {manifest.release}")
    _check_files(directory, manifest)
    try:
        rows, workers, destinations = _check_table(directory, manifest)
    except (pa.ArrowException, OSError, KeyError):
        raise ReleaseCorruptError(f"{directory.name}: a Parquet file cannot be read") from None
    return Verified(manifest.release, len(manifest.files), rows, workers, destinations)


def _check_files(directory: Path, manifest: Manifest) -> None:
    """Raise unless the files are exactly those of the manifest."""
    present = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    expected = set(manifest.files) | {MANIFEST}
    for name in sorted(present ^ expected):
        state = "is missing" if name in expected else "does not belong to it"
        raise ReleaseCorruptError(f"release {manifest.release}: file {name} {state}")
    for name, record in manifest.files.items():
        path = directory / name
        if path.stat().st_size != record.bytes or sha256(path) != record.sha256:
            raise ReleaseCorruptError(
                f"release {manifest.release}: file {name} must have the hash in the manifest; it was changed"
            )


def _check_table(directory: Path, manifest: Manifest) -> tuple[int, int, int]:
    """Raise unless the table keeps its rules; return rows, workers and destinations."""

    def need(good: object, rule: str) -> None:
        if not good:
            raise ReleaseCorruptError(f"release {manifest.release}: {rule}")

    zones = pq.read_table(directory / "zones.parquet", columns=["id"])["id"]
    plan = pq.read_table(directory / "plan.parquet")
    known = pa.concat_arrays([*zones.cast(pa.string()).chunks, pa.array([ELSEWHERE])])
    columns = ["origin", "destination", "count", *manifest.segments]
    rows = workers = 0
    previous = ""
    totals: dict[str, int] = {}
    parts = sorted(name for name in manifest.files if name.startswith("od/"))
    need(parts, "od/ must hold the table")
    for name in parts:
        table = pq.read_table(directory / name)
        need(table.column_names == columns, f"{name} must have the columns {', '.join(columns)}")
        if table.num_rows == 0:
            continue
        count = table["count"].to_numpy()
        need((count > 0).all(), f"{name}: every count must be above 0")
        if manifest.segments:
            summed = sum(table[s].to_numpy() for s in manifest.segments)
            need(np.array_equal(summed, count), f"{name}: segments must sum to count")
            need(
                all((table[s].to_numpy() >= 0).all() for s in manifest.segments),
                f"{name}: every segment must be at least 0",
            )
        need(pc.all(pc.is_in(table["origin"], known)).as_py(), f"{name}: every origin must be a zone")
        destination = table["destination"].combine_chunks()
        origin = table["origin"].combine_chunks()
        rising = _increasing(destination, origin)
        need(rising, f"{name}: rows must be sorted by destination and origin, each pair once")
        need(destination[0].as_py() > previous, f"{name}: parts must be in order of destinations")
        previous = destination[-1].as_py()
        summed_by = pa.table({"d": destination, "n": count}).group_by("d").aggregate([("n", "sum")])
        totals.update(zip(summed_by["d"].to_pylist(), summed_by["n_sum"].to_pylist(), strict=True))
        rows += table.num_rows
        workers += int(count.sum())
    planned = dict(zip(plan["destination"].to_pylist(), plan["synthetic_size"].to_pylist(), strict=True))
    need(totals == planned, "each destination's synthetic workers must sum to its m(d)")
    need(workers == manifest.invariants.workers, "workers must be the manifest's total")
    need(len(totals) == manifest.invariants.destinations, "destinations must be the manifest's total")
    return rows, workers, len(totals)


def _increasing(destination: pa.Array, origin: pa.Array) -> bool:
    """Return whether the pairs are strictly increasing."""
    if len(destination) < 2:
        return True
    later: Callable[[pa.Array], pa.Array] = lambda a: pc.greater(a[1:], a[:-1])  # noqa: E731
    same = pc.equal(destination[1:], destination[:-1])
    good = pc.or_(later(destination), pc.and_(same, later(origin)))
    return bool(pc.all(good).as_py())
