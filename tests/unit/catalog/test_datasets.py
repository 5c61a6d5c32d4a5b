"""Datasets: public facts, by id."""

import pytest

from synthmap.catalog.datasets import Dataset, find_dataset, list_datasets, put_dataset
from synthmap.errors import NotFoundError, QueryError

ONE = Dataset("b-1", "Île de <Ré> & 'co'", ("SA01", "SA02"), ("county", "tract"), "2010")
TWO = Dataset("a.2", "", (), (), "2020")


def test_what_was_put_is_found_and_listed_by_id(catalog):
    put_dataset(catalog, ONE)
    put_dataset(catalog, TWO)
    assert list_datasets(catalog) == [TWO, ONE]
    assert find_dataset(catalog, "b-1") == ONE


def test_putting_again_replaces(catalog):
    put_dataset(catalog, ONE)
    put_dataset(catalog, Dataset("b-1", "new", (), (), "2020"))
    assert [one.title for one in list_datasets(catalog)] == ["new"]


@pytest.mark.parametrize("id", ["", "a", "..", "a/b", "A", "\x00", "b-1\n", "' or 1=1"])
def test_an_unknown_dataset_is_not_found(catalog, id):
    put_dataset(catalog, ONE)
    with pytest.raises(NotFoundError, match="dataset"):
        find_dataset(catalog, id)


@pytest.mark.parametrize("id", ["", ".a", "a/b", "A", "a b", "a\n", "x" * 65])
def test_an_id_can_begin_that_of_a_release(catalog, id):
    with pytest.raises(QueryError, match="dataset"):
        put_dataset(catalog, Dataset(id, "", (), (), ""))
