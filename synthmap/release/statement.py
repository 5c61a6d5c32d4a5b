"""The guarantee of a release as a record for machines, a page and a text, all from one: its manifest and its plan."""

from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError, model_validator
from pydantic.json_schema import SkipJsonSchema

from synthmap.errors import ReleaseCorruptError
from synthmap.release.manifest import Manifest, read_manifest
from synthmap.release.statement_facts import Fact, Facts, make_facts
from synthmap.release.statement_questions import Question, make_questions
from synthmap.release.statement_registry import Registry, make_registry
from synthmap.release.statement_words import ADVICE, LEDGER, NOT_PROTECTED, odds, odds_note, prior, promise, sizes

RECORD, PAGE = "statement.json", "statement.html"
WORDING = 3  # one more whenever a word, a field or the page changes: releases made before keep theirs
_REGISTRY_OF = 2  # the wording since which entries have the registry's present fields; older ones are read as they are
SOURCES = (
    "Fields of the entry: OpenDP's Differential Privacy Deployments Registry, opendp/deployments-registry-data "
    "at commit 057e5d81cf60; "
    "Nanayakkara, Ghazi, Vadhan 2025, arXiv:2509.13509.",
    "Questions: NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, 2025, "
    "doi:10.6028/NIST.SP.800-226.",
    "Method: Machanavajjhala, Kifer, Abowd, Gehrke, Vilhuber, Privacy: Theory meets Practice on the Map, ICDE 2008.",
)


class Statement(Fact):
    """The privacy statement of a release: what is promised, to whom, under which assumptions, and what is not."""

    format: Literal["synthmap-statement-1"] = "synthmap-statement-1"
    wording: int = Field(description="Version of the words; the facts mean the same in all of them.")
    title: str
    created: str
    software: str
    facts: Facts
    promise: list[str] = Field(description="The promise in words.")
    odds: list[str] = Field(description="What an attacker could infer, in words.")
    prior: str = Field(description="Below which size figures are mostly prior.")
    not_protected: list[str]
    ledger: str = Field(description="How this release adds to others.")
    advice: str
    url_slug: str = Field(default="", description="Of the entry in OpenDP's registry of deployments: the release's id.")
    deployment: Registry | SkipJsonSchema[dict[str, Any]] = Field(description="The rest of that entry.")
    questions: list[Question] = Field(description="Those of NIST SP 800-226.")
    sources: list[str]

    @model_validator(mode="after")
    def _has_an_entry(self) -> Self:
        if self.wording >= _REGISTRY_OF and not isinstance(self.deployment, Registry):
            raise ValueError("deployment must have the registry's fields")
        return self


def make_statement(manifest: Manifest, plan: pa.Table) -> Statement:
    """Return the statement of a release, from its manifest and the table of ``plan.parquet``."""
    facts = make_facts(manifest, plan)
    return Statement(
        wording=WORDING,
        title=manifest.title or manifest.name,
        created=manifest.created,
        software=f"synthmap {manifest.software.synthmap}",
        facts=facts,
        promise=promise(facts),
        odds=[*(odds(one, facts) for one in facts.odds), odds_note(facts)],
        prior=prior(facts),
        not_protected=list(NOT_PROTECTED),
        ledger=LEDGER,
        advice=ADVICE,
        url_slug=facts.release,
        deployment=make_registry(manifest, facts),
        questions=make_questions(manifest, facts),
        sources=list(SOURCES),
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``statement.json``."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Statement.model_json_schema()


def record(statement: Statement) -> str:
    """Return the text of ``statement.json``."""
    return statement.model_dump_json(indent=2) + "\n"


def read_statement(directory: Path, manifest: Manifest | None = None) -> Statement:
    """Return the statement of the release in `directory`: its own, or for releases made before, a new one.

    Raises
    ------
    ReleaseNotFoundError
        If there is no release.
    ReleaseCorruptError
        If a file cannot be read.
    """
    manifest = manifest or read_manifest(directory)
    if RECORD in manifest.files:
        return parse_statement(directory / RECORD)
    try:
        return make_statement(manifest, pq.read_table(directory / "plan.parquet"))
    except (OSError, pa.ArrowException):
        raise ReleaseCorruptError(f"release {manifest.release}: plan.parquet must be readable") from None


def parse_statement(path: Path) -> Statement:
    """Return the statement written in a file.

    Raises
    ------
    ReleaseCorruptError
        If there is none, or one of another format.
    """
    try:
        return Statement.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, ValueError):
        raise ReleaseCorruptError(f"{path.name} must be a statement of format synthmap-statement-1") from None


def text(statement: Statement) -> str:
    """Return the statement as plain text: the promise, its odds, its limits; the record and the page hold more."""
    facts = statement.facts
    lines = [f"{statement.title} (release {facts.release})", ""]
    if not facts.private:
        lines += [f"NOT PRIVATE: {facts.warning}", ""]
    lines += [
        "What is published: synthetic workers by destination and origin. Origins are drawn; "
        + "; ".join(facts.invariants)
        + ".",
        f"What is protected: {facts.unit}",
        f"Neighbouring tables: {facts.adjacency}",
        *statement.promise,
        *statement.odds,
        *(f"Assumed: {one}" for one in facts.assumptions),
        "",
        f"Not protected: {' '.join(statement.not_protected)}",
        "",
        f"How much is prior, not data: {statement.prior} Mean share of a destination's synthetic workers:",
        *(
            f"  {sizes(one):>17} workers: {one.prior_share:6.1%} prior, {one.cells:g} cells  "
            f"({one.destinations:,} destinations)"
            for one in facts.prior_shares
        ),
        "",
        statement.ledger,
        "",
        statement.advice,
    ]
    return "\n".join(lines)
