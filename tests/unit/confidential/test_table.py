import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from odtables import GOOD, SEGMENTS, Write, lodes, long, refusal, rows

from synthmap.confidential import files
from synthmap.confidential.table import Chunk, one_row_a_worker, read_table
from synthmap.errors import (
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
    example = repr(zones.ids[0].as_py())
    phrases = ("every id of column d must be one of the zones", example, "leading zero", "as numbers")
    message = refusal(table, zones, *phrases, kind=UnknownZoneError, outside="elsewhere")
    assert "elsewhere" not in message
    assert "'1'" not in message


def test_unknown_in_both_columns_is_one_error(zones: Zones, write: Write) -> None:
    table = long(write("d,o,n\nX,02,987654\n01,Y,876543\n"))
    message = refusal(table, zones, "column d", "column o", kind=UnknownZoneError)
    assert "X" not in message
    assert "Y" not in message


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


@pytest.mark.parametrize("groups", [1, 3, 7, 8, 9, 10, 17])
def test_parts_have_every_row_once_the_first_as_many_as_any_the_last_as_few(groups: int, tmp_path: Path) -> None:
    """So that the last to be read is no larger one, for which all others would wait."""
    ids = pa.array([f"{number:02}" for number in range(groups)])
    papq.write_table(pa.table({"w": ids, "h": ids}), tmp_path / "od.parquet", row_group_size=1)
    table = long(tmp_path / "od.parquet")
    parts = [
        [id for block in files.read_blocks(table, ["w"], (number, 8)) for id in block["w"].to_pylist()]
        for number in range(8)
    ]
    assert [id for part in parts for id in part] == ids.to_pylist()
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[0] == max(sizes)
    assert sizes[-1] == min(sizes)
