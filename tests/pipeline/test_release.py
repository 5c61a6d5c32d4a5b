"""Whole releases: of the made-up region in many variants, and of the public data sets where they are."""

import json
import math

import geopandas
import polars as pl
import pytest

from pipelines.release import plan, release
from synthmap.confidential.sample import LEVELS
from synthmap.errors import ConfidentialDataError, ConfigurationError, SynthmapError, UnknownZoneError, VintageError
from synthmap.privacy.composition import table_pdp_delta
from synthmap.release.manifest import Manifest, read_manifest
from synthmap.release.statement import PAGE, RECORD, read_statement, text
from synthmap.release.verify import verify

SEGMENTS = ["SA01", "SA02", "SA03"]


def run(spec):
    """Release with threads, verify, and return what was made."""
    found = release(spec, scheduler="threads")
    assert verify(found.path).workers == found.manifest.invariants.workers
    return found


def workers_of(table, count="count", by="destination"):
    """Workers at each destination, as a dict."""
    summed = table.group_by(by).agg(pl.col(count).cast(pl.Int64).sum()).sort(by)
    return dict(summed.iter_rows())


def lodes_input(spec):
    """All rows of a spec's LODES tables, everything text but the counts."""
    tables = [pl.read_csv(table.path, infer_schema=False) for table in spec.tables]
    return pl.concat(tables).with_columns(pl.col("S000", *SEGMENTS).cast(pl.Int64))


def assert_workplaces_kept(found, spec, read_od):
    """Totals by workplace are those of the input, and ids are its very strings."""
    published = read_od(found.path)
    assert published.schema["origin"] == published.schema["destination"] == pl.String
    assert workers_of(published) == workers_of(lodes_input(spec), "S000", "w_geocode")
    return published


@pytest.fixture
def confidential(region):
    return pl.read_parquet(region / "od.parquet")


