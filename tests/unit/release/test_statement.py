"""A statement as a record: one source of words, read back as it was written."""

import json

import pytest

from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError
from synthmap.release.statement import RECORD, Statement, read_statement, record, schema, text


def test_a_record_is_read_back_as_it_was_written(small_release):
    found = read_statement(small_release(stated=True))
    assert Statement.model_validate_json(record(found)) == found
    assert json.loads(record(found))["format"] == "synthmap-statement-1"


def test_it_is_made_from_the_manifest_and_the_plan_alone(small_release):
    """Without the table and the zones it is the same."""
    directory = small_release()
    before = read_statement(directory)
    for name in ("od/part-00000.parquet", "od/part-00001.parquet", "zones.parquet"):
        (directory / name).unlink()
    assert read_statement(directory) == before


def test_a_release_of_before_gets_one_and_others_keep_theirs(small_release):
    before = small_release(name="before-20260101T000000Z-00000000")
    assert read_statement(before).facts.release == before.name
    own = small_release(stated=True)
    changed = read_statement(own).model_copy(update={"advice": "Other words of another version."})
    (own / RECORD).write_text(record(changed), encoding="utf-8")
    assert "Other words of another version." in text(read_statement(own))


def test_the_text_is_that_of_the_record(small_release):
    found = read_statement(small_release(stated=True))
    told = text(found)
    for sentence in (*found.promise, *found.odds, found.prior, found.ledger, found.advice, *found.not_protected):
        assert sentence in told


def test_the_schema_describes_the_record(small_release):
    found = schema()
    values = json.loads(record(read_statement(small_release())))
    assert set(found["required"]) | {"format", "url_slug"} == set(values) == set(found["properties"])
    assert found["additionalProperties"] is False
    assert found["properties"]["deployment"]["$ref"] == "#/$defs/Registry"


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"format": "synthmap-statement-2"}'])
def test_a_record_that_is_none_is_refused(small_release, content):
    directory = small_release(stated=True)
    (directory / RECORD).write_bytes(content)
    with pytest.raises(ReleaseCorruptError, match=r"statement\.json must be a statement"):
        read_statement(directory)


def test_without_a_release_or_a_plan_there_is_none(small_release, tmp_path):
    with pytest.raises(ReleaseNotFoundError):
        read_statement(tmp_path / "nothing")
    directory = small_release()
    (directory / "plan.parquet").write_bytes(b"x")
    with pytest.raises(ReleaseCorruptError, match=r"plan\.parquet"):
        read_statement(directory)
