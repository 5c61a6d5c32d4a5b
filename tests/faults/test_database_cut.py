"""PostgreSQL that goes away in the middle of a commit, arrived or not, and comes back: every loss is charged once."""

import cutting
import postgres
import pytest
from invariants import finished_once, left
from losses import CONTENT, loss

from synthmap.catalog.database import open_catalog
from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.ledger import begin_drawing, read_account, refund, set_budget, spend
from synthmap.errors import CatalogError

STEPS = {
    "spend": lambda catalog: spend(catalog, "x", "r1", loss(1.0), CONTENT),
    "draw": lambda catalog: begin_drawing(catalog, "x", "r1"),
    "refund": lambda catalog: refund(catalog, "x", "r1"),
}
KINDS = {"spend": ["budget", "release"], "draw": ["budget", "release", "drawing"],
         "refund": ["budget", "release", "refund"]}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    with postgres.cluster() as found:
        if found is None:
            pytest.skip(f"PostgreSQL: {postgres.described()}")
        yield found


@pytest.fixture
def cut(cluster):
    """A proxy before a new database."""
    with postgres.database(cluster.url) as url, cutting.proxy(url) as found:
        yield found


def kinds(catalog):
    return [entry.body.kind for entry in read_account(catalog, "x").entries]


def restarted(cluster):
    cluster.stop()
    cluster.start()


@pytest.mark.parametrize("server", ["is cut off", "is stopped"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_commit_that_is_not_answered_is_one_entry_when_it_is_asked_for_again(cluster, cut, step, when, server):
    catalog = open_catalog(cut.url)
    put_dataset(catalog, Dataset("x", "X", (), (), "1"))
    set_budget(catalog, "x", 1, 0)
    if step != "spend":
        STEPS["spend"](catalog)
    before = kinds(catalog)
    cut.arm(1, when, (lambda: restarted(cluster)) if server == "is stopped" else lambda: None)
    with pytest.raises(CatalogError, match="does not answer"):
        STEPS[step](catalog)
    assert cut.cut
    assert kinds(catalog) == (KINDS[step] if when == "after" else before)
    for _ in range(2):
        STEPS[step](catalog)
        assert kinds(catalog) == KINDS[step]
    assert read_account(catalog, "x").spent == (0 if step == "refund" else 1, 0)
    catalog.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_job_whose_database_is_cut_at_a_commit_makes_one_release_for_one_charge(forks, make_site, cut, when):
    """At those of the loss and of the drawing, and at the first that claim, keep and end the job."""
    site, jobs = make_site(cut.url), []
    for table, number in [(b"ledger", 1), (b"ledger", 2), *((b"jobs", number) for number in (1, 2, 3, 5))]:
        jobs.append(site.submit())
        cut.arm(number, when, of=table)
        for _ in range(3):  # a worker that cannot even claim ends, and its operator starts it again
            if forks.run(directory=site.directory, database=site.database).status == 0:
                break
        assert cut.cut, (table, number)
    finished_once(site, jobs)
    assert left(site) == []
