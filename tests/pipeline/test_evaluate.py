"""Releases of the made-up region, measured against the table they were made from."""

import json
import re
import signal
import subprocess
import sys

import geopandas
import polars as pl
import pytest

from pipelines.release import release
from synthmap.analysis.compare import compare, report
from synthmap.analysis.measures import weighted_mean
from synthmap.analysis.read import read_plan, read_zones_of
from synthmap.confidential.fidelity import evaluate
from synthmap.errors import ConfigurationError, GeographyError, ReleaseCorruptError, VintageError
from synthmap.published.expected import expected_common_part
from synthmap.published.store import ReleaseStore
from synthmap.published.utility import release_utility

OTHER_ZONES = {
    "ids": pl.col("id").cast(pl.String) + "x",
    r"parents at level county, at \d+ of 400 zones": pl.concat_str(pl.col("county").cast(pl.String), pl.lit("x")),
    "weights, at 400 of 400 zones": pl.col("population") * 2 + 1,
    "points, at 400 of 400 zones": pl.col("latitude") + 0.001,
}

INTERRUPTED = """
import os, signal, sys, time
from synthmap.analysis import expected_flows as module
from synthmap.cli import main

def run(*arguments):
    signal.siginterrupt(signal.SIGINT, False)  # as libraries leave it: its handler does not end a wait
    os.kill(os.getpid(), number)
    while not arguments[-1][0]:  # until the main thread says that it is to stop
        time.sleep(0.01)
    found = kernel(*arguments)
    print("stopped" if (getattr(found, sums) == int(name == "cell_tables")).all() else "went on")
    return found

number, name, sums = int(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1)
kernel = getattr(module, name)
setattr(module, name, run)
main()
"""


@pytest.fixture
def released(make_spec):
    def make(**changes):
        spec = make_spec(segments=None, **({"run": {"seed": 1}} | changes))
        return release(spec, scheduler="threads").path, spec

    return make


def test_keys_of_the_json(released, command, tmp_path):
    path, _ = released()
    found = command("evaluate", path, "--against", tmp_path / "spec.toml", "--json", "--plots", tmp_path / "figures")
    assert found.returncode == 0, found.stderr
    values = json.loads(found.stdout)
    assert values["confidential"] is True
    assert "curator" in values["note"]
    assert values["distance_mae_km"] > 0
    assert values["distance_mae_km_unweighted"] > 0
    assert values["tv"] == pytest.approx(1 - values["cpc"]["zone/zone"])
    levels = ("zone", "blockgroup", "tract", "county", "state", "region")
    assert set(values["cpc"]) == {f"{o}/{d}" for o in levels for d in levels}
    assert len(values["plots"]) == len(list((tmp_path / "figures").iterdir())) == 3


def test_text_shows_expected_beside_measured(released, forked_command, tmp_path):
    path, _ = released()
    found = forked_command("evaluate", path, "--against", tmp_path / "spec.toml")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("CONFIDENTIAL")
    assert "expected" in found.stdout
    assert "of noisy counts the common part at the level planned, and all by true average commute" in found.stdout
    assert "workers living in an area are off" in found.stdout
    assert "distance to the power −" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 120
    rows = [line[50:].split() for line in found.stdout.splitlines() if line.startswith(("average", "common", "cells"))]
    assert all(len(row) in {3, 5, 6} for row in rows)  # with km or without; a dash where there is no closed form
    assert "–" in found.stdout
    assert "there is no closed form" in found.stdout
    assert re.search(r"\n    expected −\d\.\d\d, −\d\.\d\d; prior true −", found.stdout)
    told = [line.split() for line in found.stdout.splitlines() if line.startswith(("pairs", "workers liv", "total"))]
    assert len(told) == 7
    by_class = re.findall(r"\n +[\d.,e+]+ (?:up|to <\S+) .*", found.stdout.split("by true")[0])
    assert len(by_class) > 5
    told_in_full = re.compile(r"(?: +\d+\.\d\d){3}(?: +[+-]\d+\.\d\d){3}$", re.MULTILINE)  # none is a dash
    assert all(told_in_full.search(line) for line in by_class)
    assert len(told_in_full.findall(found.stdout.split("by true")[1])) >= 2
    assert all("–" not in row for row in told)


