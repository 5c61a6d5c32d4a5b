"""A file is made once, whole, whoever asks and whatever dies on the way."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from synthmap.errors import ExportError, ReleaseError
from synthmap.published.exports.once import make_once


def visible(directory):
    return sorted(path.name for path in directory.iterdir())


def test_many_threads_make_it_once(tmp_path):
    target = tmp_path / "deep" / "file"
    made = []
    together = threading.Barrier(8)

    def write(path):
        made.append(path)
        path.write_bytes(b"half")
        assert not target.exists()
        with path.open("ab") as file:
            file.write(b" and half")

    def ask(_):
        together.wait()
        return make_once(target, write).read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {b"half and half"}
    assert len(made) == 1
    assert visible(target.parent) == ["file"]


def test_what_is_there_is_not_made_again(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    assert make_once(tmp_path / "file", lambda path: path.write_bytes(b"new")).read_bytes() == b"old"


@pytest.mark.parametrize("fault", [ExportError("too large"), RuntimeError("a fault"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing_and_the_next_succeeds(tmp_path, fault):
    def write(path):
        path.write_bytes(b"half")
        (path.parent / "beside").write_bytes(b"more")
        raise fault

    with pytest.raises(type(fault)):
        make_once(tmp_path / "file", write)
    assert visible(tmp_path) == []
    assert make_once(tmp_path / "file", lambda path: path.write_bytes(b"whole")).read_bytes() == b"whole"


KILLED = """
import os, signal, sys
from pathlib import Path
from synthmap.published.exports.once import make_once

def write(path):
    path.write_bytes(b"half")
    (path.parent / "beside").write_bytes(b"more")
    os.kill(os.getpid(), signal.SIGKILL)

make_once(Path(sys.argv[1]), write)
"""


def test_killed_while_writing_leaves_no_file_and_the_next_clears_up(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "file"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "file").exists()
    assert all(name.startswith(".") for name in visible(tmp_path))
    assert make_once(tmp_path / "file", lambda path: path.write_bytes(b"whole")).read_bytes() == b"whole"
    assert visible(tmp_path) == ["file"]


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ReleaseError, match="must be writable"):
        make_once(tmp_path / "file" / "below", lambda path: path.write_bytes(b""))


def test_what_was_made_cannot_be_changed_by_accident(tmp_path):
    made = make_once(tmp_path / "file", lambda path: path.write_bytes(b"whole"))
    assert not made.stat().st_mode & 0o222
    assert os.access(made, os.R_OK)
