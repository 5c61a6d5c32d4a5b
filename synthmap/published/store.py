"""The releases of a store, opened for reading: hashes are checked once, before anything else is read."""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import polars as pl

from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError, SynthmapError
from synthmap.published.damage import unharmed as unharmed  # others take it from here
from synthmap.published.memory import Memory, free_at_once
from synthmap.published.places import Places, read_places
from synthmap.release.manifest import MANIFEST, Manifest
from synthmap.release.verify import sha256, verify_files

RECENT = 4  # releases whose zones are kept in memory
_CREATED = re.compile(r"-(\d{8}T\d{6})Z-[0-9a-f]{8,16}$")  # in a release's id

Stamp = tuple[int, int, int]


_OF_ONE_MECHANISM = dict.fromkeys(
    ("alpha_numerator", "alpha_denominator", "keep_units", "noise_units", "group_noise_units", "gaussian_units"),
    pl.Int64,
) | dict.fromkeys(("share_variance", "common_part"), pl.Float64)


@dataclass(frozen=True)
class OpenedRelease:
    """A release whose files have the hashes of its manifest.

    Attributes
    ----------
    directory : Path
    manifest : Manifest
    etag : str
        SHA-256 of the manifest, hexadecimal: it changes when anything in the release does.
    stamps : dict of str to tuple
        Inode, size and time of change that a file had when its hash was checked.
    memory : Memory
        Where what is read may be kept; shared by the releases of a store.
    """

    directory: Path
    manifest: Manifest
    etag: str
    stamps: dict[str, Stamp] = field(default_factory=dict, repr=False, compare=False)
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    @property
    def id(self) -> str:
        """The release's id."""
        return self.manifest.release

    def file(self, name: str) -> Path:
        """Return the path of a file of the release; its hash is checked again if it was touched since.

        Raises
        ------
        ReleaseCorruptError
            If it is gone or has another hash.
        """
        path = self.directory / name
        with unharmed(self.id):
            now = _stamp(path)
            if self.stamps.get(name) != now:
                if sha256(path) != self.manifest.files[name].sha256:
                    raise ReleaseCorruptError(f"release {self.id}: file {name} was changed; publish the release again")
                self.stamps[name] = now
        return path

    @property
    def parts(self) -> list[str]:
        """Names of the files of the OD table, in the order of their destinations."""
        return sorted(name for name in self.manifest.files if name.startswith("od/"))

    @cached_property
    def places(self) -> Places:
        """The zones."""
        return read_places(self.file("zones.parquet"), tuple(self.manifest.zones.levels))

    @property
    def interval(self) -> tuple[str, ...]:
        """The columns of the table between which the true count is likely to be; none where the release tells none."""
        return () if self.manifest.plan.interval is None else ("low", "high")

    @property
    def flows(self) -> pl.LazyFrame:
        """The OD table, not yet read: origin, destination, count and segments, sorted by destination, then origin."""
        return pl.scan_parquet([self.file(name) for name in self.parts], glob=False)

    @property
    def plan(self) -> pl.LazyFrame:
        """plan.parquet, not yet read: one row a destination, in the order of ids.

        Releases made before plans had columns ``prior_strength`` and ``scale_km`` get the manifest's: those of a prior
        without a table or classes.
        Columns that only another mechanism has are null.
        """
        found = pl.scan_parquet(self.file("plan.parquet"), glob=False)
        with unharmed(self.id):
            known = found.collect_schema().names()
        usual = {"prior_strength": pl.lit(self.manifest.prior.strength), "finest": pl.lit(-1, pl.Int64)}
        usual |= {"scale_km": pl.lit(self.manifest.prior.scale_km)}
        usual |= {name: pl.lit(None, kind) for name, kind in _OF_ONE_MECHANISM.items()}
        return found.with_columns(**{name: value for name, value in usual.items() if name not in known})

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Return the rows of a query over this release's files.

        Raises
        ------
        ReleaseCorruptError
            If a file cannot be read; its text never reaches the message.
        """
        with unharmed(self.id):
            return frame.collect()

    def emptied(self) -> "OpenedRelease":
        """Return the same release without the zones in memory."""
        return OpenedRelease(self.directory, self.manifest, self.etag, self.stamps, self.memory)


@dataclass(frozen=True)
class Listed:
    """A release of the list: opened, or why it could not be."""

    id: str
    opened: OpenedRelease | None
    fault: str | None


class ReleaseStore:
    """The releases in a directory. Safe to share between threads; new releases appear as they are published."""

    def __init__(self, directory: Path, memory: Memory | None = None) -> None:
        free_at_once()
        self.directory = directory
        self.memory = memory or Memory()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._known: dict[str, tuple[Stamp, OpenedRelease]] = {}
        self._recent: OrderedDict[str, None] = OrderedDict()

    def ids(self) -> list[str]:
        """Return the ids of what looks like a release, newest first."""
        return [name for *_, name in self.dated()]

    def dated(self) -> list[tuple[int, int, str]]:
        """Return of what looks like a release, newest first: second in its id, time of the manifest (ns), id.

        The second is that of the manifest where the id has none.
        """
        found = []
        for path in self.directory.glob(f"[!.]*/{MANIFEST}"):
            try:
                changed = path.stat().st_mtime_ns
            except OSError:
                continue  # removed while we looked
            found.append((_second(path.parent.name, changed), changed, path.parent.name))
        return sorted(found, key=lambda one: (-one[0], -one[1], one[2]))

    def list(self, names: Sequence[str] | None = None) -> list[Listed]:
        """Return the releases called `names`, or all; a damaged one is named with its fault and spoils no other."""
        out = []
        for name in self.ids() if names is None else names:
            try:
                out.append(Listed(name, self._open(name), None))
            except ReleaseNotFoundError:
                continue
            except SynthmapError as fault:
                out.append(Listed(name, None, str(fault)))
        return out

    def open(self, name: str) -> OpenedRelease:
        """Return the release called `name`, its hashes checked when it was first opened.

        Raises
        ------
        ReleaseNotFoundError
            If there is none.
        ReleaseCorruptError
            If a file does not have the hash of the manifest.
        """
        opened = self._open(name)
        with self._lock:
            self._recent[name] = None
            self._recent.move_to_end(name)
            if len(self._recent) > RECENT:
                oldest, _ = self._recent.popitem(last=False)
                if oldest in self._known:
                    stamp, before = self._known[oldest]
                    self._known[oldest] = stamp, before.emptied()
        return opened

    def _open(self, name: str) -> OpenedRelease:
        if not name or name.startswith(".") or Path(name).name != name:
            raise ReleaseNotFoundError(f"release ({name}) must be one of the store's")
        directory = self.directory / name
        try:
            now = _stamp(directory / MANIFEST)
        except (OSError, ValueError):
            self._known.pop(name, None)
            raise ReleaseNotFoundError(f"release ({name}) must be one of the store's") from None
        with self._lock:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:  # one thread checks the hashes, others wait for it; other releases are not held up
            known = self._known.get(name)
            if known is None or known[0] != now:
                known = now, self._verified(directory)
                self._known[name] = known
        return known[1]

    def _verified(self, directory: Path) -> OpenedRelease:
        """Return the release in `directory` after checking its hashes."""
        with unharmed(directory.name):
            stamps = {p.relative_to(directory).as_posix(): _stamp(p) for p in directory.rglob("*.parquet")}
            try:
                manifest = verify_files(directory)
            except ReleaseCorruptError as fault:  # the public need not know where the store lies
                raise ReleaseCorruptError(str(fault).replace(f"{directory.parent}/", "")) from None
            return OpenedRelease(directory, manifest, sha256(directory / MANIFEST), stamps, self.memory)


def _stamp(path: Path) -> Stamp:
    """Return what changes when a file does."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _second(name: str, changed: int) -> int:
    """Return the second (Unix time) that a release's id tells, else that of `changed` (ns)."""
    try:
        told = _CREATED.search(name)
        if told:
            return int(datetime.strptime(told[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        pass  # digits that are no time
    return changed // 10**9
