"""The public table of flows in the prior: an earlier published release, or any other table. Public.

Never one that was made from the confidential tables: a plan that follows it would tell about them.
"""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synthmap.errors import ConfigurationError, GeographyError, UnknownZoneError, VintageError
from synthmap.geography.arrays import load
from synthmap.geography.columns import column_names, is_csv, read_content
from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.zones import ELSEWHERE, Zones, unknown_message
from synthmap.release.manifest import MANIFEST, PriorSource, read_manifest
from synthmap.release.verify import sha256, verify
from synthmap.remote import files_of, is_there, open_file
from synthmap.spec import PriorTableSpec, Spec
from synthmap.spec_paths import TWICE, VOID, public_paths

DECLARED = "declared public by the curator"
_FILE = "prior.json"
_HEAD = 1 << 16  # bytes of a file in which any two that are not the same should differ
_GZIP = b"\x1f\x8b"


def read_prior_table(spec: Spec, zones: Zones) -> tuple[PriorTable, PriorSource | None]:
    """Return the public table in the prior of `spec` and where it comes from; no rows and None without one.

    Counts are rounded to whole workers, half up; a pair that occurs twice is added up. Origins off the map
    count as elsewhere if the spec lets workers live there, and are left out otherwise.

    Raises
    ------
    ReleaseError
        If the earlier release is not whole.
    VintageError
        If it, or the table, is of another vintage than the zones.
    UnknownZoneError
        If an id is no zone and ``prior.unknown`` is "refuse".
    GeographyError
        If the table cannot be read, an id is not text or a count is no number of workers.
    ConfigurationError
        If the table has no workers at these zones.
    """
    if spec.prior.release is not None:
        return _of_release(spec, spec.prior.release.absolute(), zones)
    if spec.prior.table is not None:
        return _of_table(spec, spec.prior.table, zones)
    return NO_TABLE, None


def refuse_confidential(spec: Spec) -> None:
    """Raise if two confidential tables of `spec`, or one and something public, hold the same bytes, gzipped or not.

    Files are read whole only where they begin alike.

    Raises
    ------
    ConfigurationError
        Naming both files.
    """
    public = [(key, one) for key, path in public_paths(spec).items() for one in files_of(path)]
    if spec.prior.release is not None:
        public += [("prior.release", path) for path in sorted((spec.prior.release / "od").glob("*.parquet"))]
    secret = [("tables", table.path) for table in spec.tables]
    alike: dict[bytes, list[tuple[str, Path]]] = {}
    for key, path in public + secret:
        if is_there(path):
            alike.setdefault(_content_sha256(path, _HEAD), []).append((key, path))
    for some in alike.values():
        known: dict[bytes, tuple[str, Path]] = {}
        for one in some if len(some) > 1 and some[-1][0] == "tables" else ():
            first = known.setdefault(_content_sha256(one[1]), one)
            if first is one or one[0] != "tables":
                continue
            (other, same), path = first, one[1]
            raise ConfigurationError(
                f"tables ({path.name}) must hold other jobs than {same.name}, which is the same file; {TWICE}"
                if other == "tables"
                else f"{other} ({same.name}) must be another file than the confidential table {path.name}; {VOID}"
            )


def _content_sha256(path: Path, most: int | None = None) -> bytes:
    """Return the SHA-256 of what a file holds, unzipped; or of no more than its first bytes."""
    try:
        with open_file(path) as packed:
            zipped = packed.read(2) == _GZIP or path.suffix.lower() == ".gz"
            packed.seek(0)
            file = gzip.GzipFile(fileobj=packed) if zipped else packed
            digest = hashlib.sha256()
            if most is not None:
                digest.update(file.read(most))
            while most is None and (block := file.read(2**20)):
                digest.update(block)
    except (EOFError, zlib.error, gzip.BadGzipFile):  # no other file is the same; whoever reads it tells of it
        return hashlib.sha256(str(path).encode()).digest()
    except OSError as fault:
        raise ConfigurationError(f"{path.name} must be a readable file: {type(fault).__name__}") from None
    return digest.digest()


def _of_release(spec: Spec, directory: Path, zones: Zones) -> tuple[PriorTable, PriorSource]:
    """Return the table of an earlier release, verified first."""
    verify(directory)
    manifest = read_manifest(directory)
    _check_vintage(f"release {manifest.release}", manifest.zones.vintage, spec)
    parts = [
        pq.read_table(directory / name, columns=["origin", "destination", "count"], partitioning=None)
        for name in sorted(manifest.files)
        if name.startswith("od/")
    ]
    rows = pa.concat_tables(parts)
    table = _table(spec, zones, manifest.release, rows["origin"], rows["destination"], rows["count"].to_numpy())
    statement = "an earlier published release; its loss adds to this one's if both were made from the same jobs"
    if not manifest.private:
        statement += f"; NOT PRIVATE itself: {manifest.warning}"
    return table, PriorSource(
        kind="release",
        name=manifest.release,
        sha256=sha256(directory / MANIFEST),
        vintage=manifest.zones.vintage,
        private=manifest.private,
        mixing=spec.prior.mixing,
        workers=int(table.workers.sum()),
        statement=statement,
    )


