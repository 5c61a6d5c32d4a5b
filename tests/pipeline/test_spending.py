"""Releases are paid for before a table is read, once each, whatever happens to those who make them."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from fractions import Fraction
from hashlib import sha256

import polars as pl
import pytest
import sites
from sqlalchemy import text
from waiting import PATIENCE, wait_for

from pipelines import spending
from pipelines.jobs.order import Order
from pipelines.jobs.release import run as run_job
from pipelines.release import release
from pipelines.seal import Seal
from pipelines.spending import Spending
from synthmap.catalog.claims import ClaimLostError
from synthmap.catalog.jobs import dismiss
from synthmap.catalog.ledger import read_account
from synthmap.errors import (
    AlreadyShownError,
    BudgetExceededError,
    BudgetMissingError,
    ConfidentialDataError,
    ConfigurationError,
    LedgerError,
    UnwritableError,
)
from synthmap.release import store

DRAWN = "store/.partial-*/draws/draw-*"


@pytest.fixture
def own_table(region, make_spec, tmp_path):
    """Write the spec of a copy of the table that a test may change; return the place of the copy."""
    path = tmp_path / "od.parquet"
    shutil.copyfile(region / "od.parquet", path)
    table = make_spec().tables[0].model_dump(exclude_none=True) | {"path": path}
    make_spec(tables=[table])
    return path


@pytest.fixture
def make_site(own_table, tmp_path, forks):
    """Set up a site over a database, with a dataset registered; workers are ended after the test."""
    made = []

    def make(budget, database=f"sqlite:///{tmp_path / 'catalog.sqlite'}"):
        made.append(sites.site(tmp_path, database, forks))
        made[-1].register(tmp_path / "spec.toml", budget=budget)
        return made[-1]

    yield make
    for one in made:
        one.stop()


def kinds(site):
    return [entry.body.kind for entry in read_account(site.catalog, sites.DATASET).entries]


def test_two_workers_that_race_for_the_last_of_a_budget_make_one_release(make_site, database):
    site = make_site((4, 1e-6), database)
    jobs = [site.submit() for _ in range(2)]
    both = [site.worker("--once") for _ in range(2)]
    ends = [json.loads(one.communicate()[0]) for one in both]
    assert (sum(one["successful"] for one in ends), sum(one["failed"] for one in ends)) == (1, 1)
    won, lost = sorted(map(site.job, jobs), key=lambda job: job.state == "failed")
    assert lost.message == "the release would cost more than is left of the dataset's privacy budget"
    account = read_account(site.catalog, sites.DATASET)
    assert site.releases() == [won.release] == list(account.losses)
    assert account.spent == (4, Fraction(1e-6))
    assert account.losses[won.release].body.job == won.id
    assert kinds(site) == ["budget", "release", "drawing"]


def test_a_job_whose_worker_was_killed_while_it_drew_pays_nothing_more(make_site):
    site = make_site((4, 1e-6))
    job = site.submit()
    with site.worker_at(DRAWN) as killed:
        assert kinds(site) == ["budget", "release", "drawing"]
        killed.kill()
        killed.wait()  # only then its job learns of it
    assert site.work() == {"successful": 1}
    assert site.releases() == [job.release]
    assert kinds(site) == ["budget", "release", "drawing"]


def test_what_the_budget_does_not_allow_is_refused_before_a_table_is_looked_at(make_site, own_table):
    site = make_site(None)
    own_table.unlink()
    job = site.submit()
    assert site.work() == {"failed": 1}
    assert "must have a privacy budget first" in site.job(job).message
    assert kinds(site) == []


def test_a_job_that_ends_before_it_draws_is_refunded(make_site, own_table):
    site = make_site((4, 1e-6))
    good = own_table.read_bytes()
    own_table.write_bytes(good[:-50])
    job = site.submit()
    assert site.work() == {"failed": 1}
    assert site.job(job).message.startswith("the dataset breaks a rule")
    assert kinds(site) == ["budget"]  # it could not even be marked
    unknown = pl.read_parquet(good).with_columns(pl.lit("nowhere").alias("origin"))
    unknown.write_parquet(own_table)
    job = site.submit()
    assert site.work() == {"failed": 1}
    assert site.job(job).message.startswith("the dataset breaks a rule")
    assert "was refunded" in site.log
    own_table.write_bytes(good)
    dismissed = site.submit()
    worker = site.worker("--once", GRACE_SECONDS="0.5")
    wait_for(lambda: len(kinds(site)) == 4)
    (process,) = sites.children(worker)
    process.suspend()
    before = kinds(site)
    dismiss(site.catalog, dismissed.id)
    assert json.loads(worker.communicate()[0])["dismissed"] == 1
    assert kinds(site) == before + (["refund"] if before[-1] == "release" else [])
    assert before[:4] == ["budget", "release", "refund", "release"]


def pay(site, spec, name, **changes):
    paying = Spending(site.catalog, site.registry, sites.DATASET, spec.model_copy(update=changes))
    return release(spec.model_copy(update=changes), scheduler="threads", name=name,
                   before_reading=paying.before_reading, before_drawing=paying.before_drawing)  # fmt: skip


def cut(site, entries):
    """Cut the ledger as whoever may write the catalog could: with a head that fits."""
    kept = f"select hash from ledger where number = {entries}"  # noqa: S608
    with site.catalog.write() as session:
        session.execute(text(f"delete from ledger where number > {entries}"))  # noqa: S608
        session.execute(text(f"update ledger_heads set entries = {entries}, hash = ({kept})"))  # noqa: S608


@pytest.fixture
def spec(own_table, tmp_path):
    from synthmap.spec import read_spec

    return read_spec(tmp_path / "spec.toml")


def test_changed_data_a_cut_ledger_and_a_passed_budget_release_nothing(make_site, spec, own_table, left_in):
    site = make_site((9, 1e-5))
    made = pay(site, spec, "r1")
    assert read_account(site.catalog, sites.DATASET).content == Seal(site.registry).content(spec)
    swapped = [spec.tables[0].model_copy(update={"origin": "destination", "destination": "origin"})]
    with pytest.raises(LedgerError, match="its tables changed"):
        pay(site, spec, "r2", tables=swapped)
    with pytest.raises(LedgerError, match="zones, weights or the way tables are read changed"):
        pay(site, spec, "r2", outside="elsewhere")
    good = pl.read_parquet(own_table)
    for change in ({"origin": pl.col("origin").reverse()}, {"SA01": "SA02", "SA02": "SA01"}):
        good.with_columns(**change).write_parquet(own_table)
        with pytest.raises(LedgerError, match="its tables changed"):
            pay(site, spec, "r2")
    good.sample(fraction=1, shuffle=True).write_parquet(own_table, compression="gzip")  # the same, written anew
    pay(site, spec, "r2")
    own_table.unlink()
    with pytest.raises(BudgetExceededError):  # not that the table is missing
        pay(site, spec, "r3")
    cut(site, 3)
    assert read_account(site.catalog, sites.DATASET).spent[0] == 4
    with pytest.raises(LedgerError, match="must go on from entry 5"):
        pay(site, spec, "r3")
    assert left_in(made.path.parent) == ["r1", "r2"]


def test_nothing_is_refunded_on_a_ledger_whose_last_drawing_was_cut_off(make_site, spec, monkeypatch):
    site = make_site((9, 1e-5))

    def fail(spec, *, name, before_reading, before_drawing, **options):
        before_reading(name)
        before_drawing(name)
        cut(site, 2)
        raise OSError("the disk is full")

    monkeypatch.setattr(spending, "release", fail)
    with pytest.raises(OSError, match="full"):
        spending.release_and_pay(site.catalog, site.registry, sites.DATASET, spec)
    assert kinds(site) == ["budget", "release"]


class Killed(BaseException):
    """What ends a run wherever it is, as SIGKILL does."""


def ends(after):
    """Return the store's `publish`, but the run ends after the release may be shown, or after it is."""

    def publish(partial, release, ready):
        if after == "the mark":
            ready()
        else:
            store.publish(partial, release, ready)
        raise Killed

    return publish


