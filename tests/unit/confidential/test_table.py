import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

from synthmap.confidential import files, unknown
from synthmap.confidential.table import Chunk, merge_duplicates, one_row_a_worker, read_table
from synthmap.errors import (
    ConfidentialDataError,
    ConfigurationError,
    SynthmapError,
    UnknownZoneError,
    VintageError,
)
from synthmap.geography.zones import Zones
from synthmap.spec import TableSpec

SECRETS = ("987654", "876543")
SEGMENTS = ("SA01", "SA02", "SA03")
LODES = "w_geocode,h_geocode,S000,SA01,SA02,SA03,createdate\n"
GOOD = LODES + "01,02,987654,987653,1,0,20211018\n02,E3,3,1,1,1,20211018\n"

Write = Callable[..., Path]


def lodes(path: Path, **keys: Any) -> TableSpec:
    return TableSpec(path=path, vintage="2010", **keys)


def long(path: Path, count: str | None = "n", **keys: Any) -> TableSpec:
    return TableSpec(path=path, vintage="2010", format="long", origin="o", destination="d", count=count, **keys)


def rows(
    table: TableSpec,
    zones: Zones,
    segments: tuple[str, ...] = (),
    outside: Literal["refuse", "elsewhere"] = "refuse",
) -> list[tuple[Any, ...]]:
    """The table's rows as (destination, origin, counts), ids put back."""
    names = [*zones.ids.to_pylist(), "elsewhere"]
    return [
        (names[d], names[o], *map(int, n))
        for chunk in read_table(table, zones, segments=segments, outside=outside)
        for d, o, n in zip(chunk.destination, chunk.origin, chunk.counts, strict=True)
    ]


