import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from synthmap.errors import ReleaseError
from synthmap.release import store as module
from synthmap.release.store import new_release_id, partial_release, publish, scratch, time_in, withdraw

KILLED = """
import os, pathlib, sys
from synthmap.release.store import partial_release, scratch
with {0} as directory:
    (directory / "secret").write_text("x")
    os.kill(os.getpid(), 9)
"""


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def kill_inside(context):
    done = subprocess.run([sys.executable, "-c", KILLED.format(context)], check=False)
    assert done.returncode == -9


def finished(store, name):
    """Publish a release of one file."""
    with partial_release(store, name) as partial:
        (partial / "od").mkdir()
        (partial / "od" / "part").write_text("x")
        return publish(partial, name)


def test_ids_start_with_the_name_and_never_repeat():
    ids = {new_release_id("a.b") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"a\.b-\d{8}T\d{6}Z-[0-9a-f]{16}", one) for one in ids)


def test_the_time_in_an_id_is_all_that_files_tell(tmp_path):
    path = finished(tmp_path, "a-b-20200102T030405Z-0123456789abcdef")
    began = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert time_in(path.name) == began
    for one in (path / "od", path / "od" / "part"):
        assert one.stat().st_mtime == began.timestamp()
    assert abs(time_in(new_release_id("a")) - datetime.now(UTC)) < timedelta(minutes=1)
    for other in ("a", "", "20200102T030405Z", "a-20209902T030405Z-0123456789abcdef", f"{path.name}.metrics-1"):
        assert time_in(other) is None


def test_a_published_release_is_alone_and_read_only(tmp_path):
    path = finished(tmp_path / "new" / "store", "r")
    assert names(path.parent) == ["r"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert stat.S_IMODE((path / "od").stat().st_mode) == 0o755
    assert stat.S_IMODE((path / "od" / "part").stat().st_mode) == 0o444


def test_nothing_is_overwritten(tmp_path):
    path = finished(tmp_path, "r")
    with pytest.raises(ReleaseError, match="must not exist yet"):
        finished(tmp_path, "r")
    assert names(tmp_path) == ["r"]
    assert (path / "od" / "part").read_text() == "x"


@pytest.mark.parametrize("working", [lambda place: partial_release(place, "r"), scratch])
def test_a_working_directory_is_private_locked_and_gone_in_the_end(tmp_path, working):
    with working(tmp_path) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / "file").touch()
        assert directory.is_absolute()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        with directory.with_name(directory.name + ".lock").open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert names(tmp_path) == []


@pytest.mark.parametrize("working", [lambda place: partial_release(place, "r"), scratch])
def test_a_failing_run_leaves_nothing(tmp_path, working):
    with pytest.raises(ZeroDivisionError), working(tmp_path) as directory:
        (directory / "file").touch()
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_leftovers_of_killed_runs_are_swept_and_nothing_else(tmp_path):
    kill_inside(f"partial_release(pathlib.Path({str(tmp_path)!r}), 'dead')")
    kill_inside(f"scratch(pathlib.Path({str(tmp_path)!r}))")
    assert len(names(tmp_path)) == 4
    kept = tmp_path / "other.lock"
    kept.touch()
    with scratch(tmp_path), partial_release(tmp_path, "alive") as partial, scratch(tmp_path):
        assert partial.is_dir()
    assert names(tmp_path) == ["other.lock"]


def test_what_a_living_run_writes_is_not_swept(tmp_path):
    with scratch(tmp_path) as one:
        (one / "file").touch()
        with scratch(tmp_path) as two:
            assert one != two
        assert (one / "file").exists()


def test_sweeping_follows_no_link(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    place = tmp_path / "place"
    place.mkdir()
    (place / "synthmap-scratch-x").symlink_to(precious)
    (place / "synthmap-scratch-x.lock").touch()
    with scratch(place):
        pass
    assert names(precious) == ["file"]


@pytest.mark.parametrize("working", [lambda place: partial_release(place, "r"), scratch])
def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path, working):
    (tmp_path / "file").touch()
    with (
        pytest.raises(ReleaseError, match=r"(store|scratch) \(.*file\) must be a writable directory"),
        working(tmp_path / "file"),
    ):
        pass


