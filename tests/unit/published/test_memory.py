"""What is kept, how often it is made, and how much of it."""

import threading
from dataclasses import dataclass

import pytest
from waiting import PATIENCE

from synthmap.published.memory import Memory


@dataclass
class Thing:
    nbytes: int


def make(size, made):
    def thing():
        made.append(size)
        return Thing(size)

    return thing


def test_what_was_used_last_stays_and_the_bytes_are_bounded():
    memory, made = Memory(10), []
    for key in ("a", "b", "a", "c", "a", "b"):
        memory.get(key, make(4, made))
        assert memory.nbytes <= 10
    assert len(made) == 4  # b went when c came


def test_a_thing_too_large_is_made_but_not_kept():
    memory, made = Memory(10), []
    memory.get("small", make(4, made))
    assert memory.get("large", make(11, made)).nbytes == 11
    memory.get("small", make(4, made))
    memory.get("large", make(11, made))
    assert made == [4, 11, 11]


def test_many_threads_make_a_thing_once_and_do_not_hold_up_other_things():
    memory, made = Memory(10), []
    begun, go = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go.wait(PATIENCE)
        return make(1, made)()

    threads = [threading.Thread(target=memory.get, args=("slow", slow)) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(PATIENCE)
    memory.get("other", make(2, made))
    assert made == [2]
    go.set()
    for thread in threads:
        thread.join()
    assert made == [2, 1]


def test_what_failed_is_tried_again():
    memory, made = Memory(10), []
    with pytest.raises(OSError, match="once"):
        memory.get("a", lambda: (_ for _ in ()).throw(OSError("once")))
    assert memory.get("a", make(1, made)).nbytes == 1
