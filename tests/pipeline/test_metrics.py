"""Published measurements: paid for before a table is read, drawn once, true but for their noise."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
import sites

import pipelines.metrics
from pipelines.metrics import Asked, publish_metrics
from pipelines.release import release
from pipelines.spending import Spending
from synthmap.analysis.classes import DENSITY_NAMES, by_density, jobs_per_km2
from synthmap.analysis.lengths import length_error, mean_lengths
from synthmap.analysis.read import read_od, read_plan
from synthmap.analysis.table import ODTable, pair, pair_km
from synthmap.catalog.ledger import read_account, set_budget
from synthmap.confidential.fidelity import read_confidential
from synthmap.confidential.noisy import Noisy
from synthmap.errors import (
    BudgetExceededError,
    ConfidentialDataError,
    ConfigurationError,
    LedgerError,
    PrivacyParameterError,
)
from synthmap.geography.read import read_zones
from synthmap.published.measured import Measured, metrics_path
from synthmap.release.manifest import read_manifest
from synthmap.spec import read_spec

NAME = "demo-20260101T000000Z-00000000"
ASKED = Asked(1.0, 60.0)


@pytest.fixture(scope="module")
def paid(tmp_path_factory, region, region_values, with_changes, write_spec):
    """A directory with a site whose dataset, with two jobs a worker, has paid for one release; budget ε 10."""
    directory = tmp_path_factory.mktemp("paid")
    shutil.copyfile(region / "od.parquet", directory / "od.parquet")
    values = region_values(directory)
    own = {"tables": [values["tables"][0] | {"path": "od.parquet"}], "store": "store", "segments": None}
    path = write_spec(
        directory / "spec.toml", with_changes(values, own | {"privacy": {"max_jobs_per_worker": 2, "epsilon": 3.0}})
    )
    site = sites.site(directory, f"sqlite:///{directory / 'catalog.sqlite'}")
    site.register(path, budget=(10.0, 1e-4))
    spec = read_spec(path)
    paying = Spending(site.catalog, site.registry, sites.DATASET, spec)
    release(spec, scheduler="threads", name=NAME,
            before_reading=paying.before_reading, before_drawing=paying.before_drawing)  # fmt: skip
    site.stop()
    with sqlite3.connect(directory / "catalog.sqlite") as database:  # everything into the one file that is copied
        database.execute("pragma wal_checkpoint(truncate)")
    return directory


@pytest.fixture
def site(paid, tmp_path):
    """A copy of it that a test may change."""
    directory = tmp_path / "site"
    shutil.copytree(paid, directory)
    registry = directory / "registry.toml"
    registry.write_text(registry.read_text().replace(str(paid), str(directory)))
    found = sites.site(directory, f"sqlite:///{directory / 'catalog.sqlite'}")
    yield found
    found.stop()


@pytest.fixture
def exact(monkeypatch):
    """Let measurements leave without noise, to see what they are of."""
    monkeypatch.setattr(pipelines.metrics, "add_noise", lambda one, epsilon: Noisy(one.name, one.values, 1.0))


def publish(site, asked=ASKED, **options) -> Measured:
    return publish_metrics(
        site.catalog, site.registry, sites.DATASET, site.store / NAME, asked, **options
    )[1]  # fmt: skip


def lose(site):
    metrics_path(site.store, NAME).unlink()
    shutil.rmtree(site.registry.with_name("registry.toml.metrics"))


def as_if_never_drawn(site):
    """What nobody may do outside of tests."""
    lose(site)
    seal = site.registry.with_name("registry.toml.seal")
    seal.write_text(json.dumps(json.loads(seal.read_text()) | {"kept": []}))


def kinds(site):
    return [entry.body.kind for entry in read_account(site.catalog, sites.DATASET).entries]


BEFORE = ["budget", "release", "drawing"]
PAID = [*BEFORE, "metrics", "drawing"]


def test_it_is_paid_for_by_person_and_published_beside_the_release(site):
    found = publish(site)
    account = read_account(site.catalog, sites.DATASET)
    loss = account.losses[f"{NAME}.metrics"]
    assert kinds(site) == PAID
    assert (loss.charge.kind, loss.charge.rule, loss.charge.max_jobs_per_worker) == ("metrics", "pure", 2)
    assert [(part.times, Fraction(part.epsilon)) for part in loss.charge.parts] == [(1, Fraction(2, 3))] * 3
    assert account.spent[0] == 2 * 3 + 2 * 1
    assert found.epsilon == 2
    told = json.loads(metrics_path(site.store, NAME).read_text())
    assert told == found.model_dump(mode="json")
    assert read_manifest(site.store / NAME).release == found.release


def test_without_noise_they_would_be_the_errors_that_the_curator_measures(site, exact):
    found = publish(site, Asked(1.0, 20_000.0))
    spec, manifest = read_spec(site.directory / "spec.toml"), read_manifest(site.store / NAME)
    zones = read_zones(spec.zones)
    plan = read_plan(site.store / NAME, zones)
    paired = pair(read_confidential(spec, zones), read_od(site.store / NAME, manifest, zones), len(zones))
    lengths = mean_lengths(paired, pair_km(paired.origin, paired.destination, zones))
    density = jobs_per_km2(plan.destination, plan.headcount, zones)
    true = [("all", length_error(lengths))]
    true += [(name, one.error) for name, one in zip(DENSITY_NAMES, by_density(lengths, density), strict=True)]
    assert true[0][1].mae_km > 0.1
    for name, error in true:
        mine = next(one for one in found.averages if (one.density, one.km_from) == (name, None))
        assert (mine.workers, mine.destinations) == (error.workers, error.destinations)
        assert mine.mean_absolute_error_km.value == pytest.approx(error.mae_km, abs=0.001)
        assert mine.mean_error_km.value == pytest.approx(error.bias_km, abs=0.001)
    bands = [one for one in found.lengths if one.density == "all"]
    assert sum(one.workers.value for one in bands) == sum(one.synthetic_workers for one in bands) == 3000
    assert sum(one.share_error.value for one in bands) == pytest.approx(0, abs=1e-6)


def test_figures_with_noise_lie_in_intervals_around_the_exact_ones(site, request):
    noisy = publish(site)
    as_if_never_drawn(site)
    request.getfixturevalue("exact")
    true = publish(site)
    pairs = [
        (with_noise.share_error, without.share_error.value)
        for with_noise, without in zip(noisy.lengths, true.lengths, strict=True)
    ]
    inside = sum(one.low <= value <= one.high for one, value in pairs)
    # each holds with 95 %; that 24 figures made of 18 noises miss 10 times has a chance below 1e-6
    assert len(pairs) == 24
    assert inside >= 14


def test_what_the_budget_does_not_allow_is_refused_before_a_table_is_looked_at(site):
    (site.directory / "od.parquet").unlink()
    with pytest.raises(BudgetExceededError):
        publish(site, Asked(2.1, 60.0))
    assert kinds(site) == BEFORE
    assert not metrics_path(site.store, NAME).exists()


class Crash(BaseException):
    """The end of a process, as far as Python can show it."""


def crash(*_):
    raise Crash


def test_a_crash_before_noise_is_drawn_is_refunded_or_gone_on_with(site, monkeypatch):
    monkeypatch.setattr(pipelines.metrics, "read_confidential", crash)
    monkeypatch.setattr(pipelines.metrics, "refund", lambda *_, **__: True)  # killed: nobody refunds
    with pytest.raises(Crash):
        publish(site)
    assert kinds(site) == [*BEFORE, "metrics"]
    monkeypatch.undo()
    publish(site)
    assert kinds(site) == PAID


def test_a_crash_after_noise_was_drawn_pays_nothing_more_and_publishes_what_was_drawn(site):
    with pytest.raises(Crash):
        publish(site, drawn=crash)
    assert not metrics_path(site.store, NAME).exists()
    (kept,) = site.directory.glob("registry.toml.metrics/*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    found = publish(site)
    assert kinds(site) == PAID
    assert json.loads(kept.read_text()) == found.model_dump(mode="json")


CHILD = """
import os, signal, sys
from pathlib import Path
import pipelines.metrics as metrics
from pipelines.spending import Spending
from synthmap.catalog.database import open_catalog
directory, release, at = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if at in ("read_confidential", "measure", "add_noise", "write_privately", "publish_measured"):
    setattr(metrics, at, die)
