"""Process ``evaluate``: a release measured on its confidential tables, in a file for the curator."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from pipelines.jobs.order import Order, Progress
from pipelines.places import public_inputs, run_directory, with_tables
from pipelines.registry import registered_spec
from synthmap.catalog.claims import Claim, may_publish
from synthmap.catalog.database import Catalog
from synthmap.confidential.fidelity import evaluate

DIRECTORY = ".metrics"  # where the service looks for them


def run(order: Order, claim: Claim, catalog: Catalog, progress: Progress) -> dict[str, Any]:
    """Return where the measures were written; nothing of them is in the job."""
    spec = registered_spec(order.registry, claim.job.inputs["dataset"])
    name = claim.job.inputs["release"]
    progress("evaluate", 0, 1)
    with run_directory(spec.run.scratch) as run:
        found = evaluate(order.store / name, with_tables(public_inputs(spec, run), run)).to_json()
    place = order.store / DIRECTORY / f"{name}.json"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    may_publish(catalog, claim)
    _write_privately(place, json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return {"release": name, "metrics": f"{DIRECTORY}/{place.name}"}


def _write_privately(path: Path, text: str) -> None:
    """Write a file that only its owner may read, beside its place, and rename it there."""
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
