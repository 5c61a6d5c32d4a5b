"""Columns of a confidential table, checked: ids are text, counts are whole numbers.

Messages name the column and the rule, never a value.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.errors import ConfidentialDataError

COUNT_LIMIT = 2**31

_NEGATIVE = r"^-[0-9.]+([eE][+-]?[0-9]+)?$"
_DECIMAL = r"^\+?([0-9]*\.[0-9]*|[0-9]+[eE])[eE+-]*[0-9]*$"


def ids_of(column: pa.Array, where: str) -> pa.StringArray:
    """Return an id column as strings, null where it is empty.

    Parameters
    ----------
    column : pyarrow.Array
        Text of any Arrow type, confidential.
    where : str
        File and column, as the message names them.

    Raises
    ------
    ConfidentialDataError
        If the column holds numbers or anything else but text.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        raise ConfidentialDataError(
            f"{where} must hold text; its ids were read as numbers, which loses leading zeros: write them as strings"
        )
    if not (_is_text(kind) or pa.types.is_null(kind)):
        raise ConfidentialDataError(f"{where} must hold text; it holds {kind}: write strings")
    ids = _as_strings(column, where)
    empty = pc.equal(ids, "")
    return pc.if_else(empty, None, ids) if pc.any(empty).as_py() else ids


def whole_numbers(column: pa.Array, where: str) -> NDArray[np.int64]:
    """Return a count column, shape (rows,), each at least 0 and below 2³¹.

    Parameters
    ----------
    column : pyarrow.Array
        Integers, or text that spells them in digits only, confidential.
    where : str
        File and column, as the message names them.

    Raises
    ------
    ConfidentialDataError
        If a value is empty, negative, decimal, too large or not a number.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise _not_whole(where, "is empty")
    kind = column.type
    if _is_text(kind):
        column = _spelled_numbers(_as_strings(column, where), where)
    elif not pa.types.is_integer(kind):
        decimal = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        raise _not_whole(where, "is decimal or NaN" if decimal else "is not a number")
    if len(column) and pc.min(column).as_py() < 0:
        raise _not_whole(where, "is negative")
    if len(column) and pc.max(column).as_py() >= COUNT_LIMIT:
        raise _not_whole(where, "is too large")
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)


def _spelled_numbers(column: pa.StringArray, where: str) -> pa.Int64Array:
    """Return the integers that `column` spells in ASCII digits."""
    digits = pc.ascii_is_decimal(column)
    if not pc.all(digits).as_py():
        wrong = column.filter(pc.invert(digits))
        if pc.any(pc.equal(wrong, "")).as_py():
            raise _not_whole(where, "is empty")
        for pattern, fault in ((_NEGATIVE, "is negative"), (_DECIMAL, "is decimal")):
            if pc.any(pc.match_substring_regex(wrong, pattern)).as_py():
                raise _not_whole(where, fault)
        raise _not_whole(where, "is not a number in digits only")
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise _not_whole(where, "is too large") from None


def _not_whole(where: str, fault: str) -> ConfidentialDataError:
    return ConfidentialDataError(
        f"{where} must hold whole numbers from 0 to {COUNT_LIMIT - 1}; at least one value {fault}"
    )


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _as_strings(column: pa.Array, where: str) -> pa.StringArray:
    """Return text of any Arrow type as a string array whose bytes are UTF-8."""
    try:
        strings = column.cast(pa.string())
        strings.validate(full=True)
    except pa.ArrowException:
        raise ConfidentialDataError(f"{where} must hold UTF-8 text: save it again") from None
    return strings
