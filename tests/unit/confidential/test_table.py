import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from odtables import GOOD, SEGMENTS, Write, lodes, long, refusal, rows

from synthmap.confidential import files, unknown
from synthmap.confidential.table import Chunk, merge_duplicates, one_row_a_worker, read_table
from synthmap.errors import (
    ConfidentialDataError,
    UnknownZoneError,
    VintageError,
)
from synthmap.geography.zones import Zones

# --- tables without fault ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "n_rows", "jobs", "outside"),
    [("main", 4518, 5470, "refuse"), ("aux", 2534, None, "elsewhere")],
)
def test_lodes_fixture(
    data_folder: Path,
    make_zones: Callable[..., Zones],
    file: str,
    n_rows: int,
    jobs: int | None,
    outside: Literal["refuse", "elsewhere"],
) -> None:
    folder = data_folder / "fixture_ri_bristol_2019"
    column = "tabblk2010"
    options = pacsv.ConvertOptions(include_columns=[column], column_types={column: pa.string()})
    ids = pacsv.read_csv(folder / "ri_xwalk.csv.gz", convert_options=options)[column].to_pylist()
    blocks = make_zones(ids)
    table = lodes(folder / f"ri_od_{file}_JT00_2019.csv.gz")
    total = list(read_table(table, blocks, segments=(), outside=outside))
    split = list(read_table(table, blocks, segments=SEGMENTS, outside=outside))
    assert sum(len(chunk.counts) for chunk in total) == n_rows
    in_total = sum(int(chunk.counts.sum()) for chunk in total)
    assert in_total == sum(int(chunk.counts.sum()) for chunk in split)
    assert jobs in (None, in_total)
    off_the_map = sum(int((chunk.origin == len(blocks)).sum()) for chunk in total)
    assert off_the_map == (n_rows if outside == "elsewhere" else 0)


def test_types_and_shapes(zones: Zones, write: Write) -> None:
    table = lodes(write(GOOD))
    (chunk,) = read_table(table, zones, segments=SEGMENTS, outside="refuse")
    assert isinstance(chunk, Chunk)
    assert chunk.destination.dtype == chunk.origin.dtype == np.int32
    assert chunk.counts.dtype == np.int64
    assert chunk.counts.shape == (2, 3)
    assert rows(table, zones) == [("01", "02", 987654), ("02", "E3", 3)]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("d,o,n\n01,02,5\n02,é4,0\n", id="plain, a row of 0 dropped"),
        pytest.param("\ufeffd,o,n\n01,02,5\n", id="byte-order mark"),
        pytest.param('"d","o","n"\r\n"01","02","5"\r\n', id="quotes, CRLF"),
        pytest.param("d,o,n\r01,02,5\r", id="CR"),
        pytest.param("\n\nd,o,n\n\n01,02,5", id="blank lines, no last line break"),
        pytest.param("x,n,o,y,d\n1.5,005,02,,01\n", id="other order, more columns"),
        pytest.param(gzip.compress(b"d,o,n\n01,02,5\n"), id="gzip under a name without .gz"),
        pytest.param(gzip.compress(b"d,o,n\n") + gzip.compress(b"01,02,5\n"), id="gzip in two members"),
    ],
)
def test_csv_forms(zones: Zones, write: Write, content: bytes | str) -> None:
    assert rows(long(write(content)), zones) == [("01", "02", 5)]


@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
def test_separators(zones: Zones, write: Write, separator: str) -> None:
    path = write("d,o,n\n01,02,5\n".replace(",", separator))
    assert rows(long(path, separator=separator), zones) == [("01", "02", 5)]


@pytest.mark.parametrize(
    ("ids", "counts"),
    [
        (pa.string(), pa.int64()),
        (pa.large_string(), pa.uint64()),
        (pa.binary(), pa.int8()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.string_view(), pa.uint16()),
    ],
    ids=str,
)
def test_parquet_types(zones: Zones, tmp_path: Path, ids: pa.DataType, counts: pa.DataType) -> None:
    path = tmp_path / "jobs.parquet"
    origin = pa.array(["02", "E3"]).cast(pa.dictionary(pa.int8(), pa.string()))
    origin = origin if pa.types.is_dictionary(ids) else origin.cast(pa.string()).cast(ids)
    papq.write_table(
        pa.table({"o": origin, "d": pa.array(["01", "01"]), "n": pa.array([5, 6]).cast(counts)}),
        path,
    )
    assert rows(long(path), zones) == [("01", "02", 5), ("01", "E3", 6)]