def test_expected_error_is_within_a_factor_of_two(released):
    path, spec = released()
    found = evaluate(path, spec)
    assert 0.5 < found.expected.distance_mae_km / found.distance_mae_km < 2
    world = found.expected.if_prior_were_true
    assert world.cpc["tract/tract"] == pytest.approx(found.cpc["tract/tract"], abs=0.2)
    assert found.expected.cpc == pytest.approx(world.cpc, abs=0.03)  # one made-up world of 3,000 workers
    assert found.expected.tv_by_level == pytest.approx(world.tv_by_level, abs=0.03)
    assert found.expected.tv == found.expected.tv_by_level["zone"]
    assert found.expected.tv_unweighted == pytest.approx(world.tv_unweighted, abs=0.03)
    assert found.expected.cpl == pytest.approx(world.cpl, abs=0.03)
    assert 0.3 < found.expected.length_wasserstein_km / world.length_wasserstein_km < 3
    assert {level: one.relative_error for level, one in world.marginals.items()} == pytest.approx(
        found.expected.marginals, abs=0.05
    )
    assert list(found.expected.pairs) == list(world.pairs)
    for key, pairs in found.expected.pairs.items():
        assert pairs.spurious_share == pytest.approx(world.pairs[key].spurious_share, abs=0.03), key
        assert pairs.missing_share == pytest.approx(world.pairs[key].missing_share, abs=0.03), key
        assert pairs.other == pytest.approx(world.pairs[key].other, rel=0.06)
    assert found.expected.gravity.other.distance == pytest.approx(world.gravity.other.distance, abs=0.15)
    assert found.cpc_cells == pytest.approx(found.expected.cpc_cells, abs=0.2)
    measured, told = found.length_wasserstein_by_destination_km, found.expected.length_wasserstein_by_destination_km
    assert 0.5 < told / measured < 2
    assert found.expected.cpc_cells_if_prior_were_true == pytest.approx(found.expected.cpc_cells, abs=0.05)
    made = found.expected.pairs_cells_if_prior_were_true
    assert made.spurious_share == pytest.approx(found.expected.spurious_cells, abs=0.05)
    assert made.missing_share == pytest.approx(found.expected.missing_cells, abs=0.05)