catalog = open_catalog(f"sqlite:///{directory / 'catalog.sqlite'}")
print(metrics.publish_metrics(
    catalog, directory / "registry.toml", "ri-2019", directory / "store" / release, metrics.Asked(1.0, 60.0)
)[1].sha256)
"""


def start(site):
    words = [sys.executable, "-c", CHILD, site.directory, NAME, "never"]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("at", ["read_confidential", "measure", "add_noise", "write_privately", "publish_measured"])
def test_a_killed_process_leaves_nothing_half_and_the_next_pays_nothing_more(site, forked_command, at):
    killed = forked_command(site.directory, NAME, at, source=CHILD)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in site.store.glob("*metrics*")] == []
    assert kinds(site) in ([*BEFORE, "metrics"], PAID)
    publish(site)
    assert kinds(site) == PAID


def test_two_at_once_draw_once_and_tell_the_same(site):
    both = [start(site), start(site)]
    told = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert told[0] == told[1] == f"{publish(site).sha256}\n"
    assert kinds(site) == PAID


def test_nothing_is_drawn_twice_even_if_the_published_file_is_gone(site):
    first = publish(site)
    assert publish(site) == first
    metrics_path(site.store, NAME).unlink()
    assert publish(site) == first
    assert kinds(site) == PAID


def test_what_was_drawn_and_then_damaged_is_not_drawn_anew(site):
    publish(site)
    metrics_path(site.store, NAME).unlink()
    (kept,) = site.directory.glob("registry.toml.metrics/*.json")
    kept.write_text(kept.read_text().replace("1", "2"))
    with pytest.raises(LedgerError, match="nothing is drawn twice"):
        publish(site)


def test_what_was_drawn_and_then_lost_everywhere_is_not_drawn_anew(site):
    publish(site)
    copy = metrics_path(site.store, NAME).read_bytes()
    lose(site)
    for _ in range(2):
        with pytest.raises(LedgerError, match="nothing is drawn twice"):
            publish(site)
    assert kinds(site) == PAID
    metrics_path(site.store, NAME).write_bytes(copy)
    publish(site)
    assert kinds(site) == PAID


@pytest.mark.parametrize("other", [Asked(0.5, 60.0), Asked(1.0, 61.0)])
def test_other_figures_of_the_same_release_are_refused(site, other):
    publish(site)
    with pytest.raises(ConfigurationError, match="must be published once; they were"):
        publish(site, other)
    assert kinds(site) == PAID


def test_a_table_that_changed_is_refused_before_it_is_paid_for(site):
    path = site.directory / "od.parquet"
    good = path.read_bytes()
    pl.read_parquet(good).with_columns(pl.col("origin").reverse()).write_parquet(path)
    with pytest.raises(LedgerError, match="its tables changed"):
        publish(site)
    path.write_bytes(good)
    assert kinds(site) == BEFORE


def test_what_fails_after_it_was_paid_is_refunded_and_paid_under_another_name(site, monkeypatch):
    def refuse(*_):
        raise ConfidentialDataError("a rule is broken")

    monkeypatch.setattr(pipelines.metrics, "read_confidential", refuse)
    with pytest.raises(ConfidentialDataError):
        publish(site)
    assert kinds(site) == [*BEFORE, "metrics", "refund"]
    monkeypatch.undo()
    assert publish(site).name == f"{NAME}.metrics-2"
    assert read_account(site.catalog, sites.DATASET).spent[0] == 8


def test_a_release_that_the_dataset_did_not_pay_for_is_refused(site):
    other = site.directory / "other.toml"
    other.write_text((site.directory / "spec.toml").read_text().replace("od.parquet", "other.parquet"))
    flows = pl.read_parquet(site.directory / "od.parquet")
    flows.with_columns(pl.col("origin").reverse()).write_parquet(site.directory / "other.parquet")
    site.register(other, "another", budget=None)
    set_budget(site.catalog, "another", 9, 0)
    with pytest.raises(LedgerError, match="must be a loss in the ledger of dataset"):
        publish_metrics(site.catalog, site.registry, "another", site.store / NAME, ASKED)
    assert read_account(site.catalog, "another").losses == {}


def test_a_release_with_a_fixed_seed_is_refused(site, small_release):
    directory = small_release(change=lambda manifest: manifest.update(private=False, warning="seeded"))
    with pytest.raises(ConfigurationError, match="must be private"):
        publish_metrics(site.catalog, site.registry, sites.DATASET, directory, ASKED)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 101.0])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(PrivacyParameterError, match="must be above 0 and at most 100"):
        Asked(epsilon, 60.0)


@pytest.mark.parametrize("cap", [0.0, 0.5, -1.0, float("nan"), float("inf"), 30_000.0])
def test_a_cap_out_of_range_is_refused(cap):
    with pytest.raises(ConfigurationError, match="must be at least 1 and at most 20040"):
        Asked(1.0, cap)


def test_an_epsilon_too_small_for_any_noise_is_refused_before_it_is_paid(site):
    with pytest.raises(PrivacyParameterError, match="large enough for a sensitivity"):
        publish(site, Asked(1e-13, 60.0))
    assert kinds(site) == BEFORE


def test_nothing_in_it_is_made_of_the_table_but_the_noisy_numbers(site, monkeypatch):
    """Where noise hides all, a neighbouring table gives the same record to the byte."""
    hidden = lambda one, epsilon: Noisy(one.name, np.zeros_like(one.values), 1.0)  # noqa: E731
    monkeypatch.setattr(pipelines.metrics, "add_noise", hidden)
    one = publish(site)
    as_if_never_drawn(site)

    def moved(spec, zones):
        table = read_confidential(spec, zones)
        first = np.flatnonzero(table.count == 1)[0]
        origin = table.origin.copy()
        origin[first] = (origin[first] + 1) % len(zones)
        return ODTable(origin, table.destination, table.count)

    monkeypatch.setattr(pipelines.metrics, "read_confidential", moved)
    assert publish(site).model_dump_json() == one.model_dump_json()
    assert "od.parquet" not in one.model_dump_json()
    assert str(site.directory) not in one.model_dump_json()
