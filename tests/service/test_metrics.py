"""How far a release can be trusted: what anybody gets agrees with its files; what curators get nobody else does."""

import csv
import io
import json
import math
import shutil

import numpy as np
import polars as pl
import pytest
from bearer import bearer
from measuredrecord import measured as record_of

from synthmap.analysis.read import read_od, read_plan, read_zones_of
from synthmap.analysis.table import pair_km
from synthmap.catalog.keys import Role
from synthmap.published.expected import LENGTH_EDGES_KM, share_variance
from synthmap.published.measured import publish_measured
from synthmap.release.manifest import read_manifest
from synthmap.release.verify import sha256


@pytest.fixture
def own_store(store, made_up, tmp_path):
    """A store of one's own with the made-up release."""
    shutil.copytree(store / made_up, tmp_path / "own" / made_up)
    return tmp_path / "own"


def test_classes_are_those_of_the_plan(client, store, made_up):
    found = client.get(f"/releases/{made_up}/metrics").json()
    plan = pl.read_parquet(store / made_up / "plan.parquet")
    assert found["workers"] == plan["synthetic_size"].sum()
    assert found["destinations"] == plan.height == sum(one["destinations"] for one in found["by_headcount"])
    assert found["prior_share"] == pytest.approx(
        (plan["prior_share"] * plan["synthetic_size"]).sum() / plan["synthetic_size"].sum(), rel=1e-4
    )
    for one in found["by_headcount"]:
        inside = plan.filter(pl.col("headcount").is_between(one["headcount_from"], one["headcount_to"] or 10**9))
        assert (one["destinations"], one["workers"]) == (inside.height, inside["synthetic_size"].sum())
        assert one["cells_median"] == inside["cells"].median()
    below = found["mostly_prior_below"]
    assert (plan.filter(pl.col("headcount") >= (below or 0))["prior_share"] <= 0.5).all()
    if below is not None:
        assert plan.filter(pl.col("headcount") == below - 1)["prior_share"].max() > 0.5
    assert "fixed seed" in found["warning"]


def test_bands_are_those_of_the_table(client, store, odd):
    directory = store / odd
    manifest = read_manifest(directory)
    zones = read_zones_of(directory, manifest)
    table = read_od(directory, manifest, zones)
    km = pair_km(table.origin, table.destination, zones)
    found = client.get(f"/releases/{odd}/metrics").json()["by_distance"]
    for band in found:
        known = band["origin"] is None
        inside = (km >= band["km_from"]) & (km < (band["km_to"] or np.inf)) if known else np.isnan(km)
        assert band["share"] == pytest.approx(table.count[inside].sum() / table.count.sum(), abs=1e-5)
    assert [one["km_from"] for one in found[:-1]] == list(LENGTH_EDGES_KM[: len(found) - 1])
    assert found[-1]["origin"] == "elsewhere"
    assert sum(one["share_of_prior"] for one in found) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("which", ["made_up", "odd"])
def test_what_is_drawn_from_the_prior_falls_into_the_bands(client, which, request):
    found = client.get(f"/releases/{request.getfixturevalue(which)}/metrics").json()
    from_prior = sum((one["prior_share"] or 0) * one["share"] for one in found["by_distance"])
    expected = found["prior_share"]
    assert from_prior == pytest.approx(expected, rel=0.15)  # empty bands and rounding at 1 take little away


def test_one_destination(client, store, odd):
    plan = read_plan(store / odd, read_zones_of(store / odd, read_manifest(store / odd)))
    assert sorted(plan.headcount) == [20, 45, 75]
    found = client.get(f"/releases/{odd}/metrics", params={"destination": "001"}).json()
    assert (found["destination"], found["headcount"], found["synthetic_size"]) == ("001", 45, 45)
    assert found["release"] == odd
    assert sum(one["share"] for one in found["by_distance"]) == pytest.approx(1, abs=1e-4)
    errors = [one["error"] for one in found["figures"]]
    assert errors == sorted(errors)
    assert [one["workers"] for one in found["figures"]] == [1, 2, 5, 10, 20]
    assert found["trust"].startswith("The total, 45 workers, is exact.")


def test_ids_that_look_like_markup_are_text(client, odd):
    name = "<img src=x onerror=alert(1)>"
    answer = client.get(f"/releases/{odd}/metrics", params={"destination": name})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["destination"] == name
    rows = list(csv.DictReader(io.StringIO(client.get(
        f"/releases/{odd}/metrics", params={"destination": name, "f": "csv"}
    ).text)))  # fmt: skip
    assert rows[0]["destination"] == name


