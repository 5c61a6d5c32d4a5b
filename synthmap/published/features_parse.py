"""Filters in CQL2, text or JSON, as trees; read by the cql2 library, which is kept from what it cannot take."""

import re
from typing import Any, Literal

import cql2

from synthmap.errors import QueryError

Language = Literal["cql2-text", "cql2-json"]

CHARACTERS = 8_000
DEPTH = 8  # the library's time doubles with every parenthesis that is not closed
SIGNS = 200  # the library's stack grows with every one of them, and overflows without an exception
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
_SIGNS = re.compile(r"[<>=]+|\b(?:not|and|or)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"[*/%^+]|\bdiv\b|-(?!\s*[\d.])|(?:-\s*[\d.e]+\s*){4}", re.IGNORECASE)


def parse_filter(text: str, language: Language) -> Any:
    """Return the CQL2 JSON of a filter: nested dicts, lists, strings, floats and booleans.

    Raises
    ------
    QueryError
        If it is not CQL2, or too long or deep.
    """
    if len(text) > CHARACTERS:
        raise QueryError(f"filter ({len(text)} characters) must have at most {CHARACTERS}")
    if language == "cql2-text":
        _guard(text)
    try:
        return (cql2.parse_text if language == "cql2-text" else cql2.parse_json)(text).to_json()
    except Exception:  # the library raises the bare class, too
        raise QueryError(f"filter must be {language}; ids are text, in 'single quotes' in cql2-text") from None


def _guard(text: str) -> None:
    """Refuse text that would keep the library busy or overflow its stack."""
    bare = _QUOTED.sub("''", text)
    depth = deepest = 0
    for sign in bare:
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    if deepest > DEPTH:
        raise QueryError(f"filter must have at most {DEPTH} parentheses in each other")
    if len(_SIGNS.findall(bare)) > SIGNS:
        raise QueryError(f"filter must have at most {SIGNS} comparisons, NOT, AND and OR; use IN for many values")
    if _ARITHMETIC.search(bare):
        raise QueryError("filter must do without arithmetic")
