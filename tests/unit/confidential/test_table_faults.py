import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from odtables import LODES, SECRETS, SEGMENTS, Write, lodes, long, refusal, rows, visible

from synthmap.confidential import files
from synthmap.confidential.table import read_table
from synthmap.errors import (
    ConfidentialDataError,
    ConfigurationError,
    UnknownZoneError,
)
from synthmap.geography.zones import Zones

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
        pytest.param(PACKED[:10] + b"\xff" * 200, "gzip; it is corrupt or truncated", id="gzip not unpackable"),
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
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
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
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
    good = "d,o,n\n" + "01,02,987654\n" * 200
    refusal(long(write(good + "01,02,876543.0\n")), zones, "decimal")
    refusal(long(write(good + "01,876543\n")), zones, "as many columns")
    refusal(long(write(good.encode() + b"01,\xe9,876543\n")), zones, "not UTF-8")
    refusal(long(write(good + "01," + "2" * 2000 + ",876543\n")), zones, "well-formed")


def test_cut_gzip_is_always_refused(zones: Zones, write: Write) -> None:
    for cut in (*range(1, 40), *range(len(PACKED) - 40, len(PACKED))):
        with pytest.raises(ConfidentialDataError):
            rows(long(write(PACKED[:cut], "jobs.csv.gz")), zones)


def test_origins_that_only_lack_zeros_are_not_elsewhere(zones: Zones, write: Write) -> None:
    path = write("d,o,n\n01,1,987654\n02,far,3\n")
    refusal(long(path), zones, "leading zeros", "column as text", kind=UnknownZoneError, outside="elsewhere")
    assert rows(long(write("d,o,n\n02,far,3\n", "far.csv")), zones, outside="elsewhere") == [("02", "elsewhere", 3)]


def test_a_process_ends_after_a_fault_early_in_a_large_gzip(tmp_path):
    """Arrow still reads on in its own threads; if those called Python, the process would hang or abort."""
    rows = np.random.default_rng(1).integers(0, 10**9, (300_000, 2))
    text = b"w,h\n1,2,3\n" + "".join(f"{a},{b}\n" for a, b in rows.tolist()).encode()
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text * 8, 1))
    code = f"""
from pathlib import Path
from synthmap.confidential.files import read_blocks
from synthmap.errors import ConfidentialDataError
from synthmap.spec import TableSpec
table = TableSpec(path=Path({str(tmp_path / "t.csv.gz")!r}), vintage="v", format="long", destination="w", origin="h")
try:
    next(read_blocks(table, ["w", "h"]))
except ConfidentialDataError:
    raise SystemExit(2) from None
"""
    for _ in range(6):
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 2