def test_scratch_goes_away_though_a_task_still_writes_there(tmp_path):
    """Another task may be in the middle of a file when the first fault ends the run."""
    stop = threading.Event()

    def keep_writing(directory):
        number = 0
        while not stop.is_set():
            number += 1
            try:
                (directory / f"secret-{number}").write_bytes(b"x" * 1000)
            except FileNotFoundError:
                return

    for _ in range(20):
        with scratch(tmp_path) as directory:
            writer = threading.Thread(target=keep_writing, args=[directory])
            writer.start()
            time.sleep(0.02)
        left = names(tmp_path)
        stop.set()
        writer.join()
        stop.clear()
        assert left == []


@pytest.mark.parametrize("working", [lambda place: partial_release(place, "r"), scratch])
def test_a_working_directory_goes_however_often_its_removal_is_interrupted(tmp_path, working, monkeypatch):
    remove, times = shutil.rmtree, iter([1, 2, 3])

    def interrupted(path, **options):
        if next(times, None):
            raise KeyboardInterrupt
        remove(path, **options)

    with pytest.raises(KeyboardInterrupt), working(tmp_path) as directory:  # though the work itself was done
        (directory / "secret").touch()
        monkeypatch.setattr(shutil, "rmtree", interrupted)
    assert names(tmp_path) == []


def test_a_lock_that_was_swept_before_it_was_held_is_made_anew(tmp_path, monkeypatch):
    """Between making its lock and holding it a run may meet the sweep of another one."""
    meet = [lambda: module.sweep(tmp_path, "synthmap-scratch-")]
    flock = fcntl.flock

    def late(handle, how):
        if how == fcntl.LOCK_EX and meet:
            meet.pop()()
        flock(handle, how)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with scratch(tmp_path) as directory:
        assert os.path.lexists(f"{directory}.lock")
    assert names(tmp_path) == []


def test_two_attempts_at_one_release_have_their_own_directories_and_one_wins(tmp_path):
    with partial_release(tmp_path, "r") as one, partial_release(tmp_path, "r") as two:
        (one / "file").write_text("one")
        (two / "file").write_text("two")
        publish(two, "r")
        with pytest.raises(ReleaseError, match="must not exist yet"):
            publish(one, "r")
    assert names(tmp_path) == ["r"]
    assert (tmp_path / "r" / "file").read_text() == "two"


def test_who_comes_second_to_the_rename_is_refused(tmp_path):
    """Both found no release when they looked; the file system decides."""
    with partial_release(tmp_path, "r") as one:
        (one / "file").write_text("one")
        with pytest.raises(ReleaseError, match="must not exist yet"):
            publish(one, "r", ready=lambda: finished(tmp_path, "r"))
    assert (tmp_path / "r" / "od" / "part").exists()


def test_nothing_is_published_unless_ready_agrees(tmp_path):
    def refuse():
        assert names(tmp_path) != ["r"]
        assert stat.S_IMODE(partial.stat().st_mode) == 0o700  # if it dies here, nobody else reads the draw
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), partial_release(tmp_path, "r") as partial:
        (partial / "file").touch()
        publish(partial, "r", ready=refuse)
    assert names(tmp_path) == []


def test_an_attempt_that_was_withdrawn_cannot_publish_any_more(tmp_path):
    """It was allowed to publish, froze, and wakes when another attempt has begun."""
    with partial_release(tmp_path, "r") as frozen, partial_release(tmp_path, "r-2") as other:
        (frozen / "file").touch()
        (other / "file").touch()
        with pytest.raises(ReleaseError, match="must be renamed into the store"):
            publish(frozen, "r", ready=lambda: withdraw(tmp_path, "r"))
        publish(other, "r-2")
    assert names(tmp_path) == ["r-2"]
    finished(tmp_path, "r")
    withdraw(tmp_path, "r")
    assert names(tmp_path) == ["r", "r-2"]


def test_withdrawing_takes_the_leftovers_of_the_dead_too_and_needs_no_store(tmp_path):
    kill_inside(f"partial_release(pathlib.Path({str(tmp_path)!r}), 'r')")
    withdraw(tmp_path, "r")
    withdraw(tmp_path / "none", "r")
    with partial_release(tmp_path, "other"):
        pass
    assert names(tmp_path) == []
