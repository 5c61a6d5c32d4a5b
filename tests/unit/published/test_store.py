"""A store of releases: what is damaged, added, taken away or changed while it is open."""

import os
import shutil

import pytest

from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError
from synthmap.published import store as module
from synthmap.published.store import ReleaseStore

A, B, C = (f"r-2026010{day}T000000Z-00000000" for day in (1, 2, 3))


@pytest.fixture
def root(small_release):
    """A directory with the releases A, B and C."""
    return max(small_release(name=name) for name in (B, C, A)).parent


def test_the_newest_is_first_whenever_the_files_were_copied(root):
    os.utime(root / A / "manifest.json", (2e9, 2e9))
    assert ReleaseStore(root).ids() == [C, B, A]


def test_a_release_of_any_name_takes_its_place_by_the_time_of_its_manifest(root, small_release):
    for name in ("plain", "z-99999999T999999Z-00000000"):
        os.utime(small_release(name=name) / "manifest.json", (1e9, 1e9))
    assert ReleaseStore(root).ids() == [C, B, A, "plain", "z-99999999T999999Z-00000000"]


def test_a_damaged_release_is_named_and_spoils_no_other(root):
    (root / B / "plan.parquet").write_bytes(b"PAR1")
    (root / C / "manifest.json").write_text("{")
    listed = {one.id: one for one in ReleaseStore(root).list()}
    assert listed[A].opened is not None
    assert "plan.parquet" in listed[B].fault
    assert listed[C].opened is None
    assert not any(str(root) in one.fault for one in listed.values() if one.fault)


def test_what_is_put_right_opens_again(root):
    good = (root / B / "manifest.json").read_bytes()
    (root / B / "manifest.json").write_text("{")
    store = ReleaseStore(root)
    with pytest.raises(ReleaseCorruptError):
        store.open(B)
    (root / B / "manifest.json").write_bytes(good)
    assert store.open(B).id == B


def test_what_was_taken_away_is_not_found_and_what_came_is(root, small_release):
    store = ReleaseStore(root)
    store.open(A)
    shutil.rmtree(root / A)
    with pytest.raises(ReleaseNotFoundError):
        store.open(A)
    late = "r-20260201T000000Z-00000000"
    small_release(name=late)
    assert store.ids()[0] == late
    assert store.open(late).id == late


@pytest.mark.parametrize("name", ["", ".", "..", "../etc", "a/b", ".catalog", "x\x00y", "n" * 5000, "é" * 300, "none"])
def test_no_other_name_leads_anywhere(root, name):
    with pytest.raises(ReleaseNotFoundError):
        ReleaseStore(root).open(name)


def test_zones_of_releases_long_unused_are_let_go(root, monkeypatch):
    monkeypatch.setattr(module, "RECENT", 1)
    store = ReleaseStore(root)
    first = store.open(A)
    assert first.places is store.open(A).places
    store.open(B)
    assert store.open(A).places is not first.places


def test_a_file_touched_but_the_same_is_good(root):
    opened = ReleaseStore(root).open(A)
    os.utime(root / A / "zones.parquet", (1e9, 1e9))
    assert opened.file("zones.parquet").exists()
    (root / A / "zones.parquet").unlink()
    with pytest.raises(ReleaseCorruptError):
        opened.file("zones.parquet")


def test_zones_that_cannot_be_read_are_one_clear_error(root):
    opened = ReleaseStore(root).open(A)
    path = root / A / "zones.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ReleaseCorruptError, match=r"zones\.parquet"):
        _ = opened.places


def test_a_plan_tells_what_the_prior_is_worth_also_where_it_is_older_than_that(small_release):
    old, new = small_release(name=A), small_release(name=B, plan={"prior_strength": [20.0, 300.0]})
    store = ReleaseStore(old.parent)
    for path, worth in ((old, [20.0, 20.0]), (new, [20.0, 300.0])):
        opened = store.open(path.name)
        assert opened.collect(opened.plan)["prior_strength"].to_list() == worth