def _of_table(spec: Spec, wanted: PriorTableSpec, zones: Zones) -> tuple[PriorTable, PriorSource]:
    """Return a table of the user's."""
    _check_vintage(wanted.path.name, wanted.vintage, spec)
    names = column_names(wanted.path, None)
    columns = [wanted.origin, wanted.destination, *([wanted.count] if wanted.count else [])]
    rows = read_content(wanted.path, None, names, columns).table
    for name in columns[:2]:
        kind = rows.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise GeographyError(f"{wanted.path}: ids must be text; those of column {name} are not ({kind})")
    count = np.ones(rows.num_rows) if wanted.count is None else _counts(wanted.path, rows, wanted.count)
    table = _table(spec, zones, wanted.path.name, rows[wanted.origin], rows[wanted.destination], count)
    return table, PriorSource(
        kind="table",
        name=wanted.path.name,
        sha256=sha256(wanted.path),
        vintage=wanted.vintage,
        private=True,
        mixing=spec.prior.mixing,
        workers=int(table.workers.sum()),
        statement=DECLARED,
    )


def _check_vintage(name: str, vintage: str, spec: Spec) -> None:
    if vintage != spec.zones.vintage:
        raise VintageError(
            f"prior ({name}): vintage ({vintage}) must be that of the zones ({spec.zones.vintage}); "
            "use a table over the same zones"
        )


def _counts(path: Path, rows: pa.Table, name: str) -> NDArray[np.float64]:
    """Return numbers of workers, at least 0."""
    column = rows[name]
    if is_csv(path):
        column = pc.utf8_trim_whitespace(column)
    try:
        count = column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        count = np.full(1, np.nan)
    if column.null_count or not (np.isfinite(count) & (count >= 0) & (count < 2**31)).all():
        raise GeographyError(f"{path}: every value of column {name} must be a number of workers, at least 0")
    return np.asarray(count)


def _table(
    spec: Spec, zones: Zones, name: str, origin: pa.Array, destination: pa.Array, count: NDArray[np.number]
) -> PriorTable:
    """Return rows sorted by destination and origin, equal pairs added up."""
    ranks = []
    for ids, column in ((origin, "origin"), (destination, "destination")):
        coded = pa.chunked_array(ids).cast(pa.string()).combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        known = zones.find(coded.dictionary).copy()
        beyond = np.asarray(coded.dictionary.to_numpy(zero_copy_only=False) == ELSEWHERE) & (column == "origin")
        unknown = (known < 0) & ~beyond
        if spec.prior.unknown == "refuse" and (unknown.any() or coded.null_count):
            raise UnknownZoneError(
                unknown_message(coded.dictionary.filter(pa.array(unknown)), f"prior ({name})", column)
                + '; set prior.unknown = "leave out" if that is meant'
            )
        if column == "origin" and spec.outside == "elsewhere":
            known[beyond | unknown] = len(zones)
        ranks.append(known[coded.indices.fill_null(0).to_numpy()])
        if coded.null_count:
            ranks[-1][coded.indices.is_null().to_numpy(zero_copy_only=False)] = -1
    workers = np.floor(count + 0.5).astype(np.int64)
    keep = (ranks[0] >= 0) & (ranks[1] >= 0) & (workers > 0)
    if not keep.any():
        raise ConfigurationError(f"prior ({name}) must have workers between these zones; it has none")
    key = ranks[1][keep].astype(np.int64) * (len(zones) + 1) + ranks[0][keep]
    pairs, place = np.unique(key, return_inverse=True)
    total = np.zeros(pairs.size, np.int64)
    np.add.at(total, place, workers[keep])
    first = np.searchsorted(pairs, np.arange(len(zones) + 1, dtype=np.int64) * (len(zones) + 1))
    return PriorTable(first.astype(np.int64), (pairs % (len(zones) + 1)).astype(np.int32), total)


def write_prior_table(directory: Path, table: PriorTable, source: PriorSource | None) -> None:
    """Write the table and where it comes from to files in the existing `directory`; nothing without one."""
    if source is not None:
        for name, values in table._asdict().items():
            np.save(directory / f"prior-{name}.npy", values)
        (directory / _FILE).write_text(source.model_dump_json(), encoding="utf-8")


def open_prior_table(directory: Path) -> tuple[PriorTable, PriorSource | None]:
    """Return what `write_prior_table` wrote, its arrays mapped from disk, copy on write."""
    if not (directory / _FILE).exists():
        return NO_TABLE, None
    arrays = (load(directory / f"prior-{name}.npy") for name in PriorTable._fields)
    return PriorTable(*arrays), PriorSource.model_validate_json((directory / _FILE).read_bytes())
