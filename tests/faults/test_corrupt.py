"""Damaged files of a release, hashes right or wrong: refused by name, and never served."""

import hashlib
import json
import random
import shutil

import pytest

from synthmap.errors import ReleaseCorruptError, SynthmapError
from synthmap.published.store import ReleaseStore
from synthmap.release.verify import verify


@pytest.fixture(scope="module")
def whole(tmp_path_factory, forks, tiny_region):
    """A release of the tiny region, made by a command."""
    place = tmp_path_factory.mktemp("whole")
    spec = tiny_region / "whole.toml"
    spec.write_text(f'store = "{place}"\n' + (tiny_region / "spec.toml").read_text())
    assert forks.run(directory=place, command=["release", str(spec), "--scheduler", "threads"]).status == 0
    (made,) = [path.parent for path in place.glob("[!.]*/manifest.json")]
    return made


@pytest.fixture
def copied(whole, tmp_path):
    """Return a copy of the release in a store of its own, to be damaged."""
    copy = tmp_path / "store" / whole.name
    shutil.copytree(whole, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def damaged(data, draw):
    """Return a file with a flipped byte, a page of noise, or its end cut off."""
    at = draw.randrange(len(data))
    kind = draw.randrange(4)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + draw.randbytes(64) + data[at + 64 :]
    if kind == 2:  # in the footer
        at = max(0, len(data) - draw.randrange(1, 400))
        return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
    return data[:at]


def files(release):
    return sorted(path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file())


def test_every_damaged_file_is_found_and_never_opened(copied):
    draw = random.Random(1)
    for name in files(copied):
        good = (copied / name).read_bytes()
        for _ in range(6):
            (copied / name).write_bytes(damaged(good, draw))
            if (copied / name).read_bytes() == good:
                continue
            with pytest.raises(ReleaseCorruptError):
                verify(copied)
            for listed in ReleaseStore(copied.parent).list():
                assert listed.opened is None or name == "manifest.json"  # which no hash covers
                assert str(copied.parent) not in (listed.fault or "")
        (copied / name).write_bytes(good)
    assert verify(copied).workers == 60


@pytest.mark.parametrize("name", ["od/part-00000.parquet", "zones.parquet", "plan.parquet"])
def test_a_file_that_was_damaged_before_it_was_hashed_is_one_clear_error(copied, name):
    draw, refused = random.Random(name), []
    good, manifest = (copied / name).read_bytes(), json.loads((copied / "manifest.json").read_text())
    for _ in range(60):
        bad = damaged(good, draw)
        (copied / name).write_bytes(bad)
        record = {"sha256": hashlib.sha256(bad).hexdigest(), "bytes": len(bad)}
        changed = manifest | {"files": manifest["files"] | {name: record}}
        (copied / "manifest.json").write_text(json.dumps(changed))
        try:
            verify(copied)
        except ReleaseCorruptError as fault:
            refused.append(str(fault))
        try:
            opened = ReleaseStore(copied.parent).open(copied.name)
            opened.collect(opened.flows)
            opened.collect(opened.plan)
            assert len(opened.places.ids) > 0
        except SynthmapError as fault:
            assert str(copied.parent) not in str(fault)
    assert len(refused) > 20
    assert any("a Parquet file cannot be read" in text for text in refused), refused


@pytest.mark.parametrize("name", ["od.parquet", "zones.parquet"])
def test_a_damaged_input_ends_a_job_in_a_clear_state(forks, make_site, tiny_region, name):
    site = make_site()
    spec, draw = site.directory / "spec.toml", random.Random(name)
    good = (tiny_region / name).read_bytes()
    spec.write_text(spec.read_text().replace(str(tiny_region / name), str(site.directory / name)))
    jobs = []
    for _ in range(5):
        (site.directory / name).write_bytes(damaged(good, draw))
        jobs.append(site.submit())
        assert forks.run(directory=site.directory, database=site.database).status == 0
        assert site.job(jobs[-1]).state in ("failed", "successful")
    assert "Traceback" not in site.log
    assert any(site.job(job).state == "failed" for job in jobs)
