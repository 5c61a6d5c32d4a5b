"""Blocks of a confidential CSV, CSV.gz or Parquet file, with every fault told without its content.

The texts of pyarrow's exceptions quote rows. Here they only serve to recognise the fault; what is
raised is written anew, and ``from None``.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

from synthmap.errors import ConfidentialDataError, ConfigurationError
from synthmap.geography.zones import Zones
from synthmap.spec import TableSpec

BLOCK_BYTES = 1 << 24
PARSED_BYTES = 1 << 20  # of CSV at a time: unpacking goes on beside parsing, which takes half as long again with 2^24
BLOCK_ROWS = 1 << 19
HEADER_BYTES = 1 << 20

_FAULTS = (pa.ArrowException, OSError, ValueError, KeyError, TypeError)
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}


def is_parquet(table: TableSpec) -> bool:
    """Return whether the file says, by its first bytes or its name, that it is Parquet."""
    return _magic(table) == b"PAR1" or is_called_parquet(table)


def is_called_parquet(table: TableSpec) -> bool:
    """Return whether the file says so by its name; it is not opened."""
    return table.path.suffix.lower() in {".parquet", ".pq"}


def check_columns(table: TableSpec, needed: list[str], zones: Zones | None) -> None:
    """Check that the file can be opened and has every column in `needed`, each once.

    Parameters
    ----------
    table : TableSpec
        The file, confidential.
    needed : list of str
        Names of the columns that will be read.
    zones : Zones, optional
        Tells a header from a first row that holds zone ids, which is not shown; without, neither is.

    Raises
    ------
    ConfidentialDataError
        If the file is missing, unreadable, empty or not of its format, or a column is missing or
        twice there.
    ConfigurationError
        If the separator cannot separate.
    """
    found = _parquet_columns(table) if is_parquet(table) else _csv_columns(table)
    missing = [name for name in needed if name not in found]
    if missing:
        raise ConfidentialDataError(_missing_message(table, missing, found, zones))
    twice = [name for name in needed if found.count(name) > 1]
    if twice:
        raise ConfidentialDataError(
            f"{table.path.name}: every column must have its own name; "
            f"{', '.join(twice)} occurs more than once in the header"
        )
    if len(set(found)) < len(found):
        raise ConfidentialDataError(
            f"{table.path.name}: every column must have its own name; another name than those "
            f"needed occurs more than once in the header"
        )


def read_blocks(table: TableSpec, columns: list[str], part: tuple[int, int] = (0, 1)) -> Iterator[pa.RecordBatch]:
    """Return the file's rows block by block, only `columns`; those of a CSV file all as strings.

    Parameters
    ----------
    part : (int, int)
        Which part of the file, and of how many: a share of the row groups of Parquet, or all rows of CSV as part 0.

    Raises
    ------
    ConfidentialDataError
        If the file is corrupt, truncated, ragged or not UTF-8, or has no row below its header.
    """
    blocks = _parquet_blocks(table, columns, part) if is_parquet(table) else _csv_blocks(table, columns)
    if part[0] and not is_parquet(table):
        return
    rows = 0
    while True:
        try:
            block = next(blocks, None)
        except _FAULTS as fault:
            raise _translated(table, fault) from None
        if block is None:
            break
        rows += block.num_rows
        if block.num_rows:
            yield block
    if rows == 0 and not (is_parquet(table) and papq.read_metadata(table.path).num_rows):
        raise _without_rows(table)


def _parquet_blocks(table: TableSpec, columns: list[str], part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    with papq.ParquetFile(table.path, page_checksum_verification=True) as file:
        # parts that get one more come before the others: the last to be read is no larger one, that all would wait for
        first, last = (-(-file.num_row_groups * edge // part[1]) for edge in (part[0], part[0] + 1))
        yield from file.iter_batches(BLOCK_ROWS, columns=columns, row_groups=list(range(first, last)))


def _csv_blocks(table: TableSpec, columns: list[str]) -> Iterator[pa.RecordBatch]:
    convert = pacsv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
    )
    with (
        _stream(table) as stream,
        pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(block_size=PARSED_BYTES),
            parse_options=pacsv.ParseOptions(delimiter=table.separator),
            convert_options=convert,
        ) as reader,
    ):
        yield from _larger(reader)


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return `batches` put together to some of `BLOCK_BYTES`, and a last one."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.nbytes for one in held) >= BLOCK_BYTES:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _stream(table: TableSpec) -> Any:
    """Return the file's bytes as a stream, unpacked if they are gzip."""
    file = pa.OSFile(str(table.path))
    return pa.CompressedInputStream(file, "gzip") if _is_gzip(table) else file


def _is_gzip(table: TableSpec) -> bool:
    magic = _magic(table)
    return magic[:2] == b"\x1f\x8b" or (table.path.suffix.lower() == ".gz" and magic != b"")


