"""`synthmap ledger` and `synthmap release --dataset`."""

import json
import math
import os
import sqlite3
import subprocess
import sys

import polars as pl
import pytest

from pipelines import release as pipeline
from pipelines.seal import Seal
from pipelines.unpaid import Unpaid
from synthmap.confidential.sample import write_sample
from synthmap.errors import ConfidentialDataError, ConfigurationError
from synthmap.spec import read_spec

STORE = "releases/.catalog/catalog.sqlite"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger") / "region"
    write_sample(folder, workers=300, zones=60, destinations=10, seed=3)
    return folder


@pytest.fixture
def region(made, one_object, tmp_path, monkeypatch):
    """A registered dataset `ri` without a budget."""
    monkeypatch.setenv("SYNTHMAP_CONFIDENTIAL_REGISTRY", str(tmp_path / "secret" / "registry.toml"))
    one_object("datasets", "add", "ri", made / "spec.toml")
    return made


def release(region):
    return ["release", region / "spec.toml", "--dataset=ri", "--store=releases", "--scheduler=threads"]


def test_a_release_is_paid_for_shown_verified_and_exported(region, one_object, one_line, synthmap, tmp_path):
    assert "must have a budget first" in one_line(*release(region))
    assert one_object("ledger", "budget", "ri", "--epsilon=7", "--delta=1e-5")["epsilon"] == 7
    assert "must be set once" in one_line("ledger", "budget", "ri", "--epsilon=8", "--delta=1e-5")
    assert "budget ε = 7" in synthmap("ledger", "show")[1]
    _, early, _ = synthmap("ledger", "export")
    (tmp_path / "early.jsonl").write_text(early)

    made = one_object(*release(region))
    assert made["dataset"] == "ri"
    (found,) = one_object("ledger", "show")["datasets"]
    assert [(one["kind"], one["name"]) for one in found["entries"]] == [
        ("budget", ""), ("release", made["release"]), ("drawing", made["release"])]  # fmt: skip
    assert (found["spent"]["epsilon"], found["spent"]["delta"], found["tighter"]) == (4, 1e-6, None)
    assert "at most what is left" in one_line(*release(region))
    assert one_object("ledger", "show")["datasets"] == [found]

    text = synthmap("ledger", "export")[1]
    (tmp_path / "late.jsonl").write_text(text)
    assert [json.loads(line)["hash"] for line in text.splitlines()] == [one["hash"] for one in found["entries"]]
    for kept in ("early.jsonl", "late.jsonl"):
        verified = one_object("ledger", "verify", f"--against={kept}")
        kept_to = {"seal": 3, "export": 1 if kept == "early.jsonl" else 3}
        told = {"dataset": "ri", "entries": 3, "head": found["head"], "sealed": True, "goes_on_from_entry": kept_to}
        assert verified == {"verified": True, "datasets": [told]}
    (tmp_path / "object.json").write_text(json.dumps(one_object("ledger", "export")))
    assert one_object("ledger", "verify", "ri", "--against=object.json")["verified"]
    (tmp_path / "nothing.jsonl").write_text("")
    assert "at least one entry" in one_line("ledger", "verify", "--against=nothing.jsonl")
    assert "goes on from entry 3, which workers have seen" in synthmap("ledger", "verify")[1]
    code, out, _ = synthmap("ledger", "verify", "--registry=other.toml", "--json")  # nothing stands behind its hashes
    other = json.loads(out)
    assert (code, other["verified"], other["datasets"][0]["sealed"]) == (1, False, False)
    assert "cut or replaced as a whole is not found" in other["not_checked"]
    code, out, _ = synthmap("ledger", "verify", "--registry=other.toml")
    assert code == 1
    assert "no seal beside this registry has seen it" in out
    assert "nothing was drawn yet" in one_line("ledger", "refund", "ri", made["release"])
    assert "with its seal beside it" in one_line("ledger", "refund", "ri", made["release"], "--registry=other.toml")

    with sqlite3.connect(STORE) as connection:  # written anew as a whole: only what was kept elsewhere can tell
        connection.execute("delete from ledger where number > 1")
        (first,) = connection.execute("select hash from ledger").fetchone()
        connection.execute("update ledger_heads set entries = 1, hash = ?", [first])
    assert "which a worker has seen" in one_line("ledger", "verify")
    assert "which a worker has seen" in one_line("ledger", "refund", "ri", made["release"])
    assert "which a worker has seen" in one_line(*release(region))
    assert "must go on from late.jsonl" in one_line("ledger", "verify", "--against=late.jsonl", "--registry=none.toml")
    assert one_object("ledger", "verify", "--against=early.jsonl", "--registry=none.toml")["verified"]
    with sqlite3.connect(STORE) as connection:
        connection.execute("delete from ledger")
    for words in (["verify"], ["show"], ["export"], ["refund", "ri", "x"]):
        assert "where it was last written" in one_line("ledger", *words)


