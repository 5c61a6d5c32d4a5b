"""Every mechanism that a manifest can name has its words."""

from dataclasses import asdict
from typing import get_args

from synthmap.release.manifest import PlanSummary
from synthmap.release.statement_mechanisms import WORDS


def test_every_mechanism_has_words(repository):
    assert set(get_args(PlanSummary.model_fields["mechanism"].annotation)) <= set(WORDS)
    laws = set(get_args(PlanSummary.model_fields["noise_law"].annotation)) - {""}
    assert {f"histogram, {law}" for law in laws} <= set(WORDS)
    for words in WORDS.values():
        assert all(asdict(words).values())


def test_the_proofs_they_name_are_there(repository):
    pages = {path.stem for path in (repository / "synthmap" / "privacy" / "proofs").glob("*.md")}
    for words in WORDS.values():
        assert set(words.proofs.split(", ")) <= pages
