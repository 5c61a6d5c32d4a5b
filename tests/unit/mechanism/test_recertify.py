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