def _magic(table: TableSpec) -> bytes:
    """Return the first four bytes of the file."""
    try:
        if not table.path.is_file():
            raise ConfidentialDataError(
                f"table ({table.path}) must be a file; it is missing or something else"
            ) from None
        with table.path.open("rb") as file:
            return file.read(4)
    except OSError as fault:
        raise ConfidentialDataError(f"table ({table.path}) must be readable: {fault.strerror or 'it is not'}") from None


def _parquet_columns(table: TableSpec) -> list[str]:
    try:
        names: list[str] = papq.read_schema(table.path).names
    except _FAULTS as fault:
        raise _translated(table, fault) from None
    return names


def _csv_columns(table: TableSpec) -> list[str]:
    """Return the column names in the first line that is not blank."""
    if not table.separator.isascii() or table.separator in '"\r\n\0':
        raise ConfigurationError(
            f"separator ({table.separator!r}) must be one ASCII character other than a quote or a line break"
        )
    try:
        with _stream(table) as stream:
            head = stream.read(HEADER_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    except _FAULTS as fault:
        raise _translated(table, fault) from None
    if not head:
        raise _without_rows(table)
    line = re.split(rb"[\r\n]", head, maxsplit=1)[0]
    if b"\0" in line:
        raise _not_utf8(table)
    try:
        names = next(csv.reader([line.decode("utf-8")], delimiter=table.separator))
    except UnicodeDecodeError:
        raise _not_utf8(table) from None
    except csv.Error:
        raise _malformed(table) from None
    if len(names) == 1:
        _check_separator(table, names[0])
    return names


def _check_separator(table: TableSpec, header: str) -> None:
    """Refuse a header of one column that holds another separator."""
    for separator, name in _SEPARATORS.items():
        if separator != table.separator and separator in header:
            shown = "\\t" if separator == "\t" else separator
            raise ConfidentialDataError(
                f"{table.path.name}: the header must have several columns separated by "
                f"{table.separator!r}; it has only one, which holds {name}: set "
                f'separator = "{shown}" for this table'
            )


def _missing_message(table: TableSpec, missing: list[str], found: list[str], zones: Zones | None) -> str:
    """Return the message for columns that are not in the header."""
    one = len(missing) == 1
    text = f"{table.path.name}: column{'' if one else 's'} {', '.join(missing)} must be in the header"
    if zones is None:
        return f"{text}; the first line is not shown"
    if _looks_like_data(found, zones):
        return f"{text}; the first line is not shown, because it looks like data, not like a header"
    shown = ", ".join(repr(name[:40]) for name in found[:40]) + (", …" if len(found) > 40 else "")
    near = [(f, m) for m in missing for f in found if _plain(f) == _plain(m)]
    hints = [f"; {f!r} differs from {m!r} only by case, spaces or a byte-order mark" for f, m in near]
    return f"{text}; the columns found are {shown}{''.join(hints)}"


def _looks_like_data(names: list[str], zones: Zones) -> bool:
    """Return whether a name is a number, an id with five digits in a row, or a zone."""
    if any(re.search(r"^[\s\d.,+-]*$|\d{5}", name) for name in names if name):
        return True
    return bool((zones.find(pa.array(names, pa.string())) >= 0).any())


def _plain(name: str) -> str:
    return re.sub(r"[\s\ufeff\"']", "", name).casefold()


def _translated(table: TableSpec, fault: BaseException) -> ConfidentialDataError:
    """Return the error to raise instead of `fault`, whose text may quote rows."""
    text = str(fault)
    if is_parquet(table):
        return ConfidentialDataError(
            f"{table.path.name}: the file must be valid Parquet; it is corrupt, truncated, "
            f"encrypted or something else: write it again"
        )
    if "Empty CSV" in text:
        return _without_rows(table)
    if "UTF8" in text:
        return _not_utf8(table)
    if "columns, got" in text:
        return ConfidentialDataError(
            f"{table.path.name}: every row must have as many columns as the header; at least one "
            f"has more or fewer: check separators and quotes"
        )
    if isinstance(fault, OSError):
        kind = "valid gzip; it is corrupt or truncated" if _is_gzip(table) else "readable to its end"
        return ConfidentialDataError(f"{table.path.name}: the file must be {kind}: copy it again")
    return _malformed(table)


def _without_rows(table: TableSpec) -> ConfidentialDataError:
    return ConfidentialDataError(
        f"{table.path.name}: the table must have a header and at least one row; it is empty or has only a header"
    )


def _not_utf8(table: TableSpec) -> ConfidentialDataError:
    return ConfidentialDataError(
        f"{table.path.name}: the file must be CSV in UTF-8, the same in gzip, or Parquet; it has "
        f"bytes that are not UTF-8 text: save it again in UTF-8"
    )


def _malformed(table: TableSpec) -> ConfidentialDataError:
    return ConfidentialDataError(
        f"{table.path.name}: the file must be well-formed CSV: check separators, quotes and line breaks inside quotes"
    )
