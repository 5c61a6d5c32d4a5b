import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from synthmap.geography.arrays import load, row_sums, rows_at


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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (50, 1), (50, 3), (2, 40)])
def test_rows_are_summed_and_chosen_as_numpy_does(shape, order):
    counts = np.array(np.random.default_rng(1).integers(0, 2**40, shape), order=order)
    places = np.flatnonzero(counts[:, 0] % 2)[::-1]
    for found, expected in ((row_sums(counts), counts.sum(axis=1)), (rows_at(counts, places), counts[places])):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected, strict=True)