@pytest.mark.parametrize("after", ["the mark", "the rename"])
def test_a_release_that_was_moved_away_is_not_drawn_again_for_one_payment(make_site, spec, monkeypatch, after):
    site = make_site((9, 1e-5))

    def again():
        return spending.release_and_pay(site.catalog, site.registry, sites.DATASET, spec, scheduler="threads")

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("pipelines.publish.publish", ends(after))
        again()
    (name,) = read_account(site.catalog, sites.DATASET).losses
    if after == "the rename":
        (spec.store / name).rename(spec.store.parent / "archive")
    with pytest.raises(AlreadyShownError, match=rf"^release \({name}\) must be put back into the store"):
        again()
    assert kinds(site) == ["budget", "release", "drawing"]
    made = again()  # a loop that asks until it gets one pays for each
    assert kinds(site) == ["budget", "release", "drawing", "release", "drawing"]
    assert list(read_account(site.catalog, sites.DATASET).losses) == [name, made.release]
    assert site.releases() == [made.release]
    assert list(site.directory.glob("registry.toml.unfinished/*")) == []


def test_a_release_that_was_put_back_is_the_one_that_was_paid_for(make_site, spec, monkeypatch):
    site = make_site((9, 1e-5))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("pipelines.publish.publish", ends("the rename"))
        spending.release_and_pay(site.catalog, site.registry, sites.DATASET, spec, scheduler="threads")
    made = spending.release_and_pay(site.catalog, site.registry, sites.DATASET, spec, scheduler="threads")
    assert site.releases() == [made.release] == list(read_account(site.catalog, sites.DATASET).losses)


