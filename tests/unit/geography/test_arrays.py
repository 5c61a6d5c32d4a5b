import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from synthmap.geography.arrays import load


def test_headers_are_read_by_one_thread_at_a_time(tmp_path, monkeypatch):
    np.save(tmp_path / "some.npy", np.arange(6).reshape(2, 3))
    inside, most, real, counting = [0], [0], np.load, threading.Lock()

    def watched(*args, **kwargs):
        with counting:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        try:
            return real(*args, **kwargs)
        finally:
            with counting:
                inside[0] -= 1

    monkeypatch.setattr(np, "load", watched)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: load(tmp_path / "some.npy").sum(), range(40)))
    assert found == [15] * 40
    assert most == [1]
