"""Fingerprints of tables: the same for the same workers however they are written, in memory that blocks bound."""

import numpy as np
import polars as pl
import pytest

from synthmap.confidential import files
from synthmap.confidential.fingerprint import fingerprint
from synthmap.errors import ConfidentialDataError
from synthmap.spec import TableSpec

KEY = b"k" * 32
FLOWS = pl.DataFrame(
    {"o": ["01", "02", "é4", None, "01"], "d": ["02", "02", "01", "01", "01"], "n": [3, 1, 2, 2**31 - 1, 0],
     "A": [1, 1, 0, 2**31 - 1, 0], "B": [2, 0, 2, 0, 0]}
)  # fmt: skip


@pytest.fixture
def sums(tmp_path):
    def of(flows, segments=(), key=KEY, count="n", name="od.csv"):
        (flows.write_parquet if name.endswith(".parquet") else flows.write_csv)(tmp_path / name)
        table = TableSpec(path=tmp_path / name, vintage="1", format="long", origin="o", destination="d", count=count)
        return fingerprint(table, segments, key, None)

    return of


def test_order_format_blocks_and_rows_a_flow_change_nothing(sums, monkeypatch):
    found = sums(FLOWS, ("A", "B"))
    assert found.shape == (4, 2)
    assert np.array_equal(found[:2], sums(FLOWS))
    assert np.array_equal(found, sums(FLOWS.reverse(), ("A", "B"), name="od.parquet"))
    one, two = ({"n": 1, "A": 1, "B": 0}, {"n": 2, "A": 0, "B": 2})
    halves = [FLOWS.head(1).with_columns(**{k: pl.lit(v, pl.Int64) for k, v in half.items()}) for half in (one, two)]
    parts = pl.concat([*halves, FLOWS[1:]])
    monkeypatch.setattr(files, "BLOCK_ROWS", 2)
    assert np.array_equal(found, sums(parts, ("A", "B"), name="od.parquet"))
    few = FLOWS[:3]
    workers = few.select(pl.all().repeat_by("n").explode())
    assert np.array_equal(sums(few), sums(workers.drop("n"), count=None))


def test_tables_add_up_and_segments_add_up_to_the_total(sums):
    whole = sums(FLOWS, ("A", "B"))
    with np.errstate(over="ignore"):
        assert np.array_equal(whole, sums(FLOWS[:2], ("A", "B")) + sums(FLOWS[2:], ("A", "B")))
        assert np.array_equal(whole[1], whole[2] + whole[3])


def test_direction_is_told_apart_but_in_the_first(sums):
    there, back = sums(FLOWS), sums(FLOWS.rename({"o": "d", "d": "o"}))
    assert np.array_equal(there[0], back[0])
    assert not np.array_equal(there[1], back[1])


@pytest.mark.parametrize(
    "change",
    [{"n": pl.col("n") + (pl.col("o") == "02").fill_null(False)}, {"o": pl.col("o").fill_null("03")},
     {"d": pl.lit("02")}, {"o": "d", "d": "o"}, {"n": pl.col("n").reverse()}],
    ids=["one more", "known", "elsewhere", "turned", "moved"],
)  # fmt: skip
def test_any_other_workers_have_another(sums, change):
    assert not np.array_equal(sums(FLOWS)[1], sums(FLOWS.with_columns(**change))[1])


def test_another_key_has_another_for_every_pair(sums):
    for row in range(4):
        assert not np.intersect1d(sums(FLOWS[row]), sums(FLOWS[row], key=b"l" * 32)).size


@pytest.mark.parametrize("change, rule", [({"n": "A"}, None), ({"n": -1}, "negative"), ({"A": 0}, "must sum")])
def test_a_table_that_breaks_a_rule_is_refused_in_the_reader_s_words(sums, change, rule):
    if rule is None:
        with pytest.raises(ConfidentialDataError, match="column n must be in the header; the first line is not shown"):
            sums(FLOWS.drop("n"))
    else:
        values = {name: pl.lit(one) for name, one in change.items()}
        with pytest.raises(ConfidentialDataError, match=rule):
            sums(FLOWS.with_columns(**values), ("A", "B"))