@pytest.mark.parametrize("after", ["the mark", "the rename"])
def test_nor_is_that_of_a_job(make_site, spec, monkeypatch, after):
    site = make_site((9, 1e-5))
    job = site.submit()
    dead = site.dead_worker()
    order = Order(site.database, site.store, site.registry, "threads", job.id, dead.attempt, 0, 1.0)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("pipelines.publish.publish", ends(after))
        run_job(order, dead, site.catalog, lambda *_: None)
    if after == "the rename":
        (site.store / job.release).rename(site.directory / "archive")
    assert site.work() == {"failed": 1}
    assert site.job(job).message.startswith("an earlier attempt may have shown the release")
    assert f"release ({job.release}) must be put back into the store" in site.log
    assert kinds(site) == ["budget", "release", "drawing"]
    assert site.releases() == []


def test_of_two_attempts_one_comes_to_the_rename_and_who_lost_the_job_keeps_nobody_from_it(make_site, spec):
    site = make_site((9, 1e-5))
    job = site.submit()
    zombie = site.dead_worker()
    heir = site.heir()
    for claim, fault in ((zombie, ClaimLostError), (heir, None), (heir, AlreadyShownError)):
        order = Order(site.database, site.store, site.registry, "threads", job.id, claim.attempt, 0, 1.0)
        with pytest.raises(fault) if fault else nullcontext():
            run_job(order, claim, site.catalog, lambda *_: None)
    assert site.releases() == [job.release]
    paying = Spending(site.catalog, site.registry, sites.DATASET, spec)
    with pytest.raises(AlreadyShownError):
        paying.before_publishing(job.release)


def test_a_store_that_cannot_be_written_is_found_before_anything_is_paid(make_site, spec):
    site = make_site((9, 1e-5))
    wrong = site.directory / "file"
    wrong.touch()
    for place in (wrong, wrong / "below"):
        with pytest.raises(UnwritableError, match=r"^store \(.*\) must be a writable directory"):
            spending.release_and_pay(site.catalog, site.registry, sites.DATASET,
                                     spec.model_copy(update={"store": place}), scheduler="threads")  # fmt: skip
    assert kinds(site) == ["budget"]
    assert list(site.directory.glob("registry.toml.unfinished/*")) == []


def test_a_table_that_changes_while_it_is_read_is_not_drawn_from(make_site, spec, own_table):
    site = make_site((9, 1e-5))
    paying = Spending(site.catalog, site.registry, sites.DATASET, spec)

    def read_then_change(name, cost):
        paying.before_reading(name, cost)
        own_table.write_bytes(own_table.read_bytes())

    with pytest.raises(LedgerError, match="must not change while they are read"):
        release(spec, scheduler="threads", name="r1", before_reading=read_then_change,
                before_drawing=paying.before_drawing)  # fmt: skip
    assert kinds(site) == ["budget", "release"]


