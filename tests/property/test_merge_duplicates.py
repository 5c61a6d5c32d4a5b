from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthmap.confidential.duplicates import merge_duplicates
from synthmap.errors import ConfidentialDataError
from synthmap.geography.canonical import canonical

N_ZONES = 5
ZONES = canonical(
    ids=pa.array([f"z{i}" for i in range(N_ZONES)]),
    longitude=np.zeros(N_ZONES),
    latitude=np.zeros(N_ZONES),
    weight=np.ones(N_ZONES, dtype=np.int64),
    levels=(),
    parents=(),
    vintage="2010",
)
COUNT = st.integers(0, 2**31 - 1)
ROWS = st.lists(st.tuples(st.integers(0, N_ZONES - 1), st.integers(0, N_ZONES), COUNT, COUNT))


@given(ROWS)
def test_sum_is_that_of_a_dict(rows: list[tuple[int, int, int, int]]) -> None:
    expected: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for d, o, *counts in rows:
        expected[d, o] = [a + b for a, b in zip(expected[d, o], counts, strict=True)]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    arguments = (table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2:])
    destination, origin, counts = merge_duplicates(*arguments, policy="sum", zones=ZONES)
    pairs = list(zip(destination.tolist(), origin.tolist(), strict=True))
    assert pairs == sorted(expected)
    assert counts.tolist() == [expected[pair] for pair in pairs]
    assert counts.shape == (len(expected), 2)

    on_the_map = [(d, o) for d, o, *_ in rows if o < N_ZONES]
    if len(set(on_the_map)) < len(on_the_map):
        with pytest.raises(ConfidentialDataError):
            merge_duplicates(*arguments, policy="refuse", zones=ZONES)
    else:
        refused = merge_duplicates(*arguments, policy="refuse", zones=ZONES)
        assert refused[2].tolist() == counts.tolist()
