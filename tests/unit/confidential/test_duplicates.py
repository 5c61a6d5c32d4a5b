"""Pairs in several rows: refused or summed, on the map and off it."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from odtables import Write, long

from synthmap.confidential import files
from synthmap.confidential.duplicates import Rows, merge_duplicates, merge_tables
from synthmap.confidential.table import Chunk, read_table
from synthmap.errors import ConfidentialDataError
from synthmap.geography.zones import Zones


def test_merge_duplicates(zones: Zones) -> None:
    destination = np.array([1, 0, 1, 0], dtype=np.int32)
    origin = np.array([2, 1, 2, 0], dtype=np.int32)
    counts = np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    d, o, n = merge_duplicates(destination, origin, counts, policy="sum", zones=zones)
    assert (d.dtype, o.dtype, n.dtype) == (np.int32, np.int32, np.int64)
    assert d.tolist() == [0, 0, 1]
    assert o.tolist() == [0, 1, 2]
    assert n.tolist() == [[7, 8], [3, 4], [6, 8]]
    with pytest.raises(ConfidentialDataError) as caught:
        merge_duplicates(destination, origin, counts, policy="refuse", zones=zones)
    message = str(caught.value)
    assert "must occur once" in message
    assert 'duplicates = "sum"' in message
    ids = zones.ids.to_pylist()
    assert [i for i in ids if repr(i) in message] == [ids[1]]


def test_refused_duplicates_name_ten_destinations(make_zones: Callable[..., Zones]) -> None:
    many = make_zones([f"z{i:02}" for i in range(12)])
    destination = np.repeat(np.arange(12, dtype=np.int32), 2)
    origin = np.zeros_like(destination)
    counts = np.full((24, 1), 987654)
    with pytest.raises(ConfidentialDataError) as caught:
        merge_duplicates(destination, origin, counts, policy="refuse", zones=many)
    assert len(re.findall(r"z\d\d", str(caught.value))) == 10
    assert "987654" not in str(caught.value)


def test_rows_from_elsewhere_are_summed_under_either_policy(zones: Zones) -> None:
    destination = np.zeros(3, dtype=np.int32)
    origin = np.array([len(zones), 1, len(zones)], dtype=np.int32)
    counts = np.array([[1], [2], [3]])
    _, o, n = merge_duplicates(destination, origin, counts, policy="refuse", zones=zones)
    assert (o.tolist(), n.tolist()) == ([1, len(zones)], [[2], [4]])


def test_elsewhere_is_not_the_next_destinations_first_origin(zones: Zones) -> None:
    destination = np.array([1, 0], dtype=np.int32)
    origin = np.array([0, len(zones)], dtype=np.int32)
    d, o, _ = merge_duplicates(destination, origin, np.ones((2, 1), dtype=np.int64), policy="refuse", zones=zones)
    assert (d.tolist(), o.tolist()) == ([0, 1], [len(zones), 0])


# --- off the map ------------------------------------------------------------------------------


def chunks(write: Write, zones: Zones, name: str, content: str, count: str | None = "n") -> Sequence[Chunk]:
    table = long(write(content, name), count=count)
    return list(read_table(table, zones, segments=(), outside="elsewhere"))


def workers(merged: Rows) -> list[tuple[int, int, int]]:
    return [(int(d), int(o), int(n[0])) for d, o, n in zip(*merged, strict=True)]


@pytest.mark.parametrize("again", ["01,X1,5", "01,X1,4", '01,"X1",5', "01,,5"])
def test_a_pair_from_off_the_map_is_not_counted_twice(zones: Zones, write: Write, again: str) -> None:
    found = chunks(write, zones, "a.csv", f"d,o,n\n01,X1,5\n01,,7\n01,X2,5\n02,X1,5\n{again}\n")
    with pytest.raises(ConfidentialDataError) as caught:
        merge_tables([], found, policy="refuse", zones=zones)
    message = str(caught.value)
    assert "'01'" in message
    assert 'duplicates = "sum"' in message
    assert not any(secret in message for secret in ("X1", "X2", "02", "5", "4", "7"))
    total = merge_tables([], found, policy="sum", zones=zones)
    assert sum(n for _, _, n in workers(total)) == 22 + int(again[-1])


def test_others_from_off_the_map_are_one_flow(zones: Zones, write: Write) -> None:
    found = chunks(write, zones, "a.csv", "d,o,n\n01,X1,5\n01,X2,5\n01,,7\n02,X1,5\n02,x1,1\n01,X1,0\n01,02,1\n")
    ids = [*zones.ids.to_pylist(), None]
    merged = [(ids[d], ids[o], n) for d, o, n in workers(merge_tables([], found, policy="refuse", zones=zones))]
    assert sorted(merged, key=str) == [("01", "02", 1), ("01", None, 17), ("02", None, 6)]


def test_nor_in_another_block_or_table(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
    many = "".join(f"01,Y{i},5\n" for i in range(500))
    one, other = (chunks(write, zones, name, f"d,o,n\n{many}") for name in ("a.csv", "b.csv"))
    assert len(one) > 10
    assert workers(merge_tables([], one, policy="refuse", zones=zones))[0][2] == 2500
    far = chunks(write, zones, "c.csv", "d,o,n\n01,Y499,5\n")
    for twice in ([*one, *other], [*one, *far], [*far, *one]):
        with pytest.raises(ConfidentialDataError, match="in several rows, at destination '01'"):
            merge_tables([], twice, policy="refuse", zones=zones)


def test_one_row_a_worker_may_repeat_but_not_what_another_table_has(zones: Zones, write: Write) -> None:
    listed = chunks(write, zones, "a.csv", "d,o\n01,X1\n01,X1\n01,X2\n", count=None)
    assert workers(merge_tables(listed, [], policy="refuse", zones=zones))[0][2] == 3
    flows = chunks(write, zones, "b.csv", "d,o,n\n01,X3,5\n02,X1,5\n")
    assert sum(n for *_, n in workers(merge_tables(listed, flows, policy="refuse", zones=zones))) == 13
    flows = chunks(write, zones, "c.csv", "d,o,n\n01,X2,5\n")
    with pytest.raises(ConfidentialDataError, match="in several rows, at destination '01'"):
        merge_tables(listed, flows, policy="refuse", zones=zones)
