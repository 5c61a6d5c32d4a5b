"""What workers keep of the ledger for themselves, in ``<registry>.seal``: a key, and the ends they have seen.

With the key they mark a dataset's files. The marks stand in the catalog, which the service reads; without the key
nobody can test a guess about a confidential table against them. The ends show a ledger that was cut or written anew as
a whole, which whoever can write the catalog could do. Workers that share datasets share this file, like the registry.
"""

import hashlib
import hmac
import json
import re
import secrets
from pathlib import Path
from typing import Any

from pipelines.registry import locked, write_privately
from synthmap.catalog.account import Account
from synthmap.catalog.entries import Content
from synthmap.errors import ConfidentialDataError, ConfigurationError, LedgerError
from synthmap.remote import files_of, open_file
from synthmap.spec import Spec

_HEX = re.compile(r"[0-9a-f]{64}")


class Seal:
    """The seal that lies beside a registry."""

    def __init__(self, registry: Path) -> None:
        self._registry, self._path = registry, registry.with_name(registry.name + ".seal")

    def content(self, spec: Spec) -> Content:
        """Return the marks of the files that a release of `spec` reads, and of how it reads them.

        Shapes to draw and the numbers of the prior are left out: no figure of the table depends on the former, and the
        latter are public choices.

        Raises
        ------
        ConfidentialDataError, ConfigurationError
            If a file cannot be read.
        """
        key = bytes.fromhex(self._read_or_make()["key"])
        tables = sorted(_mark(key, _digest(table.path, "table")) for table in spec.tables)
        zones, weights = spec.zones, spec.zones.weights
        public = {
            "zones": _digest(zones.path, "zones").hex(),
            "weights": weights and _digest(weights.path, "weights").hex(),
            "read": [zones.model_dump(mode="json", exclude={"path", "weights", "shapes"}),
                     weights and weights.model_dump(mode="json", exclude={"path"}),
                     sorted(json.dumps(one.model_dump(mode="json", exclude={"path"})) for one in spec.tables),
                     spec.outside, spec.duplicates],
        }  # fmt: skip
        text = json.dumps(public, sort_keys=True).encode()
        return Content(key=hashlib.sha256(key).hexdigest(), tables=tuple(tables), public=_mark(key, text))

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
                write_privately(self._path, json.dumps(values, sort_keys=True) + "\n")

    def _read_or_make(self) -> dict[str, Any]:
        with locked(self._registry):
            values = self._read()
            if not values["key"]:
                values["key"] = secrets.token_hex(32)
                write_privately(self._path, json.dumps(values, sort_keys=True) + "\n")
            return values

    def _read(self) -> dict[str, Any]:
        """Return the key, empty if there is none yet, and [entries, hash of the last] by dataset."""
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
            whole = values["key"] == "" or _HEX.fullmatch(values["key"])
            whole = whole and all(isinstance(n, int) and _HEX.fullmatch(head) for n, head in values["heads"].values())
        except FileNotFoundError:
            return {"key": "", "heads": {}}
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


def _mark(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


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
