"""The statement's files in a release: the record, and a page that needs nothing else."""

from functools import cache
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, StrictUndefined

from synthmap.errors import ReleaseCorruptError
from synthmap.privacy.shown import shown_loss
from synthmap.release.manifest import Manifest
from synthmap.release.statement import PAGE, RECORD, WORDING, Statement, make_statement, parse_statement, record
from synthmap.release.statement_facts import make_facts
from synthmap.release.statement_words import percent, sizes

FILTERS = {"percent": percent, "sizes": sizes, "most": lambda share: percent(share, up=True), "loss": shown_loss}


def page(statement: Statement) -> str:
    """Return ``statement.html``: a page of its own, without scripts, that fetches nothing."""
    return _templates().get_template("statement.html").render(statement=statement, style=style())


def write_statement(directory: Path, manifest: Manifest) -> Statement:
    """Write the record and the page of the release in `directory`, whose plan is there; return the statement.

    `manifest` may still lack its list of files: the statement does not look at it.
    """
    found = make_statement(manifest, pq.read_table(directory / "plan.parquet"))
    (directory / RECORD).write_text(record(found), encoding="utf-8")
    (directory / PAGE).write_text(page(found), encoding="utf-8")
    return found


def check_statement(directory: Path, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless the statement of a release says what its manifest and its plan say, the table in ``plan.parquet``.

    The figures must be theirs in every version; the words, and the page, in the present one. A release made before
    there were statements has none.

    Raises
    ------
    ReleaseCorruptError
        If it says something else.
    """
    listed = {RECORD, PAGE} & set(manifest.files)
    if not listed:
        return
    told = parse_statement(directory / RECORD) if RECORD in listed else None
    if told is None or len(listed) < 2 or told.facts != make_facts(manifest, plan):
        raise _other(manifest, RECORD)
    if told.wording != WORDING:
        return
    if told != make_statement(manifest, plan):
        raise _other(manifest, RECORD)
    if (directory / PAGE).read_text(encoding="utf-8") != page(told):
        raise _other(manifest, PAGE)


def _other(manifest: Manifest, name: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(
        f"release {manifest.release}: {name} must say what manifest.json and plan.parquet say; publish it again"
    )


@cache
def style() -> str:
    """Return the style of a statement's page; pages of the service share it."""
    return files("synthmap.release").joinpath("templates", "statement.css").read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("synthmap.release"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= FILTERS
    return found