class TestMadeUpRegion:
    def test_totals_of_destinations_are_those_of_the_input(self, make_spec, read_od, confidential):
        published = read_od(run(make_spec()).path)
        assert workers_of(published) == workers_of(confidential)
        assert published.columns == ["origin", "destination", "count", *SEGMENTS]

    def test_the_table_is_sorted_with_each_pair_once(self, make_spec, read_od):
        published = read_od(run(make_spec()).path)
        pairs = list(published.select("destination", "origin").iter_rows())
        assert pairs == sorted(set(pairs))

    def test_origins_are_drawn_not_copied(self, make_spec, read_od, confidential):
        published = read_od(run(make_spec()).path)
        both = published.join(confidential, on=["origin", "destination"], how="inner")
        assert len(both) < len(published) * 0.9

    def test_ids_keep_their_leading_zeros(self, make_spec, read_od, region):
        known = set(pl.read_parquet(region / "zones.parquet")["id"])
        published = read_od(run(make_spec()).path)
        assert all(one.startswith("0") for one in known)
        assert set(published["origin"]) | set(published["destination"]) <= known

    def test_segments_sum_to_count_in_every_row(self, make_spec, read_od):
        published = read_od(run(make_spec()).path)
        assert (published.select(pl.sum_horizontal(SEGMENTS)).to_series() == published["count"]).all()

    def test_zones_are_geoparquet_in_the_order_of_ids(self, make_spec, region):
        zones = geopandas.read_parquet(run(make_spec()).path / "zones.parquet")
        source = pl.read_parquet(region / "zones.parquet").sort("id")
        assert zones.crs.to_epsg() == 4326
        assert list(zones.columns) == ["id", *LEVELS, "weight", "longitude", "latitude", "geometry"]
        assert zones["id"].tolist() == source["id"].to_list()
        assert zones["weight"].tolist() == source["population"].to_list()
        assert zones["tract"].tolist() == source["tract"].cast(pl.String).to_list()
        assert zones.geometry.x.tolist() == pytest.approx(source["longitude"].to_list())

    def test_plan_has_one_row_a_destination_within_the_promise(self, make_spec, confidential):
        found = run(make_spec())
        made = pl.read_parquet(found.path / "plan.parquet")
        assert dict(zip(made["destination"], made["headcount"], strict=True)) == workers_of(confidential)
        assert made["destination"].is_sorted()
        assert (made["synthetic_size"] == made["headcount"]).all()
        assert made["epsilon"].max() <= found.manifest.privacy.dp.epsilon
        assert made["delta"].max() <= found.manifest.privacy.dp.delta
        assert found.manifest.privacy.pdp_cells.delta_table == table_pdp_delta(made["delta"].to_numpy())

    def test_manifest_says_what_was_promised(self, make_spec):
        spec = make_spec(title="A title", year=2024)
        found = run(spec)
        manifest = read_manifest(found.path)
        assert manifest == found.manifest
        assert manifest.release == found.path.name == found.release
        assert (manifest.name, manifest.title, manifest.year) == ("demo", "A title", 2024)
        assert (manifest.private, manifest.warning) == (True, None)
        assert manifest.segments == SEGMENTS
        assert manifest.privacy.dp.model_dump() == {"epsilon": 4.0, "delta": 1e-6}
        assert manifest.privacy.rule == "pdp"
        assert "segment" in manifest.privacy.unit
        assert manifest.privacy.steps.dropping_epsilon == 0
        assert 0 < manifest.privacy.certified_per_job.delta <= 1e-6
        assert (manifest.invariants.workers, manifest.invariants.destinations) == (3000, 60)
        assert manifest.zones.model_dump() == {
            "vintage": "demo-1",
            "zones": 400,
            "levels": list(LEVELS),
            "elsewhere": None,
        }
        assert sum(part.destinations for part in manifest.plan.classes) == 60
        assert sum(part.workers for part in manifest.plan.classes) == 3000
        assert {"od/part-00000.parquet", "plan.parquet", "zones.parquet"} <= set(manifest.files)
        assert "numba" in manifest.software.packages

    def test_the_statement_names_the_promise(self, make_spec):
        found = run(make_spec(curator="Statistics Office"))
        assert {RECORD, PAGE} <= set(found.manifest.files)
        told = read_statement(found.path)
        assert told.facts.dp == found.manifest.privacy.dp
        assert told.deployment.basic.data_curators[0].data_curator_name == "Statistics Office"
        assert "ε = 4, δ = 1e-06" in text(told)
        assert "NOT PRIVATE" not in text(told)

    def test_a_plan_publishes_nothing_and_promises_the_same(self, make_spec, left_in):
        spec = make_spec()
        planned = plan(spec, scheduler="threads")
        assert left_in(spec.store) == left_in(spec.run.scratch) == []
        found = run(spec)
        assert found.manifest.privacy.dp == planned.promise
        assert found.manifest.plan == planned.summary

    def test_without_segments_there_is_only_the_count(self, make_spec, read_od):
        found = run(make_spec(segments=None))
        assert read_od(found.path).columns == ["origin", "destination", "count"]
        assert found.manifest.segments == []
        assert "segment" not in found.manifest.privacy.unit


