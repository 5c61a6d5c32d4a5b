"""Releases whose prior follows a public table: an earlier release, as agencies do it, or a user's."""

import json

import polars as pl
import pytest

from pipelines.release import plan, release
from synthmap.confidential.fidelity import evaluate
from synthmap.confidential.sample import LEVELS, VINTAGE
from synthmap.errors import ConfigurationError, ReleaseCorruptError
from synthmap.mechanism.recertify import recertify
from synthmap.release.manifest import read_manifest
from synthmap.release.statement import PAGE, read_statement, text
from synthmap.release.verify import verify


def run(spec, **more):
    return release(spec, scheduler="threads", **more)


@pytest.fixture
def last_year(make_spec):
    return run(make_spec(name="last-year", segments=None))


def test_an_earlier_release_as_prior_is_named_followed_and_evaluated(make_spec, last_year, read_od):
    spec = make_spec(segments=None, privacy={"epsilon": 1.0}, prior={"release": str(last_year.path)})
    found = run(spec)
    assert verify(found.path).workers == 3000
    assert recertify(found.path) > 0
    source = found.manifest.prior.source
    assert (source.kind, source.name, source.workers) == ("release", last_year.release, 3000)
    assert any(last_year.release in text for text in found.manifest.privacy.assumptions)
    assert last_year.release in text(read_statement(found.path))
    assert found.manifest.warning is None
    planned = pl.read_parquet(found.path / "plan.parquet")
    worth, n = planned["prior_strength"], planned["headcount"]
    decay = found.manifest.prior.strength * n / (n + 10)
    assert (worth > decay).all()  # every destination has workers in the earlier release
    largest = planned["headcount"].arg_max()
    assert worth[largest] > 10 * found.manifest.prior.strength
    before = read_od(last_year.path)
    keys = ["origin", "destination"]

    def common(path):
        joined = before.join(read_od(path), on=keys)
        return joined.select(pl.min_horizontal("count", "count_right").sum()).item()

    without = run(make_spec(segments=None, privacy={"epsilon": 1.0}))
    assert common(found.path) > 1.3 * common(without.path)
    assert evaluate(found.path, spec).cpc_cells > 0
    with pytest.raises(ConfigurationError, match="prior must be the release's own"):
        evaluate(found.path, make_spec(segments=None))


def test_tables_do_not_depend_on_how_the_work_is_split(make_spec, last_year, read_od):
    made = [
        read_od(run(make_spec(prior={"release": str(last_year.path)}, run={"seed": 3, "partitions": parts})).path)
        for parts in (1, 5)
    ]
    assert made[0].equals(made[1])


def test_a_prior_that_is_not_private_is_told_first(make_spec):
    seeded = run(make_spec(name="seeded", segments=None, run={"seed": 1}))
    found = run(make_spec(segments=None, prior={"release": str(seeded.path)}))
    assert found.manifest.private
    assert f"the release {seeded.release}, which is not private itself" in found.manifest.warning


def test_a_changed_release_is_refused_and_nothing_is_left(make_spec, last_year, left_in, tmp_path):
    part = next((last_year.path / "od").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(ReleaseCorruptError, match="must have the hash"):
        run(make_spec(prior={"release": str(last_year.path)}))
    assert left_in(tmp_path / "store") == [last_year.release]
    assert left_in(tmp_path / "scratch") == []


def test_a_user_s_table_is_declared_public(make_spec, region, tmp_path):
    od = pl.read_parquet(region / "od.parquet").select("origin", "destination", "count").sample(fraction=0.5, seed=1)
    od.write_csv(tmp_path / "census.csv")
    table = {"path": "census.csv", "origin": "origin", "destination": "destination", "count": "count"}
    spec = make_spec(prior={"mixing": 0.5, "table": table | {"vintage": VINTAGE}})
    found = run(spec)
    source = found.manifest.prior.source
    assert (source.kind, source.name, source.mixing) == ("table", "census.csv", 0.5)
    assert source.statement == "declared public by the curator"
    assert json.loads((found.path / "manifest.json").read_text())["prior"]["source"]["sha256"] == source.sha256
    assert evaluate(found.path, spec).cpc_cells > 0


def test_the_confidential_table_itself_is_refused(make_spec, region, left_in, tmp_path):
    table = {"path": str(region / "od.parquet"), "origin": "origin", "destination": "destination", "count": "count"}
    with pytest.raises(ConfigurationError, match="another file than the confidential table"):
        run(make_spec(prior={"table": table | {"vintage": VINTAGE}}))
    assert left_in(tmp_path / "store") == []


def test_coarsening_and_keeping_may_be_left_to_the_planner(make_spec):
    found = run(make_spec(plan={"coarsening": "auto", "keep": "auto"}))
    assert (found.manifest.plan.coarsening, found.manifest.plan.keep) == ("auto", "auto")
    assert found.manifest.plan.keep_smallest == 1.0
    assert set(pl.read_parquet(found.path / "plan.parquet")["finest"]) <= {-1, len(LEVELS) - 1}
    assert recertify(found.path) > 0


def test_neighbouring_tables_have_the_same_plan(make_spec, region, tmp_path):
    """One worker lives elsewhere: whatever the planner reads must be the same."""
    rows = pl.read_parquet(region / "od.parquet")
    moved = rows.with_row_index().with_columns(
        pl.when(pl.col("index") == 0).then(pl.lit(rows["origin"][-1])).otherwise(pl.col("origin")).alias("origin")
    )
    moved = moved.drop("index").group_by("origin", "destination").agg(pl.col("*").sum()).sort("destination", "origin")
    moved.write_parquet(tmp_path / "moved.parquet")
    table = make_spec().tables[0].model_copy(update={"path": tmp_path / "moved.parquet"})
    plans = [
        plan(spec, scheduler="threads").plan
        for spec in (make_spec(), make_spec().model_copy(update={"tables": [table]}))
    ]
    assert plans[0].to_table().equals(plans[1].to_table())


SOURCE = "mean commutes of the <travel survey> & census 2016"


def test_what_a_fitted_decay_came_from_is_told(make_spec):
    scales = {"class_edges_km": [6.0], "class_scales_km": [6.0, 12.0], "class_source": SOURCE}
    found = run(make_spec(segments=None, prior=scales))
    assert verify(found.path).workers == 3000
    read = read_manifest(found.path)
    assert (read.prior.class_source, read.prior.source, read.prior.lengths) == (SOURCE, None, None)
    assumed = (
        f"what the scales of the prior's decay were fitted to is public, or its loss is counted elsewhere: {SOURCE}"
    )
    assert assumed in read.privacy.assumptions
    statement = read_statement(found.path)
    assert f"Assumed: {assumed}" in text(statement)
    assert any(assumed in one.answer for one in statement.questions)
    page = (found.path / PAGE).read_text(encoding="utf-8")
    assert "counted elsewhere: mean commutes of the &lt;travel survey&gt; &amp; census 2016" in page


@pytest.mark.parametrize("prior", [{}, {"lengths_epsilon": 0.3}], ids=["one scale", "measured lengths"])
def test_releases_without_such_a_decay_name_no_source_of_it(make_spec, prior):
    found = run(make_spec(segments=None, prior=prior))
    assert read_manifest(found.path).prior.class_source is None
    assert "scales of the prior" not in text(read_statement(found.path))


def test_manifests_from_before_a_source_was_asked_for_are_read(small_release):
    def change(manifest):
        manifest["prior"] |= {"class_edges_km": [9.0], "class_scales_km": [6.0, 12.0]}

    assert read_manifest(small_release(change=change)).prior.class_source is None