@pytest.mark.parametrize(("destination", "rule"), [
    ("O'Brien", "have workers in this release"), ("1", "be a zone of this release"), ("", "be a zone of this release"),
    ("01 ", "be a zone of this release"), ("elsewhere", "be a zone of this release"),
])  # fmt: skip
def test_a_destination_without_workers_is_not_found(client, odd, destination, rule):
    answer = client.get(f"/releases/{odd}/metrics", params={"destination": destination})
    assert answer.status_code == 404
    assert rule in answer.json()["detail"]


def test_csv_has_the_figures_of_json(client, made_up):
    values = client.get(f"/releases/{made_up}/metrics").json()
    answer = client.get(f"/releases/{made_up}/metrics", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["class"] for row in rows] == (
        ["all"] + ["headcount"] * len(values["by_headcount"]) + ["distance"] * len(values["by_distance"])
    )
    assert float(rows[0]["prior_share"]) == values["prior_share"]
    for row, one in zip(rows[1:], values["by_headcount"], strict=False):
        assert (int(float(row["from"])), int(row["workers"])) == (one["headcount_from"], one["workers"])
        assert float(row["prior_share"]) == one["prior_share"]


def test_who_has_it_already_gets_it_no_more(client, made_up, odd):
    seen = set()
    for query in ({}, {"f": "csv"}, {"destination": "01"}, {"destination": "001"}):
        first = client.get(f"/releases/{odd}/metrics", params=query)
        again = client.get(f"/releases/{odd}/metrics", params=query, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
        seen.add(first.headers["etag"])
    assert len(seen) == 4


@pytest.mark.parametrize(("query", "headers", "status"), [
    ("?f=xml", {}, 400), ("?f=csv&g=1", {}, 400), ("", {"Accept": "image/png"}, 406),
])  # fmt: skip
def test_what_is_not_offered_is_refused(client, made_up, query, headers, status):
    answer = client.get(f"/releases/{made_up}/metrics{query}", headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["none", "..%2f..%2fetc", ".catalog", "a%0ab"])
def test_no_such_release(client, name):
    assert client.get(f"/releases/{name}/metrics").status_code == 404


def test_what_was_not_predicted_is_null(make_client, small_release):
    directory = small_release(plan={"prior_share": [0.2, 0.1], "predicted_km": [float("nan"), 2.0]})
    client = make_client(store=directory.parent)
    found = client.get(f"/releases/{directory.name}/metrics").json()
    assert found["expected_km"] is None and found["predicted_km_median"] is None  # a part would not stand for the whole
    one = client.get(f"/releases/{directory.name}/metrics", params={"destination": "01"}).json()
    assert one["predicted_km"] is None and one["expected_km"] is None
    other = client.get(f"/releases/{directory.name}/metrics", params={"destination": "03"}).json()
    assert other["predicted_km"] == 2.0


def test_bands_are_left_out_where_the_prior_is_not_all_in_the_release(make_client, small_release):
    def mixed(manifest):
        manifest["prior"]["source"] = {
            "kind": "table", "name": "ctpp.csv", "sha256": "0", "vintage": "2010", "private": True, "mixing": 0.9,
            "workers": 9, "statement": "declared public by the curator",
        }  # fmt: skip

    for change, some in ((lambda manifest: None, True), (mixed, False)):
        directory = small_release(name=f"tiny-20260101T000000Z-0000000{int(some)}", change=change)
        client = make_client(store=directory.parent)
        for query in ("", "?destination=01"):
            answer = client.get(f"/releases/{directory.name}/metrics{query}")
            assert (answer.status_code, bool(answer.json()["by_distance"])) == (200, some)


def test_errors_are_those_of_what_each_prior_is_worth(make_client, small_release):
    """Of the same plan: where a public table makes the prior worth more workers, figures are expected to err less."""
    errors = []
    for i, worth in enumerate((20.0, 20.0, 400.0)):
        columns = {} if i == 0 else {"prior_strength": [20.0, worth]}
        directory = small_release(name=f"tiny-20260101T000000Z-0000000{i}", plan=columns | {"prior_share": [0.5, 0.8]})
        client = make_client(store=directory.parent)
        for place in ("01", "03"):
            found = client.get(f"/releases/{directory.name}/metrics", params={"destination": place}).json()
            errors.append([one["error"] for one in found["figures"]])
    assert errors[0] == errors[2] == errors[4]
    assert errors[1] == errors[3]
    variance = share_variance(np.array([5]), np.array([5]), np.array([0.8]), np.array([400.0]))[0]
    assert errors[5] == pytest.approx([math.sqrt(one * (5 - one) * variance) for one in (1, 2)], rel=1e-4)
    assert all(more > less for more, less in zip(errors[3], errors[5], strict=True))


def test_all_from_the_prior_is_said(make_client, small_release):
    directory = small_release(
        plan={"prior_share": [1.0, 1.0], "predicted_km": [1.0, 1.0], "cells": [1, 1], "alpha_numerator": [1, 1]}
    )
    client = make_client(store=directory.parent)
    found = client.get(f"/releases/{directory.name}/metrics").json()
    assert (found["prior_share"], found["mostly_prior_below"], found["mostly_prior_workers_share"]) == (1.0, 6, 1.0)
    one = client.get(f"/releases/{directory.name}/metrics", params={"destination": "03"}).json()
    assert "say nothing about who works here" in one["trust"]


def test_a_prior_that_was_fitted_to_measured_lengths_is_said(make_client, small_release):
    lengths = {"epsilon": 0.1, "cap_km": 9.0, "noise_units": 1, "workers": [9], "noisy_sums": [9], "mean_km": [1.0]}
    directory = small_release(
        plan={"prior_share": [1.0, 1.0], "predicted_km": [1.0, 1.0], "cells": [1, 1], "alpha_numerator": [1, 1]},
        change=lambda manifest: manifest["prior"].update(lengths=lengths),
    )
    client = make_client(store=directory.parent)
    found = client.get(f"/releases/{directory.name}/metrics").json()
    assert "was fitted to noisy mean commutes of classes of destinations" in found["trust"]
    one = client.get(f"/releases/{directory.name}/metrics", params={"destination": "03"}).json()
    assert "say nothing" not in one["trust"]
    assert "was fitted to noisy mean commutes of many destinations" in one["trust"]


def test_a_release_without_workers_is_no_fault(make_client, small_release):
    directory = small_release(plan={"prior_share": [0.5, 0.5], "predicted_km": [1.0, 1.0]})
    for name in ("plan.parquet", "od/part-00000.parquet", "od/part-00001.parquet"):
        pl.read_parquet(directory / name).clear().write_parquet(directory / name)
    manifest = json.loads((directory / "manifest.json").read_text())
    for name, record in manifest["files"].items():
        record |= {"sha256": sha256(directory / name), "bytes": (directory / name).stat().st_size}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    client = make_client(store=directory.parent)
    found = client.get(f"/releases/{directory.name}/metrics").json()
    assert (found["workers"], found["prior_share"], found["by_distance"]) == (0, None, [])
    assert client.get(f"/releases/{directory.name}/metrics?f=csv").text.count("\n") == 2


def test_a_plan_without_its_columns_is_damage(make_client, small_release):
    directory = small_release()
    plan = pl.read_parquet(directory / "plan.parquet").drop("prior_share")
    plan.write_parquet(directory / "plan.parquet")
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["files"]["plan.parquet"] = {
        "sha256": sha256(directory / "plan.parquet"),
        "bytes": (directory / "plan.parquet").stat().st_size,
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    answer = make_client(store=directory.parent).get(f"/releases/{directory.name}/metrics")
    assert answer.status_code == 503
    assert answer.json()["detail"].startswith(f"release {directory.name}")


def test_nothing_of_how_it_was_made_shows(client, made_up, odd):
    for release in (made_up, odd):
        text = client.get(f"/releases/{release}/metrics").text.lower()
        for word in ("spec.toml", "od.parquet", "/service-store", "scratch", ".csv"):
            assert word not in text


def measured(client, release, content):
    """Put a file where the worker would, and return the curator's answer."""
    place = client.app.state.service.settings.metrics_directory / f"{release}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(content)


def test_curators_read_what_the_worker_measured(make_client, own_store, made_up):
    client = make_client(store=own_store)
    curator = bearer(client)
    before = client.get(f"/releases/{made_up}/metrics/confidential", headers=curator)
    assert before.status_code == 404
    assert "evaluate" in before.json()["detail"]
    measured(client, made_up, json.dumps({"release": made_up, "distance_mae_km": 1.25, "gravity": None}))
    after = client.get(f"/releases/{made_up}/metrics/confidential", headers=curator)
    assert after.json()["distance_mae_km"] == 1.25
    for answer in (before, after):
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("content", [
    "", '{"release": "', "[1, 2]", '{"release": "another-release"}', '{"release": "RELEASE", "tv": NaN}', "[" * 100_000,
    "\udcff",
])  # fmt: skip
def test_a_damaged_file_of_measures_is_no_answer(make_client, own_store, made_up, content):
    client = make_client(store=own_store)
    place = client.app.state.service.settings.metrics_directory / f"{made_up}.json"
    place.parent.mkdir()
    place.write_bytes(content.replace("RELEASE", made_up).encode(errors="surrogateescape"))
    answer = client.get(f"/releases/{made_up}/metrics/confidential", headers=bearer(client))
    assert answer.status_code == 503
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json()) == {"type", "title", "status", "detail", "instance"}


@pytest.mark.parametrize(("role", "status"), [(None, 401), (Role.READER, 403), (Role.ANALYST, 403)])
def test_nobody_else_learns_even_whether_there_is_such_a_release(make_client, own_store, made_up, role, status):
    client = make_client(store=own_store)
    measured(client, made_up, json.dumps({"release": made_up, "distance_mae_km": 1.25}))
    headers = {} if role is None else bearer(client, role)
    answers = [
        client.get(f"/releases/{name}/metrics/confidential", headers=headers)
        for name in (made_up, "no-such-release", ".metrics", made_up.upper())
    ]
    assert {answer.status_code for answer in answers} == {status}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert not any("1.25" in answer.text for answer in answers)


def test_measures_are_found_by_no_other_path(make_client, own_store, made_up):
    client = make_client(store=own_store)
    measured(client, made_up, json.dumps({"release": made_up, "distance_mae_km": 1.25}))
    curator = bearer(client)
    downloads = f"/releases/{made_up}/downloads"
    for path in ("/releases/.metrics/metrics", f"{downloads}/..%2f.metrics%2f{made_up}.json",
                 f"{downloads}/../../.metrics/{made_up}.json", f"/.metrics/{made_up}.json"):  # fmt: skip
        answer = client.get(path, headers=curator)
        assert answer.status_code in (400, 404)
        assert "1.25" not in answer.text


@pytest.fixture
def measured_store(store, odd, tmp_path):
    """A copy of the store in which measurements of a release were published."""
    shutil.copytree(store / odd, tmp_path / "store" / odd)
    record = record_of(odd, sha256(store / odd / "manifest.json"))
    publish_measured(tmp_path / "store", record)
    return tmp_path / "store"


def test_published_measurements_are_for_everybody(make_client, measured_store, odd):
    client = make_client(store=measured_store)
    answer = client.get(f"/releases/{odd}/metrics/published")
    assert answer.status_code == 200
    assert (answer.json()["release"], answer.json()["epsilon"]) == (odd, 0.5)
    again = client.get(f"/releases/{odd}/metrics/published", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    table = client.get(f"/releases/{odd}/metrics/published?f=csv")
    assert table.headers["content-type"].startswith("text/csv")
    assert table.text.splitlines()[0].startswith("figure,density,km_from,km_to")
    assert len(table.text.splitlines()) == 11
    links = [
        one for one in client.get(f"/releases/{odd}").json()["links"] if one["href"].endswith("/metrics/published")
    ]
    assert [one["rel"] for one in links] == ["metrics"]


def test_where_nothing_was_measured_there_is_no_link_and_a_way_on(client, odd):
    answer = client.get(f"/releases/{odd}/metrics/published")
    assert answer.status_code == 404
    assert "synthmap metrics publish" in answer.json()["detail"]
    assert not any("published" in one["href"] for one in client.get(f"/releases/{odd}").json()["links"])


def test_damaged_measurements_are_not_served(make_client, measured_store, odd):
    path = measured_store / f"{odd}.metrics.json"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("0.5", "0.4"))
    answer = make_client(store=measured_store).get(f"/releases/{odd}/metrics/published")
    assert answer.status_code == 503
    assert str(measured_store) not in answer.text


def test_measurements_in_the_store_are_no_release(make_client, measured_store, odd):
    assert [one["id"] for one in make_client(store=measured_store).get("/releases").json()["releases"]] == [odd]
