"""Cursors come back as they went, and only to the query and release they are of."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthmap.errors import QueryError
from synthmap.published.boxes import make_box
from synthmap.published.cursors import read_cursor, write_cursor
from synthmap.published.od import MOST, Position, Query

QUERY = Query(destinations=("01",), box=make_box((0, 0, 1, 1), "CRS84"), box_end="both")
IDS = st.text(max_size=20)
NUMBERS = st.integers(1, MOST)


@given(st.builds(Position, NUMBERS, IDS, IDS, NUMBERS))
def test_a_cursor_is_read_as_it_was_written(position):
    cursor = write_cursor(position, "etag", QUERY)
    assert cursor.isascii()
    assert read_cursor(cursor, "etag", QUERY) == position


@pytest.mark.parametrize(
    ("etag", "query"),
    [
        ("other", QUERY),
        ("etag", Query()),
        ("etag", replace(QUERY, box_end="origin")),
        ("etag", replace(QUERY, box=make_box((0, 0, 1, 2), "CRS84"))),
    ],
)
def test_a_cursor_of_another_release_or_query_is_refused(etag, query):
    cursor = write_cursor(Position(1, "a", "b", 1), "etag", QUERY)
    with pytest.raises(QueryError, match="this release and this query"):
        read_cursor(cursor, etag, query)


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda raw: urlsafe_b64encode(raw).decode()))
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(QueryError, match="cursor"):
        read_cursor(text, "etag", QUERY)


@pytest.mark.parametrize(
    "change",
    [
        {1: 0}, {1: -1}, {1: "1"}, {1: 1.5}, {1: 2**60}, {1: None}, {2: None}, {2: 7}, {3: ["a"]}, {4: -1}, {4: {}},
        {2: "\ud800"}, {0: ["x"]}, {0: {}},
    ],
)  # fmt: skip
def test_a_forged_position_is_refused(change):
    cursor = write_cursor(Position(1, "a", "b", 1), "etag", QUERY)
    parts = json.loads(urlsafe_b64decode(cursor + "==="))
    for place, value in change.items():
        parts[place] = value
    with pytest.raises(QueryError, match="cursor"):
        read_cursor(urlsafe_b64encode(json.dumps(parts).encode()).decode(), "etag", QUERY)


def test_a_box_is_never_of_an_end_that_nobody_told():
    with pytest.raises(QueryError, match="bbox_end must be given with bbox"):
        Query(box=make_box((0, 0, 1, 1), "CRS84"))