def test_who_comes_too_late_for_the_budget_waits_and_never_looks_at_a_table(make_site, spec, monkeypatch):
    site = make_site((4, 1e-6))
    looked, late = threading.Event(), threading.Event()
    marks, content = [], Seal.content

    def slow(seal, spec):
        marks.append(threading.current_thread().name)
        looked.set()
        late.wait(PATIENCE)
        return content(seal, spec)

    monkeypatch.setattr(Seal, "content", slow)
    with ThreadPoolExecutor(2, "payer") as payers:
        first = payers.submit(Spending(site.catalog, site.registry, sites.DATASET, spec).before_reading, "r1")
        assert looked.wait(PATIENCE)
        second = payers.submit(Spending(site.catalog, site.registry, sites.DATASET, spec).before_reading, "r2")
        assert not wait([second], timeout=0.5).done  # it waits for the first
        late.set()
        first.result()
        with pytest.raises(BudgetExceededError):
            second.result()
    assert set(marks) == {"payer_0"}
    assert list(read_account(site.catalog, sites.DATASET).losses) == ["r1"]


def test_without_a_budget_no_table_is_looked_at(make_site, spec, own_table):
    site = make_site(None)
    own_table.unlink()
    with pytest.raises(BudgetMissingError):
        pay(site, spec, "r1")


def test_nor_for_a_comparison_with_the_table_of_the_prior(make_site, spec, region):
    site = make_site(None)  # a prior that is the confidential table would be refused, had they been compared
    table = {"path": region / "od.parquet", "origin": "origin", "destination": "destination", "vintage": "demo-1"}
    prior = spec.prior.model_validate({"table": table})
    with pytest.raises(BudgetMissingError):
        pay(site, spec, "r1", prior=prior)


class TestSeal:
    def test_marks_tell_files_apart_and_nothing_without_the_key(self, spec, own_table, tmp_path):
        one, other = Seal(tmp_path / "a" / "registry.toml"), Seal(tmp_path / "b" / "registry.toml")
        found = one.content(spec)
        assert found == one.content(spec)
        assert set(found.columns) == {"count", "SA01", "SA02", "SA03"}
        marks = [{one.key, *one.tables, *one.columns.values(), one.public} for one in (found, other.content(spec))]
        assert [len(one) for one in marks] == [7, 7]
        assert marks[0].isdisjoint(marks[1])
        assert sha256(own_table.read_bytes()).hexdigest() not in str(found)
        assert (tmp_path / "a" / "registry.toml.seal").stat().st_mode & 0o777 == 0o600

    def test_the_place_of_a_file_and_public_numbers_of_the_prior_are_no_data(self, spec, own_table, tmp_path):
        seal = Seal(tmp_path / "registry.toml")
        before = seal.content(spec)
        moved = own_table.rename(tmp_path / "moved.parquet")
        table = spec.tables[0].model_copy(update={"path": moved})
        prior = spec.prior.model_copy(update={"power": 1.5})
        assert seal.content(spec.model_copy(update={"tables": [table], "prior": prior, "title": "x"})) == before

    def test_zones_are_data_with_all_files_of_a_layer(self, spec, tmp_path):
        seal, layer = Seal(tmp_path / "registry.toml"), tmp_path / "zon[e]s.shp"
        for suffix in (".shp", ".dbf"):
            layer.with_suffix(suffix).write_text("x")
        layered = spec.model_copy(update={"zones": spec.zones.model_copy(update={"path": layer})})
        before = seal.content(layered)
        (tmp_path / "zones.dbf").write_text("of another layer")
        assert seal.content(layered) == before
        layer.with_suffix(".dbf").write_text("y")
        assert (seal.content(layered).tables, seal.content(layered).public == before.public) == (before.tables, False)

    def test_a_missing_file_and_a_damaged_seal_are_one_clear_error(self, spec, own_table, tmp_path):
        seal, place = Seal(tmp_path / "registry.toml"), tmp_path / "registry.toml.seal"
        own_table.unlink()
        with pytest.raises(ConfidentialDataError, match="must be a readable file") as caught:
            seal.content(spec)
        assert str(tmp_path) not in str(caught.value)
        good = {"key": "", "heads": {}, "tables": {}, "files": {}}
        wrong = [{"key": "x"}, {"heads": {"a": [1]}}, {"tables": {"a": ["x"]}}, {"files": {"a": "x"}}, {"files": []},
                 {"kept": [1]}, {"kept": 1}, {"kept": "a"}]  # fmt: skip
        for damaged in ("", "[]", "{}", "\xff", *(json.dumps(good | one) for one in wrong)):
            place.write_text(damaged, encoding="latin-1")
            with pytest.raises(ConfigurationError, match="must be as workers wrote it"):
                seal.seen("x")
