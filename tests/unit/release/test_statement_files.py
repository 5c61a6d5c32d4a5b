"""The files of a statement: a page that needs nothing else, and `verify` that finds one that says something else."""

import itertools
import json
from hashlib import sha256

import pytest
from pages import Page

from synthmap.errors import ReleaseCorruptError
from synthmap.release.manifest import MANIFEST, read_manifest
from synthmap.release.statement import PAGE, RECORD, WORDING, read_statement, record
from synthmap.release.statement_files import page
from synthmap.release.verify import verify

CLASS = {
    "headcount_from": 2, "headcount_to": 4, "destinations": 1, "workers": 4, "cells_median": 2.0, "alpha_smallest": 0.5,
    "alpha_median": 0.5, "alpha_largest": 0.5, "prior_share_mean": 0.2, "predicted_km_median": None,
}  # fmt: skip


def replace(directory, name, content):
    """Put another file in a release, with the right hash."""
    data = content.encode()
    (directory / name).write_bytes(data)
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["files"][name] = {"sha256": sha256(data).hexdigest(), "bytes": len(data)}
    (directory / MANIFEST).write_text(json.dumps(manifest))


def reworded(directory, **values):
    """Return the record with other values, deep ones by their path."""
    found = json.loads((directory / RECORD).read_text())
    for path, value in values.items():
        *above, last = path.split("__")
        at = found
        for name in above:
            at = at[name]
        at[last] = value
    return json.dumps(found)


def test_a_release_with_a_statement_is_whole(small_release):
    assert verify(small_release(stated=True)).files == 6


def test_a_release_of_before_is_whole_without(small_release):
    assert verify(small_release()).files == 4


@pytest.mark.parametrize(
    "values",
    [
        {"facts__dp": {"epsilon": 1.0, "delta": 1e-6}},
        {"facts__private": False},
        {"facts__unit": "everything about everybody"},
        {"facts__assumptions": ["none"]},
        {"facts__prior_share": 0.0},
        {"facts__odds": []},
        {"promise": ["Nobody can learn anything."]},
        {"deployment__privacy_loss__privacy_parameters": {"epsilon": 1.0, "delta": 1e-6}},
        {"wording": WORDING + 1, "facts__dp": {"epsilon": 1.0, "delta": 1e-6}},
        {"wording": WORDING + 1, "facts__mostly_prior": None},
    ],
    ids=str,
)
def test_a_record_that_says_something_else_is_found_though_its_hash_is_right(small_release, values):
    directory = small_release(stated=True)
    replace(directory, RECORD, reworded(directory, **values))
    with pytest.raises(ReleaseCorruptError, match=r"statement\.json must say what manifest\.json"):
        verify(directory)


def test_a_page_that_says_something_else_is_found_though_its_hash_is_right(small_release):
    directory = small_release(stated=True)
    replace(directory, PAGE, (directory / PAGE).read_text().replace("ε = 4", "ε = 1"))
    with pytest.raises(ReleaseCorruptError, match=r"statement\.html must say what manifest\.json"):
        verify(directory)


@pytest.mark.parametrize("name", [RECORD, PAGE])
def test_one_of_the_two_alone_is_refused(small_release, name):
    directory = small_release(stated=True)
    (directory / name).unlink()
    manifest = json.loads((directory / MANIFEST).read_text())
    del manifest["files"][name]
    (directory / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ReleaseCorruptError, match="statement"):
        verify(directory)


def test_a_record_that_is_none_is_refused(small_release):
    directory = small_release(stated=True)
    replace(directory, RECORD, "{}")
    with pytest.raises(ReleaseCorruptError, match="must be a statement"):
        verify(directory)


def test_words_of_another_version_are_no_fault(small_release):
    directory = small_release(stated=True)
    replace(directory, RECORD, reworded(directory, wording=WORDING + 1, advice="Read with care."))
    replace(directory, PAGE, "<p>Another page</p>")
    assert verify(directory).files == 6


OLD = {"product": {"name": "Commuting", "data_curators": ["A"]}, "dp_flavor": {"bound_on_input_distance": 2}}


def test_a_record_with_the_registry_s_fields_of_before_is_read_and_shown_as_it_is(small_release):
    directory = small_release(stated=True)
    replace(directory, RECORD, reworded(directory, wording=1, deployment=OLD))
    assert verify(directory).files == 6
    found = read_statement(directory)
    assert found.deployment == OLD
    assert "bound on input distance" in page(found)
    replace(directory, RECORD, reworded(directory, wording=WORDING, deployment=OLD))
    with pytest.raises(ReleaseCorruptError, match="must be a statement"):
        verify(directory)


def test_a_change_of_words_is_a_new_version_of_them(small_release):
    """If this fails, words or the page changed: raise WORDING, or releases of before do not verify; then pin anew."""
    found = read_statement(small_release(stated=True))
    mark = sha256((record(found) + page(found)).encode()).hexdigest()[:16]
    assert (WORDING, mark) == (3, "aec33793716701c9")


def test_a_page_needs_nothing_else_and_is_readable_by_all(small_release):
    def change(manifest):
        manifest.update(title="<b>Tom & Jerry's</b>", warning="it is <i>old</i>")
        manifest["plan"]["classes"] = [CLASS]

    directory = small_release(stated=True, change=change)
    text = (directory / PAGE).read_text(encoding="utf-8")
    found = Page(text)
    names = {name for name, _ in found.tags}
    assert not names & {"script", "link", "img", "iframe", "form", "b", "i", "a"}
    assert "url(" not in text
    assert "@import" not in text
    (html,) = found.all("html")
    assert html["lang"] == "en"
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.all("meta")
    assert len(found.all("h1")) == len(found.all("main")) == len(found.all("title")) == 1
    assert all(one.get("scope") in ("col", "row") for one in found.all("th"))
    assert len(found.all("caption")) == len(found.all("table")) == 2
    assert "prefers-color-scheme: dark" in text
    assert "<b>Tom & Jerry's</b>" in found.text
    levels = [int(name[1]) for name, _ in found.tags if name in ("h1", "h2", "h3")]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_page_holds_all_that_the_record_says(small_release):
    directory = small_release(stated=True)
    statement, shown = read_statement(directory), " ".join(Page((directory / PAGE).read_text()).text.split())
    said = [
        *statement.promise, *statement.odds, statement.prior, *statement.not_protected, statement.ledger,
        *(part for one in statement.questions for part in (one.question, one.answer)), *statement.sources,
        *statement.deployment.deployment_model.actors, statement.deployment.implementation.mechanisms,
        *statement.deployment.administrative.registry_authors,
    ]  # fmt: skip
    assert [sentence for sentence in said if " ".join(sentence.split()) not in shown] == []
    assert read_manifest(directory).release in shown