def one_of_origins(folder):
    flows = pl.read_parquet(folder / "od.parquet").with_columns(pl.col("origin", "destination").cast(pl.String))
    return flows.filter(~pl.col("origin").is_in(flows["destination"].unique().to_list()))["origin"][0]


def test_a_failure_before_the_drawing_is_refunded_and_changed_zones_may_then_be_used(
    region, made, one_object, one_line, tmp_path
):
    own = tmp_path / "own"
    own.mkdir()
    for file in made.iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    good = (own / "zones.parquet").read_bytes()
    pl.read_parquet(good).filter(pl.col("id") != one_of_origins(own)).write_parquet(own / "zones.parquet")
    assert "od.parquet" in one_line(*release(own))
    (found,) = one_object("ledger", "show")["datasets"]
    assert [one["kind"] for one in found["entries"]] == ["budget", "release", "refund"]
    assert found["spent"]["epsilon"] == 0
    (own / "zones.parquet").write_bytes(good)
    assert one_object(*release(own))["dataset"] == "ri"


def test_a_dataset_without_entries_has_nothing_to_verify_where_a_seal_says_so(region, one_object, synthmap, tmp_path):
    found = one_object("ledger", "verify")
    assert (found["verified"], [one["entries"] for one in found["datasets"]]) == (True, [0])
    (tmp_path / "secret" / "registry.toml.seal").unlink()
    code, out, _ = synthmap("ledger", "verify", "--json")
    assert (code, json.loads(out)["verified"]) == (1, False)


def test_a_ledger_that_was_wiped_is_found(region, one_object, one_line):
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    one_object("ledger", "record", "ri", "q", "--epsilon=0.5")
    with sqlite3.connect(STORE) as connection:
        for table in ("ledger", "ledger_heads", "datasets"):
            connection.execute(f"delete from {table}")  # noqa: S608
    for words in ([], ["ri"]):
        assert "must go on from entry 3" in one_line("ledger", "verify", *words)


def test_answers_to_several_jobs_of_a_person_are_losses_of_a_group(region, one_object):
    one_object("ledger", "budget", "ri", "--epsilon=9", "--delta=1e-2")
    words = ("--epsilon=0.5", "--delta=1e-6", "--times=2", "--max-jobs-per-worker=3")
    spent = one_object("ledger", "record", "ri", "q", *words)["spent"]
    assert (spent["epsilon"], spent["delta"]) == (3, pytest.approx(2e-6 * (1 + math.exp(0.5) + math.exp(1)), rel=1e-9))
    spent = one_object("ledger", "record", "ri", "i", "--kind=implicates", *words)["spent"]
    assert spent["epsilon"] == 6


def test_a_drawing_that_was_cut_off_does_not_make_a_refund(region, one_object, one_line):
    """Without its last entry the ledger says that nothing was drawn; what workers have seen of it says otherwise."""
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    one_object("ledger", "record", "ri", "q", "--epsilon=0.5")
    with sqlite3.connect(STORE) as connection:
        connection.execute("delete from ledger where number > 2")
        (head,) = connection.execute("select hash from ledger where number = 2").fetchone()
        connection.execute("update ledger_heads set entries = 2, hash = ?", [head])
    assert "must go on from entry 3" in one_line("ledger", "refund", "ri", "q")
    (found,) = one_object("ledger", "show")["datasets"]
    assert (found["count"], found["spent"]["epsilon"]) == (2, 0.5)


def test_a_budget_that_is_replaced_before_anything_is_paid_is_found(region, one_object, one_line):
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    assert one_object("ledger", "verify")["verified"]
    with sqlite3.connect(STORE) as connection:
        for table in ("ledger", "ledger_heads"):
            connection.execute(f"delete from {table}")  # noqa: S608
    one_object("ledger", "budget", "ri", "--epsilon=400", "--delta=1e-6")
    assert "must go on from entry 1" in one_line("ledger", "verify")
    assert "must go on from entry 1" in one_line("ledger", "record", "ri", "q", "--epsilon=40")


