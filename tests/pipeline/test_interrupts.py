"""A signal ends a program even where Python drops what its handler raises."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, os, signal, sys, time
{install}

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # the handler runs here
            pass

def collected(phase, info):
    if phase == "start":
        gc.callbacks.remove(collected)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass

try:
    if sys.argv[1] == "collector":
        gc.callbacks.append(collected)
        gc.collect()
    else:
        one = Finalized()
        del one
    time.sleep(2)
    print("went on")
except KeyboardInterrupt:
    print("ended")
    os.kill(os.getpid(), signal.SIGTERM)
    print("cleaned up")
"""
OURS = "from pipelines.interrupts import end_on\nend_on(signal.SIGTERM, once=True)"
PLAIN = """
def interrupt(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
"""


def started(*words):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


def run(install, where):
    program = PROGRAM.format(install=install)
    return started("-c", program, where)


@pytest.mark.parametrize("where", ["collector", "finalizer"])
def test_it_is_raised_again_where_it_was_dropped(where):
    done = run(OURS, where)
    assert done.stdout.split("\n") == ["ended", "cleaned up", ""]
    assert done.stderr == ""


@pytest.mark.parametrize("where", ["collector", "finalizer"])
def test_a_plain_handler_would_be_lost(where):
    done = run(PLAIN, where)
    assert done.stdout == "went on\n"
    assert "Exception ignored in" in done.stderr


def test_other_dropped_exceptions_are_told_as_ever():
    program = f"import signal\n{OURS}\nclass One:\n    def __del__(self):\n        raise ValueError('x')\nOne()\n"
    done = started("-c", program)
    assert "ValueError: x" in done.stderr