@pytest.mark.parametrize(
    ("kernel", "sums"), [("flow_errors", "absolute"), ("length_errors", "below"), ("cell_tables", "value")]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_what_is_worked_out_in_closed_form(released, tmp_path, number, kernel, sums):
    path, _ = released()
    code = [sys.executable, "-c", INTERRUPTED, str(int(number)), kernel, sums]
    line = [*code, "evaluate", path, "--against", tmp_path / "spec.toml"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "stopped\n"), done.stderr
    assert list((tmp_path / "scratch").iterdir()) == []


def test_noisy_counts_agree_about_as_planned(released):
    path, spec = released(plan={"mechanism": "histogram", "finest": "tract"})
    found = evaluate(path, spec)
    assert found.expected.cpc_cells is None
    assert list(found.expected.cpc) == ["tract/zone"]
    assert (found.expected.tv, found.expected.cpl, found.expected.gravity) == (None, None, None)
    assert found.expected.tv_by_level == found.expected.marginals == {}
    assert found.expected.cpc["tract/zone"] == pytest.approx(found.cpc["tract/zone"], abs=0.1)


def test_huge_epsilon_and_many_cells_are_nearly_perfect_and_one_cell_is_the_prior(released):
    fine, spec = released(privacy={"epsilon": 200.0, "delta": 1e-6}, plan={"cells": 401})
    good = evaluate(fine, spec)
    coarse, spec = released(plan={"cells": 1})
    bad = evaluate(coarse, spec)
    assert good.cpc["tract/tract"] > 0.95
    assert good.cpc["tract/tract"] > bad.cpc["tract/tract"]
    assert good.distance_mae_km < bad.distance_mae_km
    assert good.tv < bad.tv - 0.1
    assert bad.expected.prior_share == 1
    assert bad.cpc_cells == bad.expected.cpc_cells == 1
    assert bad.expected.distance_mae_km == pytest.approx(bad.distance_mae_km, rel=0.5)


def test_segments_are_summed(make_spec):
    spec = make_spec(run={"seed": 1})
    found = evaluate(release(spec, scheduler="threads").path, spec)
    assert found.workers == found.workers_reference == 3000
    assert found.expected.if_prior_were_true is not None


def test_elsewhere_and_several_tables_and_rows_that_are_workers(make_spec, region, tmp_path):
    od = pl.read_parquet(region / "od.parquet").select(pl.col("origin", "destination").cast(pl.String), "count")
    far = od.head(40).with_columns(origin="far away, " + pl.col("origin"))
    far.write_parquet(tmp_path / "far.parquet")
    each = od.select(pl.all().repeat_by("count").explode())
    each.write_csv(tmp_path / "each.csv")
    table = {"vintage": "demo-1", "format": "long", "origin": "origin", "destination": "destination"}
    spec = make_spec(
        segments=None,
        outside="elsewhere",
        run={"seed": 1},
        tables=[
            table | {"path": str(tmp_path / "far.parquet"), "count": "count"},
            table | {"path": str(tmp_path / "each.csv")},
        ],
    )
    found = evaluate(release(spec, scheduler="threads").path, spec)
    assert found.workers == 3000 + far["count"].sum()
    assert found.elsewhere_share_reference == pytest.approx(far["count"].sum() / found.workers)
    assert found.elsewhere_share > 0


class TestMismatch:
    def test_other_vintage(self, released, make_spec):
        path, spec = released()
        other = spec.model_copy(update={"zones": spec.zones.model_copy(update={"vintage": "demo-2"})})
        with pytest.raises(VintageError, match="demo-2"):
            evaluate(path, other)

    def test_other_totals(self, released, region, tmp_path):
        path, spec = released()
        pl.read_parquet(region / "od.parquet").tail(-3).write_parquet(tmp_path / "od.parquet")
        tables = [spec.tables[0].model_copy(update={"path": tmp_path / "od.parquet"})]
        with pytest.raises(ConfigurationError, match="workers at each destination"):
            evaluate(path, spec.model_copy(update={"tables": tables}))

    def test_other_zones(self, released, region, tmp_path):
        path, spec = released()
        pl.read_parquet(region / "zones.parquet").tail(-1).write_parquet(tmp_path / "zones.parquet")
        zones = spec.zones.model_copy(update={"path": tmp_path / "zones.parquet"})
        with pytest.raises(ConfigurationError, match="those of the spec"):
            evaluate(path, spec.model_copy(update={"zones": zones}))

    @pytest.mark.parametrize(("what", "change"), OTHER_ZONES.items())
    def test_zones_that_only_look_the_same(self, released, region, tmp_path, what, change):
        path, spec = released()
        pl.read_parquet(region / "zones.parquet").with_columns(change).write_parquet(tmp_path / "zones.parquet")
        zones = spec.zones.model_copy(update={"path": tmp_path / "zones.parquet"})
        with pytest.raises(ConfigurationError, match=f"must be those of the spec, which has other {what}") as caught:
            evaluate(path, spec.model_copy(update={"zones": zones}))
        assert "\n" not in str(caught.value)

    def test_other_weights_in_a_file_of_their_own(self, released, region, tmp_path):
        table = pl.read_parquet(region / "zones.parquet").select(pl.col("id").cast(pl.String), "population")
        table.write_csv(tmp_path / "weights.csv")
        weights = {"path": str(tmp_path / "weights.csv"), "id": "id", "column": "population", "vintage": "demo-1"}
        path, spec = released(zones={"weight": None, "weights": weights})
        assert evaluate(path, spec).workers == 3000
        table.with_columns(pl.col("population") + 1).write_csv(tmp_path / "weights.csv")
        with pytest.raises(ConfigurationError, match="other weights, at 400 of 400 zones"):
            evaluate(path, spec)


class TestItsOwnZones:
    """However the zones are written, a release is evaluated against the spec that it was made from."""

    def test_rows_in_another_order(self, released, region, tmp_path):
        path, spec = released(outside="elsewhere")
        pl.read_parquet(region / "zones.parquet").reverse().write_parquet(tmp_path / "zones.parquet")
        zones = spec.zones.model_copy(update={"path": tmp_path / "zones.parquet"})
        assert evaluate(path, spec.model_copy(update={"zones": zones})).cpc == evaluate(path, spec).cpc

    @pytest.mark.parametrize(("kind", "crs"), [("polygons", 3857), ("points", 4326)])
    def test_a_layer_in_any_crs_from_a_relative_path(self, released, region, tmp_path, kind, crs):
        table = pl.read_parquet(region / "zones.parquet")
        points = geopandas.points_from_xy(table["longitude"], table["latitude"], crs=4326).to_crs(crs)
        shapes = points if kind == "points" else points.buffer(200, quad_segs=3)
        columns = {name: table[name].cast(pl.String).to_list() for name in ("id", "county", "tract")}
        frame = geopandas.GeoDataFrame(columns, geometry=shapes, crs=crs)
        frame["population"] = table["population"].to_numpy() / 7  # fractions, which are scaled
        frame.to_file(tmp_path / "zones.gpkg")
        other = {"path": "zones.gpkg", "levels": ["county", "tract"], "longitude": None, "latitude": None}
        path, spec = released(zones=other)
        assert evaluate(path, spec).workers == 3000

    def test_text_of_a_csv_becomes_the_numbers_of_the_release(self, released, region, tmp_path):
        table = pl.read_parquet(region / "zones.parquet").with_columns(pl.col("id", "county").cast(pl.String))
        table.select("id", "county", "longitude", "latitude", "population").write_csv(tmp_path / "zones.csv")
        path, spec = released(zones={"path": "zones.csv", "levels": ["county"]})
        assert evaluate(path, spec).workers == 3000


class TestCompare:
    def test_a_release_is_itself(self, released):
        path, _ = released()
        found = compare(path, path)
        assert (found.distance_mae_km, found.tv, found.cpc["zone/zone"]) == (0, 0, 1)

    def test_two_seeds_differ_and_the_measures_are_those_of_the_evaluation(self, released):
        first, spec = released()
        second, _ = released(run={"seed": 2})
        found = compare(first, second)
        assert 0 < found.cpc["zone/zone"] < 1
        assert found.cpc == pytest.approx(compare(second, first).cpc)
        assert set(found.cpc) == set(evaluate(first, spec).cpc)
        assert (found.reference, found.release) == (first.name, second.name)

    def test_the_command_prints_text_or_json(self, released, forked_command):
        first, _ = released()
        second, _ = released(run={"seed": 2})
        told = forked_command("compare", first, second)
        assert told.returncode == 0, told.stderr
        assert told.stdout.startswith(f"Release {second.name} against {first.name}")
        assert "common part of commuters, tract/tract" in told.stdout
        assert max(map(len, told.stdout.splitlines())) <= 120
        values = json.loads(forked_command("compare", first, second, "--json").stdout)
        assert values == json.loads(json.dumps(compare(first, second).to_json()))

    @pytest.fixture
    def grown(self, released, region, tmp_path):
        """Two releases of which either has destinations that the other lacks; the first one's gravity with itself."""

        def make(**changes):
            paths = []
            for name, gone in (("first", 0), ("second", 1)):
                od = pl.read_parquet(region / "od.parquet").with_columns(
                    pl.col("origin", "destination").cast(pl.String)
                )
                kept = od["destination"].unique().sort().gather_every(4, gone)
                od.filter(~pl.col("destination").is_in(kept.implode())).write_parquet(tmp_path / f"{name}.parquet")
                table = {"path": str(tmp_path / f"{name}.parquet"), "vintage": "demo-1", "format": "long"}
                table |= {"origin": "origin", "destination": "destination", "count": "count"}
                paths.append(released(tables=[table], **(changes if gone else {}))[0])
            return paths

        return make

    def test_what_is_about_common_destinations_says_so(self, grown):
        first, second = grown()
        found = compare(first, second)
        work = [set(pl.read_parquet(path / "plan.parquet")["destination"]) for path in (first, second)]
        assert found.destinations == len(work[0] | work[1])
        assert found.in_both.destinations == found.with_average.destinations == len(work[0] & work[1]) == 30
        plans = [pl.read_parquet(path / "plan.parquet") for path in (first, second)]
        both = [
            int(one.filter(pl.col("destination").is_in(list(work[0] & work[1])))["headcount"].sum()) for one in plans
        ]
        assert [found.in_both.workers_reference, found.in_both.workers] == both
        told = report(found)
        assert f"Destinations in both: 30, with {both[1]:,} workers instead of {both[0]:,}" in told
        assert f"Whole tables: {found.workers:,} workers instead of {found.workers_reference:,}, at 60 dest" in told
        assert max(map(len, told.splitlines())) <= 120

    def test_the_gravity_of_a_release_is_its_own(self, grown):
        first, second = grown()
        one, other = compare(first, second), compare(second, first)
        assert one.gravity.reference == other.gravity.other == compare(first, first).gravity.other
        assert one.gravity.other == other.gravity.reference == compare(second, second).gravity.other
        assert one.gravity.reference.workers != one.gravity.other.workers
        assert f"was −{one.gravity.reference.distance:.2f}" in report(one)
        assert one.other_zones == ""

    def test_zones_of_other_weights_are_told(self, grown):
        first, second = grown(zones={"weight": None})
        found = compare(first, second)
        assert found.other_zones.startswith("weights, at ")
        assert f"The zones of {second.name} have other weights" in report(found)
        assert "have other" not in report(compare(second, second))

    @pytest.mark.parametrize("place", [0, 1])
    def test_a_release_that_was_tampered_with_is_refused(self, released, place):
        paths = [released()[0], released(run={"seed": 2})[0]]
        part = next((paths[place] / "od").iterdir())
        part.write_bytes(part.read_bytes()[:-1] + b"x")
        with pytest.raises(ReleaseCorruptError, match=re.escape(part.name)):
            compare(*paths)

    def test_other_zones_are_refused(self, released, region, tmp_path):
        first, spec = released()
        zones = pl.read_parquet(region / "zones.parquet")
        zones.with_columns(pl.col("id").cast(pl.String) + "x").write_parquet(tmp_path / "zones.parquet")
        changed = {"path": str(tmp_path / "zones.parquet")}
        od = pl.read_parquet(region / "od.parquet")
        od.with_columns(pl.col("origin", "destination").cast(pl.String) + "x").write_parquet(tmp_path / "od.parquet")
        table = spec.tables[0].model_dump(exclude_none=True) | {"path": str(tmp_path / "od.parquet")}
        second, _ = released(zones=changed, tables=[table])
        with pytest.raises(GeographyError, match="must have the ids"):
            compare(first, second)
        other, _ = released(zones={"vintage": "demo-2"}, tables=[spec.tables[0].model_dump(exclude_none=True)
                                                                 | {"vintage": "demo-2"}])  # fmt: skip
        with pytest.raises(VintageError, match="demo-2"):
            compare(first, other)


def test_cells_of_unequal_mass_have_closed_forms_and_so_have_classes(released):
    found = evaluate(*released(plan={"coarsening": "distance", "cells": 8})).expected
    made = found.pairs_cells_if_prior_were_true
    assert found.cpc_cells == pytest.approx(found.cpc_cells_if_prior_were_true, abs=0.05)
    assert found.spurious_cells == pytest.approx(made.spurious_share, abs=0.05)
    assert found.missing_cells == pytest.approx(made.missing_share, abs=0.05)
    assert found.length_wasserstein_by_destination_km is None
    assert found.distance_mae_km > 0
    alike = evaluate(*released(plan={"coarsening": "prior-mass", "cells": 8})).expected
    assert None not in (alike.cpc_cells, alike.spurious_cells, alike.length_wasserstein_by_destination_km)
    assert sum(one.destinations for one in alike.by_density) == sum(one.destinations for one in alike.by_headcount)


def test_what_is_served_of_a_release_with_dropping_is_what_is_expected_of_it(make_spec):
    """Dropped cells leave less of the prior: as if none were, the common part is told too low."""
    spec = make_spec(segments=None, plan={"keep": 0.3}, privacy={"epsilon": 2.0}, run={"seed": 1})
    found = release(spec, scheduler="threads")
    served = release_utility(ReleaseStore(found.path.parent).open(found.release)).common_part
    expected = evaluate(found.path, spec).expected.cpc_cells
    assert served == pytest.approx(expected, abs=0.005)  # which knows that cells are not quite equal
    plan = read_plan(found.path, read_zones_of(found.path, found.manifest))
    alpha = plan.alpha_numerator / plan.alpha_denominator
    told = expected_common_part(plan.headcount, plan.size, plan.cells, alpha)
    assert weighted_mean(told, plan.headcount) < served - 0.001