def test_figures_are_rounded_to_the_safe_side(region, one_object, synthmap):
    one_object("ledger", "budget", "ri", "--epsilon=3.99999996", "--delta=1e-6")
    assert "budget ε = 3.99999, δ = 1e-06" in synthmap("ledger", "show")[1]
    one_object("ledger", "record", "ri", "q", "--epsilon=1.0000001", "--delta=1e-7")
    told = synthmap("ledger", "show")[1]
    assert "spent  ε = 1.00001, δ = 1e-07" in told
    assert "left   ε = 2.99999, δ = 9e-07" in told
    assert "query      q  ε = 1.00001, δ = 1e-07" in told


def elsewhere(region, tmp_path):
    """Return a copy of the spec in another directory."""
    text = (region / "spec.toml").read_text()
    for name in ("zones.parquet", "od.parquet"):
        text = text.replace(f'"{name}"', f'"{region / name}"')
    (tmp_path / "copy.toml").write_text(text)
    return tmp_path / "copy.toml"


def test_a_seed_is_refused_where_account_is_kept(region, one_object, one_line, tmp_path):
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    spec = elsewhere(region, tmp_path)
    spec.write_text(spec.read_text() + "\n[run]\nseed = 1\n")
    assert "run.seed (1) must be left out" in one_line("release", spec, *release(region)[2:])
    assert len(one_object("ledger", "show")["datasets"][0]["entries"]) == 1


def test_jobs_of_a_registered_dataset_are_released_with_its_ledger_only(region, one_line, tmp_path):
    spec = elsewhere(region, tmp_path)
    assert "--dataset ri must be given" in one_line("release", spec, "--scheduler=threads")
    with pytest.raises(ConfigurationError, match="release_and_pay"):
        pipeline.release(read_spec(spec), scheduler="threads")
    flows = pl.read_parquet(region / "od.parquet").with_columns(pl.col("origin", "destination").cast(pl.String))
    flows.reverse().write_csv(tmp_path / "again.csv")
    spec.write_text(spec.read_text().replace(str(region / "od.parquet"), str(tmp_path / "again.csv")))
    assert "--dataset ri must be given" in one_line("release", spec, "--scheduler=threads")
    assert not list((tmp_path / "releases").glob("[!.]*"))


def test_what_cannot_be_compared_with_registered_jobs_is_not_released(region, tmp_path, monkeypatch):
    def content(seal, spec):
        raise ConfidentialDataError("od.parquet must not change while it is read")

    monkeypatch.setattr(Seal, "content", content)
    with pytest.raises(ConfidentialDataError, match="while it is read"):
        pipeline.release(read_spec(elsewhere(region, tmp_path)), scheduler="threads")
    assert not list((tmp_path / "releases").glob("[!.]*"))


def rewritten(table):
    table.write_bytes(table.read_bytes())


def away_and_back(table):
    table.rename(table.with_suffix(".away"))
    table.with_suffix(".away").rename(table)


@pytest.mark.parametrize("swap", [rewritten, away_and_back])
def test_a_table_put_in_the_place_of_the_compared_one_is_not_released(region, tmp_path, monkeypatch, swap):
    write_sample(tmp_path / "other", workers=300, zones=60, destinations=10, seed=4)
    table = tmp_path / "other" / "od.parquet"
    before = Unpaid.before_reading

    def compare_then_swap(unpaid, name, cost):
        before(unpaid, name, cost)
        swap(table)

    monkeypatch.setattr(Unpaid, "before_reading", compare_then_swap)
    with pytest.raises(ConfidentialDataError, match="must not change while they are read"):
        pipeline.release(read_spec(tmp_path / "other" / "spec.toml"), scheduler="threads")
    assert not list((tmp_path / "other" / "releases").glob("[!.]*"))


def test_jobs_that_a_lost_seal_cannot_tell_are_not_released(region, one_line, synthmap, tmp_path):
    write_sample(tmp_path / "other", workers=300, zones=60, destinations=10, seed=4)
    seal = tmp_path / "secret" / "registry.toml.seal"
    seal.rename(tmp_path / "seal")
    for spec in (elsewhere(region, tmp_path), tmp_path / "other" / "spec.toml"):  # nobody knows whose these are
        assert "must know the jobs of dataset ri" in one_line("release", spec, "--scheduler=threads")
        seal.unlink(missing_ok=True)
    (tmp_path / "seal").rename(seal)
    assert synthmap("release", tmp_path / "other" / "spec.toml", "--scheduler=threads")[0] == 0


