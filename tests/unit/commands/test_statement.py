"""``synthmap statement``: text, page, record, schema."""

import json

import pytest

from synthmap.release.statement import PAGE, RECORD


def test_in_words(synthmap, small_release):
    code, out, err = synthmap("statement", small_release(stated=True))
    assert (code, err) == (0, "")
    assert "Promise: (ε, δ)-differential privacy with ε = 4, δ = 1e-06" in out


def test_as_a_page_and_as_a_record_it_is_that_of_the_release(synthmap, one_object, small_release):
    directory = small_release(stated=True)
    assert synthmap("statement", directory, "--html")[1] == (directory / PAGE).read_text()
    assert one_object("statement", directory) == json.loads((directory / RECORD).read_text())


def test_the_schema_needs_no_release(synthmap):
    code, out, _ = synthmap("statement", "--schema")
    assert code == 0
    assert json.loads(out)["title"] == "Statement"


@pytest.mark.parametrize(
    "words", [[], ["x", "--schema"], ["x", "--html", "--json"], ["--schema", "--html"], ["--html"]]
)
def test_what_does_not_go_together_is_one_line(one_line, words):
    assert "one RELEASE, with --html or --json or neither, or --schema alone must be given" in one_line(
        "statement", *words
    )


def test_no_release_is_one_line(one_line, tmp_path):
    assert "must hold a manifest.json" in one_line("statement", tmp_path)