def visible(error: BaseException | None) -> Iterator[str]:
    """All texts a traceback of `error` would print."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def refusal(
    table: TableSpec,
    zones: Zones,
    *phrases: str,
    kind: type[SynthmapError] = ConfidentialDataError,
    segments: tuple[str, ...] = (),
    outside: Literal["refuse", "elsewhere"] = "refuse",
) -> str:
    """The message, after checking that it says what it should and nothing it must not."""
    with pytest.raises(SynthmapError) as caught:
        list(read_table(table, zones, segments=segments, outside=outside))
    assert type(caught.value) is kind, str(caught.value)
    for text in visible(caught.value):
        assert not any(secret in text for secret in SECRETS), text
    message = str(caught.value)
    assert table.path.name in message
    assert "\n" not in message
    for phrase in phrases:
        assert phrase in message, message
    return message


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
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    table = long(path)
    assert len(list(read_table(table, zones, segments=(), outside="refuse"))) > 10
    assert rows(table, zones) == whole


@pytest.mark.parametrize("origin", ["", '""', "99", "elsewhere", "1"])
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


# --- counts -----------------------------------------------------------------------------------

BAD_COUNTS = [
    ("3.0", "decimal"),
    ("987654.5", "decimal"),
    ("1e3", "decimal"),
    ("-987654", "negative"),
    ("-1.5", "negative"),
    ("", "empty"),
    ('""', "empty"),
    ("NaN", "not a number"),
    ("inf", "not a number"),
    ("NA", "not a number"),
    ("987654x", "not a number"),
    ("0x10", "not a number"),
    (" 5", "not a number"),
    ("+5", "not a number in digits only"),
    ("٣", "not a number"),
    ('"1,000"', "not a number in digits only"),
    ("1.5e3", "decimal"),
    (".5", "decimal"),
    ("3.", "decimal"),
    ("-1e3", "negative"),
    ("-", "not a number"),
    ("nan", "not a number"),
    ("2147483648", "too large"),
    ("98765498765498765498765", "too large"),
]


@pytest.mark.parametrize(("value", "fault"), BAD_COUNTS)
def test_bad_count(zones: Zones, write: Write, value: str, fault: str) -> None:
    path = write(f"d,o,n\n02,01,876543\n01,02,{value}\n")
    refusal(long(path), zones, "column n must hold whole numbers", fault)


def test_bad_count_in_a_segment(zones: Zones, write: Write) -> None:
    table = lodes(write(LODES + "01,02,987654,987654,0.0,0,1\n"))
    refusal(table, zones, "column SA02", "decimal", segments=SEGMENTS)


def test_largest_count(zones: Zones, write: Write) -> None:
    assert rows(long(write("d,o,n\n01,02,2147483647\n")), zones) == [("01", "02", 2147483647)]


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        (pa.array([987654.0]), "decimal"),
        (pa.array([float("nan")]), "decimal or NaN"),
        (pa.array([987654, None]), "empty"),
        (pa.array([None], pa.null()), "empty"),
        (pa.array([-987654]), "negative"),
        (pa.array([2**64 - 1], pa.uint64()), "too large"),
        (pa.array([True]), "not a number"),
        (pa.array([[987654]]), "not a number"),
        (pa.array(["987654.0"]), "decimal"),
        (pa.array(["", "5"]), "empty"),
        (pa.array([b"\xff987654"]), "UTF-8"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_bad_count_in_parquet(zones: Zones, tmp_path: Path, counts: pa.Array, fault: str) -> None:
    path = tmp_path / "jobs.parquet"
    ids = pa.array(["01"] * len(counts))
    papq.write_table(pa.table({"o": ids, "d": ids, "n": counts}), path)
    refusal(long(path), zones, "column n must hold", fault)


@pytest.mark.parametrize("row", ["987654,1,1,1", "1,0,0,0", "0,1,0,0"])
def test_segments_that_do_not_sum(zones: Zones, write: Write, row: str) -> None:
    table = lodes(write(LODES + f"01,02,{row},1\n"))
    refusal(table, zones, "columns SA01, SA02, SA03 must sum to column S000", segments=SEGMENTS)
    assert "S000" not in refusal(long(write("d,o,n,A\n01,02,987654,2\n")), zones, "column n", segments=("A",))


@pytest.mark.parametrize("row", ["0,0", "1,1", "2,0", "987654,0"])
def test_one_row_a_worker_in_one_segment(zones: Zones, write: Write, row: str) -> None:
    table = long(write(f"d,o,A,B\n01,02,{row}\n"), count=None)
    refusal(table, zones, "columns A, B must be one 1 and otherwise 0", segments=("A", "B"))


# --- ids read as numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("column", ["o", "d"])
@pytest.mark.parametrize(
    "ids",
    [
        pa.array([987654]),
        pa.array([987654.0]),
        pa.array([987654]).dictionary_encode(),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_ids_read_as_numbers(zones: Zones, tmp_path: Path, column: str, ids: pa.Array) -> None:
    path = tmp_path / "jobs.parquet"
    papq.write_table(pa.table({"o": ["01"], "d": ["01"], "n": [1]} | {column: ids}), path)
    refusal(long(path), zones, f"column {column}", "read as numbers", "leading zeros")


@pytest.mark.parametrize(
    "ids",
    [pa.array([True]), pa.array([[b"01"]])],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_ids_of_another_type(zones: Zones, tmp_path: Path, ids: pa.Array) -> None:
    path = tmp_path / "jobs.parquet"
    papq.write_table(pa.table({"o": ids, "d": ["01"], "n": [1]}), path)
    refusal(long(path), zones, "column o must hold text")


# --- files ------------------------------------------------------------------------------------

BIG = ("d,o,n\n" + "01,02,987654\n02,01,876543\n" * 20_000).encode()
PACKED = gzip.compress(BIG)


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        pytest.param(b"", "at least one row", id="empty"),
        pytest.param(b"\xef\xbb\xbf\n\n", "at least one row", id="blank"),
        pytest.param(b"d,o,n\n", "at least one row", id="header only"),
        pytest.param(b"d,o,n", "at least one row", id="header only, no line break"),
        pytest.param(b"d,o,n\n\n\n", "at least one row", id="header and blank lines"),
        pytest.param(gzip.compress(b""), "at least one row", id="empty gzip"),
        pytest.param(gzip.compress(b"d,o,n\n"), "at least one row", id="header only, gzip"),
        pytest.param(b"d,n\n01,987654\n", "column o must be in the header", id="missing"),
        pytest.param(b"d,n\n01,987654\n", "found are 'd', 'n'", id="columns found"),
        pytest.param(b"d,O,n\n01,02,987654\n", "'O' differs from 'o' only by case", id="case"),
        pytest.param(b"d, o,n\n01,02,987654\n", "' o' differs from 'o'", id="space"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfd,o,n\n01,02,987654\n", "byte-order mark", id="two marks"),
        pytest.param(b"d;o;n\n01;02;987654\n", 'set separator = ";"', id="semicolon"),
        pytest.param(b"d\to\tn\n01\t02\t987654\n", 'set separator = "\\t"', id="tab"),
        pytest.param(b"d|o|n\n01|02|987654\n", 'set separator = "|"', id="bar"),
        pytest.param(b"01,02,987654\n02,01,876543\n", "looks like data", id="no header"),
        pytest.param(b"E3,X,Y\n02,01,876543\n", "looks like data", id="no header, a zone"),
        pytest.param(b"q987654,r,s\n02,01,876543\n", "looks like data", id="no header, an id"),
        pytest.param("d,o,n\n01,é4,987654\n".encode("latin-1"), "not UTF-8 text", id="Latin-1"),
        pytest.param("d,o,n,é\n01,02,987654,\n".encode("latin-1"), "not UTF-8 text", id="Latin-1 header"),
        pytest.param("d,o,n\n01,02,987654\n".encode("utf-16"), "not UTF-8 text", id="UTF-16"),
        pytest.param("d,o,n\n01,02,987654\n".encode("utf-16-le"), "not UTF-8 text", id="UTF-16, no mark"),
        pytest.param(b"PK\x03\x04\x14\0\0\0987654", "not UTF-8 text", id="a workbook"),
        pytest.param(b"d,o,n\n01,02\n", "as many columns as the header", id="short row"),
        pytest.param(b"d,o,n\n01,02,1,987654\n", "as many columns as the header", id="long row"),
        pytest.param(b'd,o,n\n01,"02,987654\n', "as many columns as the header", id="open quote"),
        pytest.param(b"d,o,n,n\n01,02,987654,3\n", "n occurs more than once", id="twice"),
        pytest.param(b"d,o,n,x,x\n01,02,987654,3,4\n", "more than once", id="other twice"),
        pytest.param(PACKED[:-4], "gzip; it is corrupt or truncated", id="gzip without its end"),
        pytest.param(PACKED[:-100], "gzip; it is corrupt or truncated", id="gzip truncated"),
        pytest.param(PACKED[:5], "gzip; it is corrupt or truncated", id="gzip of five bytes"),
        pytest.param(PACKED[:-8] + b"12345678", "gzip; it is corrupt or truncated", id="gzip checksum"),
    ],
)
def test_bad_file(zones: Zones, write: Write, content: bytes, phrase: str) -> None:
    refusal(long(write(content)), zones, phrase)


def test_csv_named_gz(zones: Zones, write: Write) -> None:
    refusal(long(write("d,o,n\n01,02,987654\n", "jobs.csv.gz")), zones, "valid gzip")


def test_comma_where_a_semicolon_was_set(zones: Zones, write: Write) -> None:
    table = long(write("d,o,n\n01,02,987654\n"), separator=";")
    refusal(table, zones, "a comma", 'separator = ","')


def test_missing_lodes_columns(zones: Zones, write: Write) -> None:
    table = lodes(write("work,home,S000\n01,02,987654\n"))
    phrases = ("columns w_geocode, h_geocode, SA01, SA02, SA03 must", "'work', 'home', 'S000'")
    refusal(table, zones, *phrases, segments=SEGMENTS)


@pytest.mark.parametrize("cut", [4, 12, 200, -1, -9])
def test_corrupt_parquet(zones: Zones, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "jobs.parquet"
    ids = pa.array(["01"] * 100)
    papq.write_table(pa.table({"o": ids, "d": ids, "n": [987654] * 100}), path)
    path.write_bytes(path.read_bytes()[:cut])
    refusal(long(path), zones, "must be valid Parquet")


def test_parquet_in_name_only(zones: Zones, write: Write) -> None:
    refusal(long(write("d,o,n\n01,02,987654\n", "jobs.parquet")), zones, "must be valid Parquet")


def test_damaged_page_of_parquet(zones: Zones, tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    ids = pa.array(["01"] * 100)
    table = pa.table({"o": ids, "d": ids, "n": range(987654, 987754)})
    papq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    where = content.index((987700).to_bytes(8, "little"))
    path.write_bytes(content[:where] + b"\x01" + content[where + 1 :])
    refusal(long(path), zones, "must be valid Parquet")


def test_parquet_without_rows_or_columns(zones: Zones, tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    nothing = pa.array([], pa.string())
    papq.write_table(pa.table({"o": nothing, "d": nothing, "n": nothing}), path)
    refusal(long(path), zones, "at least one row")
    papq.write_table(pa.table({"o": nothing, "D": nothing, "n.x": nothing}), path)
    refusal(long(path), zones, "columns d, n must", "'D' differs from 'd'")


def test_parquet_with_a_column_twice(zones: Zones, tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    ids = pa.array(["01"])
    papq.write_table(pa.Table.from_arrays([ids, ids, ids, ids], ["o", "d", "n", "n"]), path)
    refusal(long(path), zones, "n occurs more than once")


def test_not_a_file(zones: Zones, tmp_path: Path) -> None:
    refusal(long(tmp_path), zones, "must be a file")
    refusal(long(tmp_path / "nowhere.csv"), zones, "must be a file")


def test_unreadable(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    table = long(write("d,o,n\n01,02,987654\n"))

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    refusal(table, zones, "must be readable: Permission denied")


def test_removed_while_reading(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    table = long(write("d,o,n\n" + "01,02,5\n" * 500 + "01,987654\n"))
    chunks = read_table(table, zones, segments=(), outside="refuse")
    next(chunks)
    table.path.unlink()
    with pytest.raises(ConfidentialDataError, match="must be a file") as caught:
        list(chunks)
    assert not any(secret in text for text in visible(caught.value) for secret in SECRETS)


@pytest.mark.parametrize("separator", ['"', "\n", "é"])
def test_separator_that_cannot_separate(zones: Zones, write: Write, separator: str) -> None:
    table = long(write("d,o,n\n01,02,987654\n"), separator=separator)
    with pytest.raises(ConfigurationError, match="one ASCII character"):
        read_table(table, zones, segments=(), outside="refuse")


def test_one_column_in_two_parts(zones: Zones, write: Write) -> None:
    table = long(write("d,o,n\n01,02,987654\n"), count="o")
    refusal(table, zones, "o is named more than once", kind=ConfigurationError)


def test_faults_later_in_the_file(zones: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    good = "d,o,n\n" + "01,02,987654\n" * 200
    refusal(long(write(good + "01,02,876543.0\n")), zones, "decimal")
    refusal(long(write(good + "01,876543\n")), zones, "as many columns")
    refusal(long(write(good.encode() + b"01,\xe9,876543\n")), zones, "not UTF-8")
    refusal(long(write(good + "01," + "2" * 2000 + ",876543\n")), zones, "well-formed")


def test_cut_gzip_is_always_refused(zones: Zones, write: Write) -> None:
    for cut in (*range(1, 40), *range(len(PACKED) - 40, len(PACKED))):
        with pytest.raises(ConfidentialDataError):
            rows(long(write(PACKED[:cut], "jobs.csv.gz")), zones)


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
