"""The record of published measurements: sealed, beside its release, written once."""

import pytest
from measuredrecord import measured

from synthmap.errors import ReleaseCorruptError, ReleaseError
from synthmap.published.measured import (
    is_published,
    measured_rows,
    metrics_path,
    paid_name,
    parse_measured,
    publish_measured,
    read_measured,
)

MARK = "0" * 64


def test_it_is_read_back_as_it_was_published(tmp_path):
    record = measured("r", MARK)
    path = publish_measured(tmp_path, record)
    assert path == metrics_path(tmp_path, "r")
    assert path.stat().st_mode & 0o777 == 0o444
    assert read_measured(tmp_path, "r", MARK) == record
    assert [one.name for one in tmp_path.iterdir()] == ["r.metrics.json"]


def test_where_there_is_none_there_is_none(tmp_path):
    assert read_measured(tmp_path, "r", MARK) is None


def test_it_is_published_once(tmp_path):
    publish_measured(tmp_path, measured("r", MARK))
    publish_measured(tmp_path, measured("r", MARK))
    with pytest.raises(ReleaseError, match="must be published once"):
        publish_measured(tmp_path, measured("r", MARK, epsilon=0.25))
    assert read_measured(tmp_path, "r", MARK).epsilon == 0.5
    assert len(list(tmp_path.iterdir())) == 1


def test_a_store_that_cannot_be_written_is_one_clear_error(tmp_path):
    with pytest.raises(ReleaseError, match="must be a writable directory"):
        publish_measured(tmp_path / "nothing", measured("r", MARK))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"value": 8.0', '"value": 7.0'),
        lambda text: text.replace('"epsilon": 0.5', '"epsilon": 0.4'),
        lambda text: text[:-50],
        lambda text: "{}",
        lambda text: text.replace(MARK, "1" * 64),
    ],
)
def test_one_that_was_changed_is_refused(tmp_path, change):
    path = publish_measured(tmp_path, measured("r", MARK))
    text = path.read_text()
    assert change(text) != text
    path.chmod(0o644)
    path.write_text(change(text))
    with pytest.raises(ReleaseCorruptError, match="must be as they were written"):
        read_measured(tmp_path, "r", MARK)


def test_one_of_another_release_or_manifest_is_refused(tmp_path):
    path = publish_measured(tmp_path, measured("r", MARK))
    path.rename(metrics_path(tmp_path, "s"))
    for name, mark in (("s", MARK), ("s", "1" * 64)):
        with pytest.raises(ReleaseCorruptError):
            read_measured(tmp_path, name, mark)


def test_an_unsealed_record_is_none():
    assert parse_measured(measured("r", MARK).model_copy(update={"sha256": ""}).model_dump_json().encode()) is None


def test_names_tell_whether_they_were_published(tmp_path):
    publish_measured(tmp_path, measured("r", MARK))
    assert (paid_name("r", 1), paid_name("r", 2)) == ("r.metrics", "r.metrics-2")
    assert is_published(tmp_path, "r.metrics")
    assert is_published(tmp_path, "r.metrics-2")
    for name in ("r", "s.metrics", "r.metrics.json", ".metrics", "r.metrics-x", ""):
        assert not is_published(tmp_path, name)


def test_rows_hold_every_figure_with_its_interval():
    frame = measured_rows(measured("r", MARK))
    assert frame.height == 2 * 2 + 3 * 2
    assert {"figure", "density", "km_from", "km_to", "origin", "value", "low", "high"} <= set(frame.columns)
    (row,) = frame.filter(figure="length_workers", km_from=0).rows(named=True)
    assert (row["value"], row["low"], row["high"]) == (8, 7, 9)
