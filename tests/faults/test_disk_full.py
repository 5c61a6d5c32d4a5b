"""A disk that is full from any step on: one clear error, nothing half left, and the next run goes on."""

import itertools
import json
import shutil
import subprocess

import pytest
import sites
from invariants import finished_once, left, published, spent_on


def one_line(log):
    """Return the last line of what a command printed; there must be no traceback."""
    assert "Traceback" not in log, log
    return log.rstrip("\n").rpartition("\n")[2]


@pytest.mark.parametrize("chunk", range(1, 5))
def test_a_job_that_meets_a_full_disk_is_tried_again(forks, make_site, chunk):
    site, jobs = make_site(), []
    order = {"directory": site.directory, "database": site.database}
    for number in itertools.count(chunk, 12):
        jobs.append(site.submit())
        met = forks.run(**order, job=["full", number])
        assert met.status == 0, site.log
        if not met.faults:
            break
    assert len(jobs) >= 7
    assert "Traceback" not in site.log, site.log
    finished_once(site, jobs)
    assert left(site) == []


@pytest.mark.parametrize("chunk", [2, 7])
def test_a_command_that_meets_a_full_disk_says_so_in_one_line(forks, make_site, chunk):
    site = make_site()
    words = ["release", str(site.directory / "spec.toml"), "--scheduler", "threads", "--dataset", sites.DATASET,
             "--database", site.database, "--registry", str(site.registry), "--json"]  # fmt: skip
    for number in itertools.count(chunk, 12):
        before = published(site)
        met = forks.run(directory=site.directory, command=words, fault=["full", number])
        if not met.faults:
            break
        assert met.status == 2, site.log
        said = one_line(site.log)
        assert said.startswith("synthmap: "), said
        assert "No space left on device" in said or "the catalog does not answer" in said, said
        assert published(site) == before
        assert left(site) == []
    assert number > 60
    assert met.status == 0, site.log
    assert json.loads(one_line(site.log))["release"] in published(site)


@pytest.fixture
def small_disk(tmp_path):
    """Return a file system of its own of some hundred kB."""
    place = tmp_path / "small"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    words = ["-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if mount is None or umount is None or subprocess.run([mount, *words], capture_output=True, check=False).returncode:
        pytest.skip("a small file system: this user or machine may not mount one")
    yield place
    subprocess.run([umount, str(place)], check=True)


@pytest.mark.parametrize("what", ["scratch", "store"])
def test_a_file_system_that_is_really_full(forks, make_site, small_disk, what):
    site = make_site()
    spec = site.directory / "spec.toml"
    roomy = spec.read_text()
    moved = small_disk / what
    (small_disk / "other").write_bytes(bytes(350_000))
    spec.write_text(roomy.replace(str(site.directory / what), str(moved)))
    words = ["release", str(spec), "--scheduler", "threads", "--dataset", sites.DATASET, "--json",
             "--database", site.database, "--registry", str(site.registry)]  # fmt: skip
    assert forks.run(directory=site.directory, command=words).status == 2
    assert "No space left on device" in one_line(site.log), site.log
    assert [path for path in small_disk.rglob("*") if path.is_file()] == [small_disk / "other"]
    (small_disk / "other").unlink()
    assert forks.run(directory=site.directory, command=words).status == 0, site.log
    name = json.loads(one_line(site.log))["release"]
    assert spent_on(site)[name] == ["release", "drawing"]