def test_one_row_a_worker(zones: Zones, write: Write) -> None:
    table = long(write("d,o,A,B\n01,02,1,0\n01,02,0,1\n"), count=None)
    assert one_row_a_worker(table)
    assert not one_row_a_worker(long(table.path))
    assert not one_row_a_worker(lodes(table.path))
    assert rows(table, zones) == [("01", "02", 1)] * 2
    assert rows(table, zones, ("A", "B")) == [("01", "02", 1, 0), ("01", "02", 0, 1)]


def test_blocks_make_no_difference(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("d,o,n\n" + "".join(f"01,02,{i}\n02,E3,{i}\n" for i in range(1, 500)))
    whole = rows(long(path), zones)
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
    table = long(path)
    assert len(list(read_table(table, zones, segments=(), outside="refuse"))) == 1  # small ones are put together
    monkeypatch.setattr(files, "BLOCK_BYTES", 1024)
    assert len(list(read_table(table, zones, segments=(), outside="refuse"))) > 10
    assert rows(table, zones) == whole


@pytest.mark.parametrize("origin", ["", '""', "99", "elsewhere", "3"])
def test_origin_off_the_map(zones: Zones, write: Write, origin: str) -> None:
    table = long(write(f"d,o,n\n01,{origin},5\n"))
    assert rows(table, zones, outside="elsewhere") == [("01", "elsewhere", 5)]
    refusal(table, zones, 'outside = "elsewhere"', "column o", kind=UnknownZoneError)


@pytest.mark.parametrize("empty", [None, ""])
def test_origin_empty_in_parquet(zones: Zones, tmp_path: Path, empty: str | None) -> None:
    path = tmp_path / "jobs.parquet"
    papq.write_table(pa.table({"o": pa.array([empty], pa.string()), "d": ["01"], "n": [5]}), path)
    assert rows(long(path), zones, outside="elsewhere") == [("01", "elsewhere", 5)]
    refusal(long(path), zones, "at least one is empty", kind=UnknownZoneError)


# --- geography --------------------------------------------------------------------------------


def test_vintage_before_the_file_is_opened(make_zones: Callable[..., Zones]) -> None:
    table = lodes(Path("nowhere.csv"))
    with pytest.raises(VintageError, match=r"nowhere.csv: vintage \(2010\) .* \(2020\)"):
        read_table(table, make_zones(["01"], "2020"), segments=(), outside="refuse")


def test_unknown_destination(zones: Zones, write: Write) -> None:
    table = long(write("d,o,n\n01,02,987654\n1,02,876543\n"))
    phrases = ("column d", "1 distinct", "'1'", "leading zero")
    message = refusal(table, zones, *phrases, kind=UnknownZoneError, outside="elsewhere")
    assert "elsewhere" not in message


def test_unknown_in_both_columns_is_one_error(zones: Zones, write: Write) -> None:
    table = long(write("d,o,n\nX,02,987654\n01,Y,876543\n"))
    refusal(table, zones, "'X'", "'Y'", "column d", "column o", kind=UnknownZoneError)


def test_unknown_ids_are_counted_over_all_blocks(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
    table = long(write("d,o,n\n" + "".join(f"01,x{i % 300:03},987654\n" for i in range(900))))
    phrases = ("300 distinct", "'x000'", "'x009', …")
    assert "'x010'" not in refusal(table, zones, *phrases, kind=UnknownZoneError)
    monkeypatch.setattr(unknown, "LIMIT", 100)
    refusal(table, zones, "counting stopped there", kind=UnknownZoneError)


@pytest.mark.parametrize("outside", ["refuse", "elsewhere"])
def test_empty_destination(zones: Zones, write: Write, outside: Literal["refuse", "elsewhere"]) -> None:
    table = long(write("d,o,n\n01,02,1\n,02,987654\n"))
    refusal(table, zones, "column d", "at least one is empty", outside=outside)


@pytest.mark.parametrize("outside", ["refuse", "elsewhere"])
def test_a_quote_that_swallows_rows_shows_none_of_them(
    zones: Zones, write: Write, outside: Literal["refuse", "elsewhere"]
) -> None:
    table = long(write('d,o,n\n01,"02,987654\n02",5\n'))
    refusal(table, zones, "column o", "quotes and line breaks", outside=outside)


# --- duplicates -------------------------------------------------------------------------------


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
