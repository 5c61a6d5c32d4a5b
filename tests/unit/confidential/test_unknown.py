"""Ids that are no zones: refused with what to check, and without what they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from odtables import Write, long, refusal, rows

from synthmap.confidential import files
from synthmap.confidential.table import read_table
from synthmap.errors import UnknownZoneError
from synthmap.geography.zones import Zones

BLOCK, OTHER, ABROAD = "440010301001008", "440010301001000", "250010301001008"
Outside = Literal["refuse", "elsewhere"]


@pytest.fixture
def blocks(make_zones: Callable[..., Zones]) -> Zones:
    return make_zones([BLOCK, OTHER])


@pytest.fixture
def counties(make_zones: Callable[..., Zones]) -> Zones:
    return make_zones(["01001", "06005", "44001"])


@pytest.fixture
def msoas(make_zones: Callable[..., Zones]) -> Zones:
    return make_zones(["E02002330", "E02002331", "w06000001"])


# --- nothing of a column is shown ---------------------------------------------------------------


SECRETS = ["Smith, Anna 0", "45123", "99999", "E09", "1e5"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("column", ["o", "d"])
def test_no_value_of_a_wrong_column_is_shown(counties: Zones, write: Write, column: str, secret: str) -> None:
    """Wages look like ids of counties; some may even be ones."""
    row = {"d": "44001", "o": "44001", "n": "987654"} | {column: f'"{secret}"'}
    table = long(write("d,o,n\n" + ",".join(row.values()) + "\n"))
    message = refusal(table, counties, f"column {column}", repr(counties.ids[0].as_py()), kind=UnknownZoneError)
    assert secret not in message


@pytest.mark.parametrize("column", ["o", "d"])
def test_how_many_there_are_is_not_told(counties: Zones, write: Write, column: str) -> None:
    messages = set()
    for many in (1, 2, 300):
        values = [f"x{i}" for i in range(many)]
        lines = [f"44001,{v},5" if column == "o" else f"{v},44001,5" for v in values]
        messages.add(refusal(long(write("d,o,n\n" + "\n".join(lines) + "\n")), counties, kind=UnknownZoneError))
    assert len(messages) == 1


def test_what_is_wrong_is_told_of_all_blocks(counties: Zones, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 256)
    monkeypatch.setattr(files, "PARSED_BYTES", 256)
    good = "44001,44001,5\n" * 200
    table = long(write(f"d,o,n\n44001,1001,5\n{good}44001,99999,5\n{good}44001,x,5\n{good}44001,,5\n"))
    phrases = ("leading zeros", "vintage", "check that o is the column", "at least one is empty")
    refusal(table, counties, *phrases, kind=UnknownZoneError)


@pytest.mark.parametrize(
    ("value", "phrase", "others"),
    [
        ("99999", "vintage", ("leading zeros", "is the column", "empty")),
        ("far", "check that d is the column", ("leading zeros", "vintage", "empty")),
        ("9999", "check that d is the column", ("leading zeros", "vintage", "empty")),
        ("1001", "leading zeros", ("vintage", "is the column", "empty")),
    ],
)
def test_what_to_check_is_told(counties: Zones, write: Write, value: str, phrase: str, others: tuple[str, ...]) -> None:
    message = refusal(long(write(f"d,o,n\n{value},01001,5\n")), counties, phrase, kind=UnknownZoneError)
    assert not any(other in message for other in others)
    assert value not in message.replace("01001", "")


# --- ids of zones that were written otherwise ---------------------------------------------------

NUMBERS = [
    BLOCK + ".0",
    BLOCK + ".",
    BLOCK + ".000",
    "0" + BLOCK,
    "4.40010301001008E+14",
    "4.40010301001008e14",
    "+4.40010301001008e14",
    "4.40e14",
    "4.4E+14",
    "4E+14",
    f" {BLOCK}",
    f"{BLOCK} ",
    f"{BLOCK}\u00a0",
    f"\ufeff{BLOCK}",
    f"\u200b{BLOCK}",
    f"'{BLOCK}",
    f"{BLOCK}\t",
    "440,010,301,001,008",
    "440 010 301 001 008",
    "".join(chr(ord("０") + int(digit)) for digit in BLOCK),
]


@pytest.mark.parametrize("outside", ["refuse", "elsewhere"])
@pytest.mark.parametrize("origin", NUMBERS)
def test_a_zone_written_otherwise_is_not_elsewhere(blocks: Zones, write: Write, origin: str, outside: Outside) -> None:
    table = long(write(f'd,o,n\n{BLOCK},{ABROAD},3\n{BLOCK},"{origin}",987654\n'))
    message = refusal(table, blocks, "column o", "written otherwise", "column as text", kind=UnknownZoneError,
                      outside=outside)  # fmt: skip
    assert origin not in message.replace(repr(blocks.ids[0].as_py()), "")
    assert 'set outside = "elsewhere"' not in message


@pytest.mark.parametrize("origin", ["e02002330", " E02002330", "E02002331.0", "W06000001", "W06000001 "])
def test_nor_one_in_other_letters(msoas: Zones, write: Write, origin: str) -> None:
    table = long(write(f"d,o,n\nE02002330,{origin},987654\n"))
    refusal(table, msoas, "written otherwise", kind=UnknownZoneError, outside="elsewhere")


@pytest.mark.parametrize(
    "origin", [ABROAD, ABROAD + ".0", "25001", "elsewhere", "", "nan", "7", "0", "4E07", "x" * 400]
)
def test_what_is_no_zone_however_it_is_written_is_elsewhere(blocks: Zones, write: Write, origin: str) -> None:
    table = long(write(f"d,o,n\n{BLOCK},{origin},5\n"))
    assert rows(table, blocks, outside="elsewhere") == [(BLOCK, "elsewhere", 5)]


@pytest.mark.parametrize("origin", ["S02000001", "4.4E+14", "E2002330", "1e999", "9e99"])
def test_nor_is_it_a_zone_where_ids_have_letters(msoas: Zones, write: Write, origin: str) -> None:
    table = long(write(f"d,o,n\nE02002330,{origin},5\n"))
    assert rows(table, msoas, outside="elsewhere") == [("E02002330", "elsewhere", 5)]


def test_ids_of_different_lengths_are_told_from_those_without_zeros(make_zones: Any, write: Write) -> None:
    zones = make_zones(["1", "12", "0123"])
    for good, origin in (("far", "123x"), ("away", "99")):
        assert rows(long(write(f"d,o,n\n1,{origin},5\n", f"{good}.csv")), zones, outside="elsewhere")
    for origin in ("01", "123", "12.0", "1.2e1", "001"):
        table = long(write(f"d,o,n\n1,{origin},5\n"))
        refusal(table, zones, "written otherwise", kind=UnknownZoneError, outside="elsewhere")


def test_however_many_others_come_before(blocks: Zones, tmp_path: Path) -> None:
    lines = "".join(f"{BLOCK},25{i:013},5\n" for i in range(150_000))
    path = tmp_path / "jobs.csv"
    path.write_text(f"d,o,n\n{lines}{BLOCK},{BLOCK}.0,5\n")
    with pytest.raises(UnknownZoneError, match="written otherwise"):
        list(read_table(long(path), blocks, segments=(), outside="elsewhere"))