WITHOUT_SERVICE = """
import importlib.util, sys
for name in ("pydantic_settings", "sqlalchemy", "alembic", "fastapi", "structlog"):
    sys.modules[name] = None
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if sys.modules.get(name, 0) is None else real(name, *more)
from synthmap.cli import main
main()
"""


def test_so_it_is_where_the_service_is_not_installed(region, tmp_path):
    """And what nobody registered is released there."""
    spec, known, none = elsewhere(region, tmp_path), tmp_path / "secret" / "registry.toml", tmp_path / "none.toml"
    words = [sys.executable, "-c", WITHOUT_SERVICE, "release", str(spec), "--scheduler=threads"]
    for place, code, text in ((known, 2, "--dataset ri must be given"), (none, 0, "")):
        environment = os.environ | {"SYNTHMAP_CONFIDENTIAL_REGISTRY": str(place)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert text in done.stderr


def test_without_a_dataset_one_line_says_that_nobody_keeps_account(region, synthmap, tmp_path):
    write_sample(tmp_path / "other", workers=300, zones=60, destinations=10, seed=4)
    code, _, err = synthmap("release", tmp_path / "other" / "spec.toml", "--scheduler=threads")
    assert (code, len(err.splitlines())) == (0, 1)
    assert "no ledger keeps account" in err


def test_what_others_incur_is_recorded_and_refused_beyond_the_budget(region, one_object, one_line, synthmap):
    one_object("ledger", "budget", "ri", "--epsilon=2", "--delta=1e-6")
    found = one_object("ledger", "record", "ri", "implicates-1", "--kind=implicates", "--epsilon=0.3", "--times=5")
    assert [(one["kind"], one["name"]) for one in found["entries"]] == [
        ("budget", ""), ("implicates", "implicates-1"), ("drawing", "implicates-1")]  # fmt: skip
    assert (found["spent"]["epsilon"], found["left"]["epsilon"]) == (1.5, 0.5)
    for epsilon in ("0.3", "0.1"):  # a second answer under the name of the first would be free
        words = ("record", "ri", "implicates-1", "--kind=implicates", f"--epsilon={epsilon}", "--times=5")
        assert "another name" in one_line("ledger", *words)
    assert one_object("ledger", "show")["datasets"] == [found]
    assert "another name" in one_line("ledger", "record", "ri", "implicates-1", "--epsilon=0.1")
    assert "at most what is left" in one_line("ledger", "record", "ri", "q", "--epsilon=0.4", "--times=2")
    assert "nothing was drawn yet" in one_line("ledger", "refund", "ri", "implicates-1")
    assert "query      q" in synthmap("ledger", "record", "ri", "q", "--epsilon=0.5", "--delta=1e-6")[1]
    assert one_object("ledger", "verify")["verified"]


def test_other_tables_than_the_dataset_s_are_not_released_on_its_budget(region, one_object, one_line, tmp_path):
    one_object("ledger", "budget", "ri", "--epsilon=4", "--delta=1e-6")
    write_sample(tmp_path / "other", workers=300, zones=60, destinations=10, seed=5)
    assert "must be those of dataset (ri)" in one_line(*release(tmp_path / "other"))
    assert len(one_object("ledger", "show")["datasets"][0]["entries"]) == 1


WRONG = {
    "no dataset": ["ledger", "budget", "nobody", "--epsilon=1", "--delta=0"],
    "no figure": ["ledger", "budget", "ri", "--epsilon=1"],
    "a budget of nothing": ["ledger", "budget", "ri", "--epsilon=0", "--delta=0"],
    "nan": ["ledger", "budget", "ri", "--epsilon=nan", "--delta=0"],
    "show of nobody": ["ledger", "show", "nobody"],
    "verify of nobody": ["ledger", "verify", "nobody"],
    "a path": ["ledger", "show", "../ri"],
    "an unknown kind": ["ledger", "record", "ri", "x", "--kind=drawing", "--epsilon=1"],
    "no loss": ["ledger", "record", "ri", "x", "--epsilon=nan"],
    "a loss of nobody": ["ledger", "record", "nobody", "x", "--epsilon=1"],
    "refund of nothing": ["ledger", "refund", "ri", "x"],
    "against nothing": ["ledger", "verify", "--against=none"],
    "against something else": ["ledger", "verify", "--against=/etc/hostname"],
    "a store without a dataset": ["release", "spec.toml", "--store=x"],
    "a release of nobody's": ["release", "spec.toml", "--dataset=nobody", "--store=x"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_an_error_is_one_line(region, one_line, words):
    one_line(*(region / word if word == "spec.toml" else word for word in words))
