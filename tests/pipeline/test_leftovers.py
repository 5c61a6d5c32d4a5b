"""What dead runs left is cleared away by the next worker, whatever it finds to do; what lives is left alone."""

import hashlib

import pytest
import sites
from invariants import left

from pipelines.leftovers import clear_dead_runs, clear_exports
from synthmap.release.store import hold, scratch


@pytest.fixture
def site(make_spec, tmp_path, forks):
    make_spec()
    found = sites.site(tmp_path, f"sqlite:///{tmp_path / 'catalog.sqlite'}", forks)
    found.register(tmp_path / "spec.toml")
    yield found
    found.stop()


def dead_run(site, name="00"):
    """Leave what a run leaves that was killed."""
    for place in (site.scratch / f"synthmap-scratch-{name}", site.store / f".partial-x-{name}"):
        (place / "inside").mkdir(parents=True)
        (place / "inside" / "secret").write_text("x")
        place.with_name(place.name + ".lock").touch()


def test_a_worker_without_a_job_clears_dead_runs_away(site):
    dead_run(site)
    with scratch(site.scratch) as mine:
        dead_run(site, "01")
        assert site.work() == {}
        assert left(site) == sorted([mine.name, mine.name + ".lock"])
    assert left(site) == []


def test_what_cannot_be_read_is_told_and_keeps_nothing_else_from_being_cleared(site, tmp_path):
    said = []
    site.registry.write_text(site.registry.read_text() + '\n[datasets."gone"]\nspec = "/no/such/spec.toml"\n')
    dead_run(site)
    clear_dead_runs(site.store, site.registry, said.append)
    assert left(site) == []
    assert len(said) == 1
    assert "must be a file" in said[0]
    site.registry.write_text("x")
    clear_dead_runs(site.store, site.registry, said.append)
    assert "must be a TOML file" in said[1]


def test_exports_of_releases_that_are_gone_or_changed_are_removed(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "manifest.json").write_text("{}")
    tag = hashlib.sha256(b"{}").hexdigest()[:16]
    for place in (f"r/{tag}", "r/0123456789abcdef", "gone/0123456789abcdef"):
        (tmp_path / ".exports" / place).mkdir(parents=True)
        (tmp_path / ".exports" / place / "flows.csv").touch()
    here = tmp_path / ".exports" / "r" / tag
    for name in ("dead", "alive"):
        (here / f".{name}.partial").mkdir()
        (here / f".{name}.lock").touch()
    with hold(here / ".alive.lock"):
        clear_exports(tmp_path)
    assert sorted(path.name for path in here.iterdir()) == [".alive.lock", ".alive.partial", "flows.csv"]
    assert [path.name for path in here.parent.iterdir()] == [tag]
    assert [path.name for path in here.parent.parent.iterdir()] == ["r"]


def test_a_job_that_hangs_is_stopped_and_fails(site):
    job = site.submit()
    worker = site.worker(JOB_HOURS="0.00001")
    done = site.wait(job, "failed", "successful")
    assert (done.state, done.message.startswith("it took longer than the worker allows")) == ("failed", True)
    assert "stopped after 1e-05 hours" in site.log
    worker.terminate()
    worker.wait()
    assert site.releases() == []
    assert left(site) == []


def test_commands_that_read_tables_clear_the_usual_scratch_directory(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    dead = tmp_path / "synthmap-scratch-00"
    dead.mkdir()
    dead.with_name(dead.name + ".lock").touch()
    assert command("spec", "--example").returncode == 0
    assert list(tmp_path.iterdir()) == []
