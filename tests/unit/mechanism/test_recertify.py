import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthmap.errors import ReleaseCorruptError
from synthmap.mechanism.recertify import recertify


def test_noise_that_meets_its_plan_is_certified_again(small_release):
    assert recertify(small_release()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"alpha_denominator": [2000, 2000]},
        {"alpha_numerator": [0, 1]},
        {"epsilon": [0.1, 4.0]},
        {"epsilon": [np.nan, 4.0]},
        {"cells": [1, 2], "alpha_denominator": [2000, 2000]},
    ],
    ids=str,
)
def test_noise_that_does_not_is_refused(small_release, change):
    directory = small_release()
    path = directory / "plan.parquet"
    plan = pq.read_table(path)
    for name, values in change.items():
        plan = plan.set_column(plan.column_names.index(name), name, pa.array(values))
    path.unlink()
    pq.write_table(plan, path)
    with pytest.raises(ReleaseCorruptError, match="must meet the ε and δ"):
        recertify(directory)


@pytest.mark.parametrize("column", ["epsilon", "delta"])
def test_one_cell_costs_nothing(small_release, column):
    """A destination of one cell is drawn from the prior alone: a loss beside it is one of another table."""

    def one_segment(manifest):
        manifest["segments"] = []

    free = {"cells": [1, 2], "epsilon": [0.0, 4.0], "delta": [0.0, 5e-7]}
    assert recertify(small_release(name="free", plan=free, change=one_segment)) == 2
    with pytest.raises(ReleaseCorruptError, match="must meet the ε and δ"):
        recertify(small_release(name="paid", plan=free | {column: [1e-6, free[column][1]]}, change=one_segment))
