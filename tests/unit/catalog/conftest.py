"""Jobs to work with."""

import pytest

from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.jobs import submit


@pytest.fixture
def ready(catalog):
    """A catalog in which a dataset is registered."""
    put_dataset(catalog, Dataset("ri-2019", "Rhode Island", ("SA01",), ("county",), "2010"))
    return catalog


@pytest.fixture
def asked(ready):
    """Submit jobs that release the dataset."""
    return lambda **inputs: submit(ready, "release", {"dataset": "ri-2019", **inputs})
