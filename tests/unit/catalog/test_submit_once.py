"""A request that is sent again under its name is one job, however many send it at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from synthmap.catalog.jobs import dismiss, list_jobs, submit
from synthmap.errors import RepeatedError


def test_sent_by_many_at_once_it_is_one_job(ready):
    with ThreadPoolExecutor(6) as pool:
        made = list(
            pool.map(lambda _: submit(ready, "release", {"dataset": "ri-2019"}, owner="a", once="x"), range(12))
        )
    assert len({job.id for job in made}) == 1
    assert len({job.release for job in made}) == 1  # nor is a second release on its way
    assert len(list_jobs(ready, limit=100)) == 1


def test_after_its_end_it_is_still_that_job(ready):
    job = submit(ready, "release", {"dataset": "ri-2019"}, owner="a", once="x")
    dismiss(ready, job.id)
    assert submit(ready, "release", {"dataset": "ri-2019"}, owner="a", once="x").state == "dismissed"


@pytest.mark.parametrize(("process", "inputs"), [
    ("release", {"dataset": "ri-2019", "epsilon": 2.0}), ("export", {"release": "r", "formats": ["csv"]}),
])  # fmt: skip
def test_another_request_under_the_name_is_refused(ready, process, inputs):
    submit(ready, "release", {"dataset": "ri-2019"}, owner="a", once="x")
    with pytest.raises(RepeatedError):
        submit(ready, process, inputs, owner="a", once="x")
    assert len(list_jobs(ready, limit=100)) == 1


def test_names_are_each_owners_own(ready):
    made = [submit(ready, "release", {"dataset": "ri-2019"}, owner=owner, once=once)
            for owner, once in [("a", "x"), ("b", "x"), ("a", "y"), ("a", None), ("a", None), (None, "x")]]  # fmt: skip
    assert len({job.id for job in made}) == 6
