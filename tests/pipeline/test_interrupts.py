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
OURS = "from pipelines.interrupts import end_on\nend_on(signal.SIGTERM)"
PLAIN = """
def interrupt(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
"""


def started(*words):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


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


@pytest.mark.parametrize("dropped", [False, True])
def test_a_program_that_has_done_its_work_is_not_ended_by_what_comes_late(dropped):
    """Neither by another signal nor, where Python dropped what the first raised, by the timer that raises it again."""
    program = """
import os, signal, sys, time
from pipelines.interrupts import end_on, settle
end_on(signal.SIGTERM)

class Finalized:
    def __del__(self):
        raise KeyboardInterrupt

if sys.argv[1] == "True":
    Finalized()
settle(signal.SIGTERM)
signal.signal(signal.SIGALRM, signal.SIG_DFL)  # as when Python ends
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
print("left")
"""
    done = started("-c", program, str(dropped))
    assert (done.returncode, done.stdout) == (0, "left\n")


def test_a_command_that_is_interrupted_cleans_up_says_so_in_one_line_and_leaves_with_130():
    program = """
import os, signal, sys, time
import synthmap.confidential.sample
from synthmap.cli import main

def wait(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
            time.sleep(0.01)
        print("cleaned up")

synthmap.confidential.sample.write_sample = wait
sys.argv[1:] = ["sample", "somewhere"]
main()
"""
    done = started("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "synthmap: interrupted\n")


TAKEN = """
import os, signal, threading
{install}
source = "def __enter__(self):\\n    found = self._lock.__enter__()\\n    kill(me, 15)\\n    return found\\n"
names = vars(threading) | {{"kill": os.kill, "me": os.getpid()}}
exec(compile(source, threading.__file__, "exec"), names)  # the signal comes when the lock is taken
threading.Condition.__enter__ = names["__enter__"]
condition = threading.Condition(threading.Lock())
try:
    while True:
        with condition:
            pass
except KeyboardInterrupt:
    print("taken" if condition._lock.locked() else "given back")
"""


@pytest.mark.parametrize(("install", "state"), [(OURS, "given back"), (PLAIN, "taken")], ids=["ours", "plain"])
def test_no_lock_stays_taken(install, state):
    """With a plain handler one does, and a run that was interrupted then waited for it for ever."""
    assert started("-c", TAKEN.format(install=install)).stdout.split() == state.split()
