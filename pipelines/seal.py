"""What workers keep of the ledger for themselves, in ``<registry>.seal``: a key, marks, and the ends they have seen.

With the key they mark what is in a dataset's tables. The marks stand in the catalog, which the service reads; without
the key nobody can test a guess about a confidential table against them. Here stand the marks of every registered
dataset, so that no two hold the same jobs, and those of every file that was read, so that it is read for them once;
and the names of the losses whose draw may have been shown, so that none is drawn twice if it is lost or moved away.

The ends show a ledger that was cut or written anew as a whole, which whoever can write the catalog could do. All
workers of a catalog share this file, like the registry.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipelines.registry import locked, write_privately
from synthmap.catalog.account import Account
from synthmap.catalog.entries import Content, same_jobs
from synthmap.errors import ConfidentialDataError, ConfigurationError, LedgerError
from synthmap.remote import files_of, is_remote, open_file, state
from synthmap.spec import Spec, TableSpec

if TYPE_CHECKING:
    from synthmap.geography.zones import Zones

MERGED = 8  # tables of which any that are merged in one file are found, by 2^8 - 1 marks at most
_HEX = re.compile(r"[0-9a-f]{64}")
_SUMS = re.compile(r"([0-9a-f]{32}){2,}")


class Seal:
    """The seal that lies beside a registry."""

    def __init__(self, registry: Path) -> None:
        self._registry, self._path = registry, registry.with_name(registry.name + ".seal")

    def content(self, spec: Spec, zones: "Zones | None" = None) -> Content:
        """Return the marks of what a release of `spec` reads: of the workers in its tables, of zones and weights.

        Shapes to draw and the numbers of the prior are left out: no figure of the table depends on the former, and the
        latter are public choices.

        Parameters
        ----------
        spec : Spec
        zones : Zones, optional
            Those of `spec`, if they were read: messages about a table without a header say more.

        Raises
        ------
        ConfidentialDataError, ConfigurationError
            If a file cannot be read.
        """
        key = bytes.fromhex(self._read_or_make()["key"])
        sums = [self._sums(key, table, spec.segment_columns, zones) for table in spec.tables]
        together = np.add.reduce(sums, axis=0)
        merged = [np.add.reduce(some, axis=0) for some in _merged(sums)]
        jobs = {_mark(key, b"jobs" + one[0].tobytes()) for one in merged if one.any()}
        if not jobs:
            raise ConfidentialDataError("the tables must hold at least one worker")
        flows = zip(("count", *spec.segment_columns), together[1:], strict=True)
        return Content(
            key=hashlib.sha256(key).hexdigest(),
            tables=tuple(sorted(jobs)),
            columns={name: _mark(key, name.encode() + b"\0" + one.tobytes()) for name, one in flows},
            public=_mark(key, _public(spec)),
        )

    def _sums(
        self, key: bytes, table: TableSpec, segments: tuple[str, ...], zones: "Zones | None"
    ) -> NDArray[np.uint64]:
        """Return the fingerprint of a table; its file is read for that once."""
        before = state_of(table.path)
        read = json.dumps([table.model_dump(mode="json", exclude={"path", "vintage"}), segments], sort_keys=True)
        file = _mark(key, _digest(table.path, "table") + read.encode())
        known = self._read()["files"].get(file)
        if known is not None:
            return np.frombuffer(bytes.fromhex(known), np.uint64).reshape(-1, 2)
        found = _fingerprint(table, segments, hmac.digest(key, b"fingerprint", "sha256"), zones)
        if state_of(table.path) != before:
            raise ConfidentialDataError(f"{table.path.name} must not change while it is read")
        with locked(self._registry):
            values = self._read()
            values["files"][file] = found.tobytes().hex()
            self._write(values)
        return found

    def keep_apart(self, dataset: str, content: Content, others: Iterable[str]) -> None:
        """Keep the marks of a dataset; the registry is locked meanwhile.

        Raises
        ------
        LedgerError
            If one of `others` holds some of the same jobs.
        """
        if (other := self.dataset_of(content, others)) is not None:
            raise LedgerError(same_jobs(dataset, other))
        values = self._read()
        values["tables"][dataset] = list(content.tables)
        self._write(values)

    def dataset_of(self, content: Content, datasets: Iterable[str]) -> str | None:
        """Return which of some registered datasets holds some of the same jobs, if any does."""
        kept = self._read()["tables"]
        return next((one for one in sorted(datasets) if not set(kept.get(one, ())).isdisjoint(content.tables)), None)

    def without_marks(self, datasets: Iterable[str]) -> list[str]:
        """Return those of some registered datasets whose jobs it cannot tell from others: it was lost, or is new."""
        return sorted(set(datasets) - set(self._read()["tables"]))

    def datasets(self) -> list[str]:
        """Return the datasets whose ledgers workers have seen."""
        return sorted(self._read()["heads"])

    @property
    def there(self) -> bool:
        """Whether there is a seal: where a worker has paid with this registry, there is one."""
        return bool(self._read()["key"])

    def check_of(self, dataset: str) -> Callable[[Account], None]:
        """Return what raises LedgerError unless an account of a dataset goes on from where workers see it end now."""
        seen = self.seen(dataset)
        return lambda account: check_goes_on(account, seen)

    def seen(self, dataset: str) -> tuple[int, str] | None:
        """Return where workers last saw the ledger of a dataset end: number of entries and hash of the last.

        To be asked before the account is read: others go on meanwhile.
        """
        found = self._read()["heads"].get(dataset)
        return None if found is None else (found[0], found[1])

    def remember(self, account: Account) -> None:
        """Keep the end of an account."""
        with locked(self._registry):
            values = self._read()
            if len(account.entries) > values["heads"].get(account.dataset, [0])[0]:
                values["heads"][account.dataset] = [len(account.entries), account.head]
                self._write(values)

    def may_be_shown(self, name: str) -> bool:
        """Return whether what was drawn for the loss `name` may have been shown: it is never to be drawn again."""
        return name in self._read()["kept"]

    def remember_shown(self, name: str) -> bool:
        """Keep, durably, that what was drawn for the loss `name` may be shown from now on; return whether that is new.

        Of several at once under a name, it is new to one.
        """
        with locked(self._registry):
            values = self._read()
            if name in values["kept"]:
                return False
            values["kept"].append(name)
            self._write(values)
            return True

    def _read_or_make(self) -> dict[str, Any]:
        with locked(self._registry):
            values = self._read()
            if not values["key"]:
                values["key"] = secrets.token_hex(32)
                self._write(values)
            return values

    def _write(self, values: dict[str, Any]) -> None:
        write_privately(self._path, json.dumps(values, sort_keys=True) + "\n")

    def _read(self) -> dict[str, Any]:
        """Return what is kept.

        The key, empty if there is none yet; [entries, hash of the last] and marks of tables by dataset; sums by file;
        names of losses whose draw may have been shown.
        """
        try:
            values = {"kept": []} | json.loads(self._path.read_text(encoding="utf-8"))
            whole = values["key"] == "" or _HEX.fullmatch(values["key"])
            whole = whole and all(isinstance(n, int) and _HEX.fullmatch(head) for n, head in values["heads"].values())
            whole = whole and all(_HEX.fullmatch(one) for marks in values["tables"].values() for one in marks)
            whole = whole and isinstance(values["kept"], list) and all(isinstance(one, str) for one in values["kept"])
            whole = whole and all(_SUMS.fullmatch(one) for one in values["files"].values())
        except FileNotFoundError:
            return {"key": "", "heads": {}, "tables": {}, "files": {}, "kept": []}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            whole = None
        if not whole:
            raise ConfigurationError(f"{self._path} must be as workers wrote it; restore it from a copy")
        return values  # type: ignore[no-any-return]


def check_goes_on(account: Account, seen: tuple[int, str] | None) -> None:
    """Raise LedgerError unless an account goes on from where a worker has seen it end."""
    if seen is None:
        return
    number, head = seen
    if len(account.entries) < number or account.entries[number - 1].hash != head:
        raise LedgerError(
            f"the ledger of dataset ({account.dataset}) must go on from entry {number}, which a worker has seen; "
            "it was cut or replaced: restore the newest state of the catalog"
        )


def _merged(sums: list[NDArray[np.uint64]]) -> Iterable[tuple[NDArray[np.uint64], ...]]:
    """Return which tables may stand in one file together: any of a few; of many each alone, and all."""
    sizes = range(1, len(sums) + 1) if len(sums) <= MERGED else (1, len(sums))
    return chain.from_iterable(combinations(sums, size) for size in sizes)


def _mark(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _public(spec: Spec) -> bytes:
    """Return a text of the public files that `spec` names, and of how it reads tables."""
    zones, weights = spec.zones, spec.zones.weights
    public = {
        "zones": _digest(zones.path, "zones").hex(),
        "weights": weights and _digest(weights.path, "weights").hex(),
        "read": [zones.model_dump(mode="json", exclude={"path", "weights", "shapes"}),
                 weights and weights.model_dump(mode="json", exclude={"path"}), spec.outside, spec.duplicates],
    }  # fmt: skip
    return json.dumps(public, sort_keys=True).encode()


def state_of(path: Path) -> tuple[object, ...]:
    """Return what changes when somebody writes to a table or puts another in its place."""
    try:
        return state(path)
    except OSError as fault:
        raise ConfidentialDataError(f"{path.name} must be a readable file: {fault.strerror}") from None


def states_of(spec: Spec) -> list[tuple[object, ...]]:
    """Return `state_of` every table that `spec` names."""
    return [state_of(one.path) for one in spec.tables]


def _fingerprint(table: TableSpec, segments: tuple[str, ...], key: bytes, zones: "Zones | None") -> NDArray[np.uint64]:
    """Return the fingerprint of a table; of one in an object store, by a copy that goes at once."""
    from pipelines.places import fetch, run_directory  # libraries that a waiting worker does without
    from synthmap.confidential.fingerprint import fingerprint

    if not is_remote(table.path):
        return fingerprint(table, segments, key, zones)
    with run_directory(None) as run:
        return fingerprint(table.model_copy(update={"path": fetch(table.path, run)}), segments, key, zones)


def _digest(path: Path, what: str) -> bytes:
    """Return a hash of a file, or of all files of a layer that consists of several."""
    try:
        files = files_of(path)
        found = hashlib.sha256(what.encode())
        for one in files:
            with open_file(one) as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
            if len(files) > 1:
                found.update(hashlib.sha256(one.relative_to(path.parent).as_posix().encode()).digest())
        return found.digest()
    except OSError as fault:
        kind = ConfidentialDataError if what == "table" else ConfigurationError
        raise kind(f"{path.name} must be a readable file: {fault.strerror}") from None
