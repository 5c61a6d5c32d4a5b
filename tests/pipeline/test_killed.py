"""A run that dies leaves nothing that can be mistaken for a release, and the next one clears its remains."""

import itertools
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from forked import Forked
from moments import held_at, waiting_at
from waiting import PATIENCE

from pipelines import release as module
from pipelines.release import release
from synthmap.errors import ReleaseError, SynthmapError
from synthmap.release.verify import verify

RUN = "from synthmap.cli import main; main()"


@pytest.fixture
def start(region_spec, write_spec, with_changes, tmp_path, forks):
    """Start `synthmap release` in a process of its own: a new one, or a fork."""
    numbers = itertools.count()
    log = (tmp_path / "log").open("w+")
    started = []

    def run(scheduler="threads", die_at=None, of=signal.SIGKILL, fork=False, **changes):
        path = write_spec(tmp_path / f"spec-{next(numbers)}.toml", with_changes(region_spec, changes))
        words = ["release", str(path), "--scheduler", scheduler, "--json"]
        if fork or die_at is not None:
            dying = {} if die_at is None else {"dying": [die_at, int(of)]}
            started.append(Forked(forks.start(directory=tmp_path, command=words, **dying), tmp_path / "log"))
        else:
            line = [sys.executable, "-c", RUN, *words]
            started.append(subprocess.Popen(line, stdout=log, stderr=log, env=os.environ | waiting_at(tmp_path)))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
    log.close()


def wait_for(seen, process):
    """Wait until `seen` or the end of the process, looking often."""
    end = time.monotonic() + PATIENCE
    while not seen() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.0005)


MOMENTS = {
    "the scratch directory is there": "scratch/synthmap-scratch-*/",
    "the region is written": "scratch/*/region/tree-*.npy",
    "the zones are written": "scratch/*/zones-*",
    "the table is read": "scratch/*/table-*/*.npy",
    "a partition is collected": "scratch/*/partition-*/workers.npy",
    "lengths are measured": "scratch/*/lengths-*",
    "a plan is made": "scratch/*/plan-*",
    "the release is begun": "store/.partial-*/draws",
    "a part is drawn": "store/.partial-*/draws/draw-*",
    "the parts are together": "store/.partial-*/od/part-*.parquet",
    "the zones are there": "store/.partial-*/zones.parquet",
    "the plan is there": "store/.partial-*/plan.parquet",
    "the statement is written": "store/.partial-*/statement.html",
    "the manifest is written": "store/.partial-*/manifest.json",
    "the release is published": "store/demo-*",
}


@pytest.mark.parametrize("sign", MOMENTS.values(), ids=MOMENTS)
def test_a_killed_run_leaves_nothing_or_a_whole_release(start, make_spec, tmp_path, left_in, sign):
    process = start(die_at=sign, prior={"lengths_epsilon": 0.5})
    assert process.wait(PATIENCE) == -signal.SIGKILL, f"{sign} was not reached: {(tmp_path / 'log').read_text()}"
    assert left_in(tmp_path / "scratch") != []
    early = [name for name in left_in(tmp_path / "store") if not name.startswith(".")]
    assert len(early) == (sign == MOMENTS["the release is published"])
    for name in early:
        verify(tmp_path / "store" / name)

    found = release(make_spec(), scheduler="threads")
    verify(found.path)
    assert left_in(tmp_path / "scratch") == []
    assert left_in(tmp_path / "store") == sorted([*early, found.release])


def test_the_workers_of_a_killed_run_die_with_it(start, make_spec, tmp_path, left_in):
    with held_at(tmp_path, MOMENTS["the table is read"]):
        process = start("processes")
        wait_for(lambda: any(tmp_path.glob(MOMENTS["the table is read"])), process)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == []
    found = release(make_spec(), scheduler="threads")
    assert left_in(tmp_path / "scratch") == []
    assert left_in(tmp_path / "store") == [found.release]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_an_interrupted_run_cleans_up_after_itself(start, tmp_path, left_in, scheduler, sign):
    with held_at(tmp_path, MOMENTS["the table is read"]):
        process = start(scheduler, fork=scheduler == "threads" and sign != signal.SIGINT)
        wait_for(lambda: any(tmp_path.glob(MOMENTS["the table is read"])), process)
        process.send_signal(sign)
    while process.poll() is None:  # who asks again does not end the cleaning up
        process.send_signal(sign)
        time.sleep(0.01)
    assert process.wait() == 130
    assert (tmp_path / "log").read_text() == "synthmap: interrupted; nothing was published\n"
    assert left_in(tmp_path / "scratch") == []
    assert left_in(tmp_path / "store") == []


def test_a_run_that_is_interrupted_after_it_published_says_so(start, tmp_path, left_in):
    process = start(die_at=MOMENTS["the release is published"], of=signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    [name] = left_in(tmp_path / "store")
    place = tmp_path / "store" / name
    assert (tmp_path / "log").read_text() == f"synthmap: interrupted; release {name} was published: {place}\n"
    assert left_in(tmp_path / "scratch") == []


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_failing_run_leaves_nothing(make_spec, tmp_path, left_in, scheduler):
    (tmp_path / "bad.csv").write_text("origin,destination,count\n1,2,x\n")
    good = make_spec().tables[0].model_dump(exclude_none=True)
    spec = make_spec(segments=None, tables=[good, good | {"path": tmp_path / "bad.csv"}])
    with pytest.raises(SynthmapError, match=r"bad\.csv"):
        release(spec, scheduler=scheduler)
    assert left_in(tmp_path / "scratch") == []
    assert left_in(tmp_path / "store") == []


def test_a_run_that_fails_while_publishing_leaves_nothing(make_spec, tmp_path, left_in, monkeypatch):
    def broken(*_):
        raise ReleaseError("no")

    monkeypatch.setattr(module, "finish", broken)
    with pytest.raises(ReleaseError, match="no"):
        release(make_spec(), scheduler="threads")
    assert left_in(tmp_path / "scratch") == []
    assert left_in(tmp_path / "store") == []


def test_no_run_overwrites_a_release(make_spec, tmp_path, left_in, monkeypatch):
    monkeypatch.setattr(module, "new_release_id", lambda name: f"{name}-1")
    first = release(make_spec(), scheduler="threads")
    before = {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}
    with pytest.raises(ReleaseError, match="must not exist yet"):
        release(make_spec(), scheduler="threads")
    assert {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()} == before
    assert left_in(tmp_path / "store") == ["demo-1"]
    assert left_in(tmp_path / "scratch") == []


def test_two_runs_at_once_both_succeed(start, tmp_path, left_in):
    both = [start(), start()]
    assert [process.wait(PATIENCE) for process in both] == [0, 0], (tmp_path / "log").read_text()
    found = left_in(tmp_path / "store")
    assert len(found) == 2
    assert all(verify(tmp_path / "store" / name).workers == 3000 for name in found)
    assert left_in(tmp_path / "scratch") == []
    assert "Warning" not in (tmp_path / "log").read_text()


def test_a_store_that_cannot_be_written_is_a_clear_error(make_spec, tmp_path, left_in):
    (tmp_path / "store").touch()
    with pytest.raises(ReleaseError, match="must be a writable directory"):
        release(make_spec(), scheduler="threads")
    assert left_in(tmp_path / "scratch") == []