VARIANTS = {
    "distance": {"plan": {"coarsening": "distance"}},
    "distance to zones": {"plan": {"coarsening": "distance", "finest": "zone"}},
    "distance to counties": {"plan": {"coarsening": "distance", "finest": "county", "cells": 8}},
    "distance to the coarsest": {"plan": {"coarsening": "distance", "finest": "region"}},
    "one cell": {"plan": {"cells": 1}},
    "two cells": {"plan": {"cells": 2}},
    "as many cells as zones": {"plan": {"cells": 400}},
    "more cells than zones": {"plan": {"cells": 5000}},
    "keep half": {"plan": {"keep": 0.5}},
    "keep hardly any": {"plan": {"keep": 1e-6}},
    "keep by prior": {"plan": {"keep": "prior"}},
    "keep by prior, low floor": {"plan": {"keep": "prior", "keep_floor": 0.05, "cells": 64}},
    "keep and distance": {"plan": {"keep": 0.5, "coarsening": "distance"}},
    "adp": {"privacy": {"rule": "adp"}},
    "adp, keep half": {"privacy": {"rule": "adp"}, "plan": {"keep": 0.5}},
    "pure": {"privacy": {"rule": "pure", "delta": 0.0}},
    "pdp without delta": {"privacy": {"delta": 0.0}},
    "small epsilon": {"privacy": {"epsilon": 0.01}},
    "large epsilon": {"privacy": {"epsilon": 50.0}},
    "elsewhere": {"outside": "elsewhere"},
    "elsewhere without prior": {"outside": "elsewhere", "prior": {"elsewhere_share": 0.0}},
    "flat prior": {"prior": {"power": 0.0}},
    "no levels": {"zones": {"levels": None}},
    "no levels, distance": {"zones": {"levels": None}, "plan": {"coarsening": "distance"}},
    "no weight": {"zones": {"weight": None}},
    "one segment": {"segments": ["count_only"]},
    "one partition": {"run": {"partitions": 1}},
    "more partitions than destinations": {"run": {"partitions": 500}},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_keeps_totals_and_its_promise(make_spec, region, tmp_path, read_od, confidential, changes):
    if changes.get("segments") == ["count_only"]:
        confidential.with_columns(count_only="count").write_parquet(tmp_path / "one.parquet")
        changes = changes | {"tables": [make_spec().tables[0].model_dump() | {"path": tmp_path / "one.parquet"}]}
    spec = make_spec(**changes)
    found = run(spec)
    published = read_od(found.path)
    assert workers_of(published) == workers_of(confidential)
    made = pl.read_parquet(found.path / "plan.parquet")
    assert made["epsilon"].max() <= spec.privacy.epsilon
    assert made["delta"].max() <= spec.privacy.delta
    assert found.manifest.privacy.steps.dropping_epsilon <= spec.privacy.epsilon
    assert (found.manifest.privacy.pdp_cells is None) == (spec.privacy.rule == "adp")
    if isinstance(spec.plan.cells, int):
        assert made["cells"].max() <= spec.plan.cells
    if spec.outside == "refuse":
        assert "elsewhere" not in set(published["origin"])


def test_one_cell_is_the_prior_alone_and_costs_nothing(make_spec):
    found = run(make_spec(segments=None, plan={"cells": 1}))
    assert found.manifest.privacy.certified_per_job.model_dump() == {"epsilon": 0.0, "delta": 0.0}
    assert found.manifest.plan.prior_share_mean == 1.0


def test_dropping_takes_its_part_of_epsilon(make_spec):
    found = run(make_spec(plan={"keep": 0.5}))
    assert found.manifest.privacy.steps.dropping_epsilon >= math.log(2) / 2
    assert found.manifest.plan.keep_smallest == 0.5
    assert found.manifest.privacy.dp.epsilon == 4.0


def test_the_pure_rule_promises_no_failure(make_spec):
    found = run(make_spec(privacy={"rule": "pure"}))
    assert found.manifest.privacy.dp.model_dump() == {"epsilon": 4.0, "delta": 0.0}


def test_two_jobs_a_worker_double_the_promise_and_not_the_noise(make_spec):
    one, two = run(make_spec()).manifest, run(make_spec(privacy={"max_jobs_per_worker": 2})).manifest
    assert two.privacy.dp.model_dump() == {"epsilon": 8.0, "delta": 2e-6}
    assert two.privacy.max_jobs_per_worker == 2
    assert "2 jobs" in two.privacy.unit
    assert two.privacy.certified_per_job == one.privacy.certified_per_job
    assert two.plan == one.plan


def test_a_table_with_one_row_a_worker_gives_the_same_totals(make_spec, tmp_path, read_od, confidential):
    rows = confidential.select("origin", "destination", pl.col("count").repeat_by("count")).explode("count")
    rows.drop("count").write_csv(tmp_path / "workers.csv")
    table = {"path": tmp_path / "workers.csv", "vintage": "demo-1", "format": "long"}
    found = run(make_spec(segments=None, tables=[table | {"origin": "origin", "destination": "destination"}]))
    assert workers_of(read_od(found.path)) == workers_of(confidential)


@pytest.mark.parametrize(
    ("changes", "fault", "text"),
    [
        ({"plan": {"coarsening": "distance", "finest": "parish"}}, ConfigurationError, "finest"),
        ({"plan": {"finest": "tract"}}, ConfigurationError, "finest"),
        ({"zones": {"vintage": "demo-2"}}, VintageError, "vintage"),
        ({"segments": ["SA01", "SA02"]}, ConfidentialDataError, "sum"),
        ({"segments": ["SA01", "SA01"]}, ConfigurationError, "different"),
        ({"segments": ["count"]}, ConfigurationError, "names of their own"),
        ({"segments": "SE"}, ConfidentialDataError, "SE01"),
    ],
)
def test_a_contradictory_spec_is_refused(make_spec, left_in, tmp_path, changes, fault, text):
    with pytest.raises(fault, match=text):
        release(make_spec(**changes), scheduler="threads")
    assert left_in(tmp_path / "store") == left_in(tmp_path / "scratch") == []


def test_a_prior_share_for_elsewhere_needs_an_elsewhere(make_spec, read_od):
    """Otherwise synthetic workers live in a place that neither zones.parquet nor the manifest has."""
    with pytest.raises(ConfigurationError, match="elsewhere"):
        release(make_spec(outside="refuse", prior={"elsewhere_share": 0.3}), scheduler="threads")


@pytest.mark.parametrize("name", ["destination", "origin", "count"])
def test_a_segment_has_no_name_of_another_column(make_spec, tmp_path, confidential, name):
    names = {"origin": "o", "destination": "d", "count": "n", "SA01": name}
    confidential.rename(names).write_parquet(tmp_path / "renamed.parquet")
    table = {"path": tmp_path / "renamed.parquet", "vintage": "demo-1", "format": "long"}
    columns = {"origin": "o", "destination": "d", "count": "n"}
    with pytest.raises(ConfigurationError, match=name):
        release(make_spec(segments=[name, "SA02", "SA03"], tables=[table | columns]), scheduler="threads")


@pytest.mark.parametrize("level", ["id", "weight", "geometry"])
def test_a_level_named_like_another_column_does_no_harm(make_spec, tmp_path, region, level):
    pl.read_parquet(region / "zones.parquet").rename({"id": "code", "state": level}).write_parquet(
        tmp_path / "zones.parquet"
    )
    zones = {"path": tmp_path / "zones.parquet", "id": "code", "levels": ["region", level]}
    try:
        found = run(make_spec(zones=zones))
    except SynthmapError:
        return
    zones = geopandas.read_parquet(found.path / "zones.parquet")
    assert zones["id"].tolist() == pl.read_parquet(region / "zones.parquet")["id"].sort().to_list()


class TestBristol:
    """A county's main and aux tables: homes out of state go elsewhere."""

    def test_homes_outside_the_zones_are_only_elsewhere(self, lodes_spec, read_od):
        spec = lodes_spec("fixture_ri_bristol_2019")
        found = run(spec)
        published = assert_workplaces_kept(found, spec, read_od)
        known = set(pl.read_csv(spec.zones.path, infer_schema=False)["tabblk2010"])
        assert set(published["origin"]) - known == {"elsewhere"}
        assert set(published["destination"]) <= known
        assert found.manifest.zones.elsewhere == "elsewhere"
        assert found.manifest.prior.elsewhere_share == 0.1
        zones = geopandas.read_parquet(found.path / "zones.parquet")
        assert zones["id"].tolist()[-1] == "elsewhere"
        assert zones.geometry.isna().sum() == 1

    def test_they_are_refused_unless_asked_for(self, lodes_spec, left_in):
        spec = lodes_spec("fixture_ri_bristol_2019", outside="refuse")
        with pytest.raises(UnknownZoneError, match=r"h_geocode.*vintage.*outside = \"elsewhere\""):
            release(spec, scheduler="threads")
        assert left_in(spec.store) == left_in(spec.run.scratch) == []

    def test_segments_and_totals_agree_at_every_level(self, lodes_spec, read_od):
        spec = lodes_spec("fixture_ri_bristol_2019", segments=SEGMENTS)
        published = assert_workplaces_kept(run(spec), spec, read_od)
        parents = pl.read_csv(spec.zones.path, infer_schema=False).select("tabblk2010", "bgrp", "trct", "cty")
        placed = published.join(parents, left_on="origin", right_on="tabblk2010", how="left")
        for level in ("origin", "bgrp", "trct", "cty"):
            summed = placed.group_by(level).agg(pl.col("count", *SEGMENTS).sum())
            assert summed["count"].sum() == lodes_input(spec)["S000"].sum()
            assert (summed.select(pl.sum_horizontal(SEGMENTS)).to_series() == summed["count"]).all()


def test_district_of_columbia(lodes_spec, read_od):
    spec = lodes_spec("lodes8_dc_2023", outside="refuse")
    found = run(spec)
    assert_workplaces_kept(found, spec, read_od)
    assert found.manifest.invariants.workers == 220_857
    assert found.manifest.zones.vintage == "2020"


def test_another_vintage_of_a_crosswalk_is_refused(lodes_spec):
    with pytest.raises(VintageError, match="2020"):
        release(
            lodes_spec("lodes8_dc_2023", zones={"vintage": "2010"}, tables=[{"path": "x", "vintage": "2010"}]),
            scheduler="threads",
        )


def test_rhode_island_with_voting_age_weights(lodes_spec, data_folder, read_od):
    weights = data_folder / "us_ri_block_pop_2010" / "ri_2010_block_pop_vap.csv.gz"
    spec = lodes_spec(
        "lodes7_ri_2019",
        zones={"weights": {"path": str(weights), "id": "GEOID", "column": "vap", "vintage": "2010"}},
        prior={"elsewhere_share": 0.15},
    )
    found = run(spec)
    published = assert_workplaces_kept(found, spec, read_od)
    assert (found.manifest.invariants.workers, found.manifest.invariants.destinations) == (476_789, 8_505)
    assert "vap" in found.manifest.prior.weight
    outside = published.filter(pl.col("origin") == "elsewhere")["count"].sum() / 476_789
    assert 0.12 < outside < 0.2
    assert "09" not in set(published["origin"].str.slice(0, 2))


class TestLeeds:
    """UK areas with ids that are no numbers, coordinates as columns or polygons."""

    @pytest.fixture
    def leeds(self, data_folder, make_spec):
        folder = data_folder / "uk_leeds_msoa_2011"
        columns = {"origin": "geo_code1", "destination": "geo_code2", "count": "all"}
        points = {"path": folder / "od_data_centroids.csv", "longitude": "lon", "latitude": "lat"}

        def make(**zones):
            return make_spec(
                name="leeds",
                segments=None,
                zones={"id": "geo_code", "levels": None, "weight": None, "vintage": "2011"} | points | zones,
                tables=[{"path": folder / "od_data_df_medium.csv", "vintage": "2011", "format": "long"} | columns],
            )

        return make

    def test_centroids(self, leeds, read_od):
        spec = leeds()
        published = read_od(run(spec).path)
        truth = pl.read_csv(spec.tables[0].path)
        assert workers_of(published) == workers_of(truth, "all", "geo_code2")
        assert published["count"].sum() == 236_326

    def test_a_zone_without_polygon_is_refused(self, leeds, data_folder, left_in):
        polygons = data_folder / "uk_leeds_msoa_2011" / "od_data_zones.geojson"
        spec = leeds(path=polygons, longitude=None, latitude=None)
        with pytest.raises(UnknownZoneError, match=r"geo_code2.*looks like a zone's id.*all are there") as fault:
            release(spec, scheduler="threads")
        assert "E02002401" not in str(fault.value)
        assert "\n" not in str(fault.value)
        assert left_in(spec.store) == left_in(spec.run.scratch) == []

    def test_polygons(self, leeds, data_folder, tmp_path, read_od):
        spec = leeds()
        whole = pl.read_csv(spec.tables[0].path)
        inside = whole.filter(~pl.any_horizontal(pl.col("geo_code1", "geo_code2") == "E02002401"))
        inside.write_csv(tmp_path / "inside.csv")
        polygons = data_folder / "uk_leeds_msoa_2011" / "od_data_zones.geojson"
        spec = leeds(path=polygons, longitude=None, latitude=None)
        tables = [spec.tables[0].model_copy(update={"path": tmp_path / "inside.csv"})]
        published = read_od(run(spec.model_copy(update={"tables": tables})).path)
        assert workers_of(published) == workers_of(inside, "all", "geo_code2")


def test_the_manifest_is_json_that_its_model_accepts(make_spec):
    found = run(make_spec())
    text = (found.path / "manifest.json").read_text(encoding="utf-8")
    assert Manifest.model_validate(json.loads(text)) == found.manifest
